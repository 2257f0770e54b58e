"""The layout of a neighbourhood on a page and in a picture: positions, sizes and colours of its nodes."""

import math
from collections.abc import Iterable, Sequence

from cli.terminal_text import one_line, truncate
from daemon.contract.graph import GraphNode, GraphResponse

NODE_COLOURS = {"phrase": "#3b6ea8", "passage": "#c2702e"}
EDGE_COLOURS = {"relation": "#5a6673", "mention": "#9d8fb0", "synonym": "#3f9265", "context": "#d8cbbb"}
PATH_COLOUR = "#c1272d"
"""The colours also differ in lightness; node kinds also differ in shape, and edge types in dashes."""
MAX_LABELS = 40
"""Number of nodes with labels, those with the most PageRank; more labels would overlap."""
MAX_LABEL_CHARS = 36
MOST_STEPS, NODE_STEPS = 400, 200_000
"""Maximum number of steps of a layout, and of steps times nodes: 0.1 s with 200 nodes, 3 s with 2,000."""

Coordinates = tuple[float, float]


def node_positions(neighbourhood: GraphResponse) -> list[Coordinates]:
    """Return each node's position, both coordinates from 0 to 1. The same graph always gets the same layout."""
    row_of = {node.id: row for row, node in enumerate(neighbourhood.nodes)}
    edges = [(row_of[edge.source], row_of[edge.target]) for edge in neighbourhood.edges]
    spots = force_directed(len(row_of), edges)
    return list(zip(*(_scaled([spot[axis] for spot in spots]) for axis in (0, 1)), strict=True))


def force_directed(nodes: int, edges: Iterable[tuple[int, int]], seed: int = 0) -> list[Coordinates]:
    """Return positions by the forces of Fruchterman and Reingold (1991): all nodes repel, edges attract."""
    import numpy as np  # here, because hippoctl must start fast

    spots = np.random.default_rng(seed).uniform(-0.5, 0.5, (nodes, 2)) * math.sqrt(nodes)
    sources, targets = np.array(sorted(edges), dtype=np.intp).reshape(-1, 2).T
    steps = min(MOST_STEPS, NODE_STEPS // max(nodes, 1))
    for step in range(steps):
        squares = (spots**2).sum(axis=1)
        repulsion = 1 / np.maximum(squares[:, None] + squares - 2 * spots @ spots.T, 1e-6)
        forces = spots * repulsion.sum(axis=1, keepdims=True) - repulsion @ spots
        lengths = spots[sources] - spots[targets]
        lengths *= np.hypot(*lengths.T)[:, None]
        np.subtract.at(forces, sources, lengths)
        np.add.at(forces, targets, lengths)
        longest = math.sqrt(nodes) / 10 * (1 - step / steps)
        spots += forces * np.minimum(longest / np.maximum(np.hypot(*forces.T), 1e-9), 1)[:, None]
    return [(float(x), float(y)) for x, y in spots]


def _scaled(values: Sequence[float]) -> list[float]:
    lowest, highest = min(values, default=0.0), max(values, default=0.0)
    return [(value - lowest) / (highest - lowest) if highest > lowest else 0.5 for value in values]


def node_sizes(neighbourhood: GraphResponse, smallest: float, largest: float) -> list[float]:
    """Return a radius for each node: its area is proportional to its PageRank, or without a query to its number of edges."""
    weights = [node.mass if node.mass is not None else float(node.links) for node in neighbourhood.nodes]
    highest = max(weights, default=0.0) or 1.0
    return [smallest + (largest - smallest) * math.sqrt(weight / highest) for weight in weights]


def labelled_nodes(neighbourhood: GraphResponse) -> dict[int, str]:
    """Return the labels of the nodes that have one, by index."""
    by_size = sorted(range(len(neighbourhood.nodes)), key=node_sizes(neighbourhood, 0.0, 1.0).__getitem__, reverse=True)
    return {at: label(neighbourhood.nodes[at]) for at in by_size[:MAX_LABELS]}


def label(node: GraphNode) -> str:
    return truncate(one_line(node.text), MAX_LABEL_CHARS) or node.kind
