"""The graph of a trace: memory points and their entities after each step, or queries and the passages they found.

Places are worked out once over everything that ever stood in the memory, so that nothing moves from one step to the next.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from daemon.contract.steps import DeepStep, IterativeStep, MemoryPoint, PointMemory

POINT, ENTITY, ABSENT, QUERY, PASSAGE = "point", "entity", "absent", "query", "passage"


@dataclass(frozen=True, slots=True)
class Node:
    """`kind` is one of the words above, `name` unique within it, `text` what is said of it where it is pointed at."""

    kind: str
    name: str
    label: str
    text: str
    fresh: bool = False
    """Whether this step made or changed it."""

    @property
    def key(self) -> tuple[str, str]:
        return (ENTITY if self.kind == ABSENT else self.kind, self.name)


@dataclass(frozen=True, slots=True)
class Picture:
    """What stood in the memory after one step. Edges are places in `nodes`."""

    title: str
    nodes: tuple[Node, ...] = ()
    edges: tuple[tuple[int, int], ...] = field(default_factory=tuple)


def deep_pictures(earlier: PointMemory, steps: Sequence[DeepStep]) -> list[Picture]:
    """The memory at the beginning, where there was one, and after each step."""
    pictures = [_memory("Before", earlier.points, ())] if earlier.points else []
    for step in steps:
        changed = {change.point.id for change in step.changes}
        pictures.append(_memory(f"Step {step.number}", step.after.points, changed))
    return pictures


def _memory(title: str, points: Sequence[MemoryPoint], fresh: Iterable[str]) -> Picture:
    changed = set(fresh)
    nodes = [Node(POINT, point.id, point.id, point.description, point.id in changed) for point in points]
    absent = {name for point in points for name in point.absent}
    node_positions: dict[str, int] = {}
    edges = []
    for at, point in enumerate(points):
        for entity in point.entities:
            if entity not in node_positions:
                node_positions[entity] = len(nodes)
                kind = ABSENT if entity in absent else ENTITY
                said = "named by the model, not in the graph" if kind == ABSENT else "phrase of the graph"
                nodes.append(Node(kind, entity, entity, said))
            edges.append((at, node_positions[entity]))
    return Picture(title, tuple(nodes), tuple(edges))


def iterative_pictures(steps: Sequence[IterativeStep]) -> list[Picture]:
    """All that was found up to each step."""
    pictures = []
    for end in range(1, len(steps) + 1):
        nodes = [
            Node(QUERY, str(step.number), f"query {step.number}", step.query, step.number == end)
            for step in steps[:end]
        ]
        node_positions: dict[str, int] = {}
        edges = []
        for at, step in enumerate(steps[:end]):
            for passage in step.found:
                if passage.id not in node_positions:
                    node_positions[passage.id] = len(nodes)
                    label = passage.title or passage.text[:40]
                    nodes.append(Node(PASSAGE, passage.id, label, passage.text[:300], passage.id in steps[end - 1].new))
                edges.append((at, node_positions[passage.id]))
        pictures.append(Picture(f"Step {end}", tuple(nodes), tuple(edges)))
    return pictures


def node_positions(pictures: Sequence[Picture]) -> dict[tuple[str, str], tuple[float, float]]:
    """Where each node stands in every picture: a force-directed layout of all pictures together, the same each time."""
    import igraph

    keys = sorted({node.key for picture in pictures for node in picture.nodes})
    rows = {key: row for row, key in enumerate(keys)}
    edges = {(rows[picture.nodes[a].key], rows[picture.nodes[b].key]) for picture in pictures for a, b in picture.edges}
    igraph.set_random_number_generator(random.Random(7))
    try:
        layout = igraph.Graph(len(keys), sorted(edges)).layout_fruchterman_reingold(niter=1000)
    finally:
        igraph.set_random_number_generator(random)
    return {key: (float(x), float(y)) for key, (x, y) in zip(keys, layout.coords, strict=True)}
