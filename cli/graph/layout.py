"""The neighbourhood as an `igraph.Graph`, and its layout on a page and in a picture: positions, sizes and colours of nodes."""

import math
import os
import random
import re
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from cli.errors import CommandError
from cli.terminal_text import one_line, truncate
from daemon.contract.graph import GraphEdge, GraphNode, GraphResponse

if TYPE_CHECKING:
    import igraph

NODE_COLOURS = {"phrase": "#3b6ea8", "passage": "#c2702e"}
EDGE_COLOURS = {"relation": "#5a6673", "mention": "#9d8fb0", "synonym": "#3f9265", "context": "#d8cbbb"}
PATH_COLOUR = "#c1272d"
"""The colours also differ in lightness; node kinds also differ in shape, and edge types in dashes."""
MAX_LABELS = 40
"""Number of labelled nodes, which have the highest PageRank; more labels would overlap."""
MAX_LABEL_CHARS = 36
LAYOUT_ITERATIONS = 400
Coordinates = tuple[float, float]
_UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, not even escaped."""


def load_igraph() -> ModuleType:
    """Returns the module `igraph`. Raises `CommandError` if the extra `graph` is not installed."""
    try:
        import igraph
    except ModuleNotFoundError:
        hint = "Install it: `make install EXTRAS=graph` in a checkout, or pip install 'hippod[graph]'."
        raise CommandError("drawing and GraphML need the extra hippod[graph].", hint=hint) from None
    module: ModuleType = igraph
    return module


def node_positions(graph: "igraph.Graph") -> list[Coordinates]:
    """Returns each node's position, both coordinates from 0 to 1. The same graph always gets the same layout."""
    if graph.vcount() < 2:
        return [(0.5, 0.5)] * graph.vcount()
    layout = force_directed(graph, 0, LAYOUT_ITERATIONS)
    axes = [_scaled([point[axis] for point in layout]) for axis in (0, 1)]
    return list(zip(*axes, strict=True))


def force_directed(graph: "igraph.Graph", seed: int, iterations: int) -> list[Coordinates]:
    """Returns each node's position by Fruchterman and Reingold's algorithm; deterministic for a graph and a `seed`."""
    igraph = load_igraph()
    igraph.set_random_number_generator(random.Random(seed))
    try:
        return [(float(x), float(y)) for x, y in graph.layout_fruchterman_reingold(niter=iterations).coords]
    finally:
        igraph.set_random_number_generator(random)


def _scaled(values: Sequence[float]) -> list[float]:
    lowest, highest = min(values), max(values)
    return [(value - lowest) / (highest - lowest) if highest > lowest else 0.5 for value in values]


def node_sizes(neighbourhood: GraphResponse, smallest: float, largest: float) -> list[float]:
    """Returns a radius for each node: its area is proportional to its PageRank, or without a query to its number of edges."""
    weights = [node.mass if node.mass is not None else float(node.links) for node in neighbourhood.nodes]
    highest = max(weights, default=0.0) or 1.0
    return [smallest + (largest - smallest) * math.sqrt(weight / highest) for weight in weights]


def labelled_nodes(neighbourhood: GraphResponse) -> dict[int, str]:
    """Returns the labels of the nodes that have one, by index."""
    by_size = sorted(range(len(neighbourhood.nodes)), key=node_sizes(neighbourhood, 0.0, 1.0).__getitem__, reverse=True)
    return {at: label(neighbourhood.nodes[at]) for at in by_size[:MAX_LABELS]}


def label(node: GraphNode) -> str:
    return truncate(one_line(node.text), MAX_LABEL_CHARS) or node.kind


def as_igraph(neighbourhood: GraphResponse) -> "igraph.Graph":
    """Returns vertices and edges with their attributes, named as in `hippoctl export --format graphml`."""
    at = {node.id: number for number, node in enumerate(neighbourhood.nodes)}
    graph = load_igraph().Graph(n=len(at), edges=[(at[edge.source], at[edge.target]) for edge in neighbourhood.edges])
    graph["query"], graph["commit"] = _plain(neighbourhood.query or ""), neighbourhood.commit
    nodes, edges = graph.vs, graph.es
    nodes["name"] = [_plain(node.id.partition(":")[2]) for node in neighbourhood.nodes]
    nodes["kind"] = [node.kind for node in neighbourhood.nodes]
    nodes["title"] = [_plain(node.text) if node.kind == "passage" else "" for node in neighbourhood.nodes]
    nodes["text"] = [
        _plain((node.excerpt or "") if node.kind == "passage" else node.text) for node in neighbourhood.nodes
    ]
    nodes["document"] = [_plain(node.document or "") for node in neighbourhood.nodes]
    nodes["mass"] = [node.mass or 0.0 for node in neighbourhood.nodes]
    nodes["reset"] = [node.reset or 0.0 for node in neighbourhood.nodes]
    nodes["rank"] = [node.rank or 0 for node in neighbourhood.nodes]
    edges["type"] = [edge.type for edge in neighbourhood.edges]
    edges["weight"] = [edge.weight for edge in neighbourhood.edges]
    edges["triples"] = [
        "; ".join(_plain(f"{each.subject} · {each.predicate} · {each.object}") for each in edge.triples)
        for edge in neighbourhood.edges
    ]
    on = on_paths(neighbourhood)
    edges["path"] = [ends(edge) in on for edge in neighbourhood.edges]
    return graph


def on_paths(neighbourhood: GraphResponse) -> set[frozenset[str]]:
    """Returns the pairs of nodes that are consecutive on a path."""
    return {frozenset(pair) for path in neighbourhood.paths for pair in pairwise(path.nodes)}


def ends(edge: GraphEdge) -> frozenset[str]:
    return frozenset((edge.source, edge.target))


def graphml(graph: "igraph.Graph") -> bytes:
    """Returns the GraphML as bytes. igraph can only write to named files."""
    handle, name = tempfile.mkstemp(suffix=".graphml")
    os.close(handle)
    try:
        graph.write_graphml(name)
        return Path(name).read_bytes()
    finally:
        Path(name).unlink()


def _plain(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", text)
