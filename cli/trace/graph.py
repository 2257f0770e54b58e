"""The graphs of a trace: memory points and their entities after each step, or queries and the passages that they found.

Positions are computed once, for all steps together, so that nothing moves between steps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cli.graph.layout import force_directed, load_igraph
from daemon.contract.answering.steps import DeepStep, IterativeStep, MemoryPoint, PointMemory

POINT, ENTITY, ABSENT, QUERY, PASSAGE = "point", "entity", "absent", "query", "passage"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a graph. `kind` is one of the words above, `name` is unique within it, and `text` is the tooltip."""

    kind: str
    name: str
    label: str
    text: str
    fresh: bool = False
    """Whether this step created or changed the node."""

    @property
    def key(self) -> tuple[str, str]:
        return (ENTITY if self.kind == ABSENT else self.kind, self.name)


@dataclass(frozen=True, slots=True)
class StepGraph:
    """The content of the memory after one step. Edges are pairs of indices into `nodes`."""

    title: str
    nodes: tuple[Node, ...] = ()
    edges: tuple[tuple[int, int], ...] = field(default_factory=tuple)


def working_memory_graphs(earlier: PointMemory, steps: Sequence[DeepStep]) -> list[StepGraph]:
    """Returns the memory at the beginning, if there was one, and after each step."""
    graphs = [_memory("Before", earlier.points, ())] if earlier.points else []
    for step in steps:
        changed = {change.point.id for change in step.changes}
        graphs.append(_memory(f"Step {step.number}", step.after.points, changed))
    return graphs


def _memory(title: str, points: Sequence[MemoryPoint], fresh: Iterable[str]) -> StepGraph:
    changed = set(fresh)
    nodes = [Node(POINT, point.id, point.id, point.description, point.id in changed) for point in points]
    absent = {name for point in points for name in point.absent}
    row_of: dict[str, int] = {}
    edges = []
    for at, point in enumerate(points):
        for entity in point.entities:
            if entity not in row_of:
                row_of[entity] = len(nodes)
                kind = ABSENT if entity in absent else ENTITY
                tooltip = "named by the model, not in the graph" if kind == ABSENT else "phrase of the graph"
                nodes.append(Node(kind, entity, entity, tooltip))
            edges.append((at, row_of[entity]))
    return StepGraph(title, tuple(nodes), tuple(edges))


def retrieval_graphs(steps: Sequence[IterativeStep]) -> list[StepGraph]:
    """Returns everything that was found up to each step."""
    graphs = []
    for end in range(1, len(steps) + 1):
        nodes = [
            Node(QUERY, str(step.number), f"query {step.number}", step.query, step.number == end)
            for step in steps[:end]
        ]
        row_of: dict[str, int] = {}
        edges = []
        for at, step in enumerate(steps[:end]):
            for passage in step.found:
                if passage.id not in row_of:
                    row_of[passage.id] = len(nodes)
                    label = passage.title or passage.text[:40]
                    nodes.append(Node(PASSAGE, passage.id, label, passage.text[:300], passage.id in steps[end - 1].new))
                edges.append((at, row_of[passage.id]))
        graphs.append(StepGraph(f"Step {end}", tuple(nodes), tuple(edges)))
    return graphs


def common_layout(graphs: Sequence[StepGraph]) -> dict[tuple[str, str], tuple[float, float]]:
    """Returns each node's position in every graph: one force-directed, deterministic layout of all graphs together."""
    keys = sorted({node.key for graph in graphs for node in graph.nodes})
    rows = {key: row for row, key in enumerate(keys)}
    edges = {(rows[graph.nodes[a].key], rows[graph.nodes[b].key]) for graph in graphs for a, b in graph.edges}
    return dict(zip(keys, force_directed(load_igraph().Graph(len(keys), sorted(edges)), 7, 1000), strict=True))
