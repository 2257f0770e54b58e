"""Converts the neighbourhood to an `igraph.Graph`, for writing, layout and drawing."""

import os
import re
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from cli.graph.layout import load_igraph
from daemon.contract.graph import GraphEdge, GraphResponse

if TYPE_CHECKING:
    import igraph

_UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, not even escaped."""


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
