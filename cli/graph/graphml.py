"""Writes the neighbourhood as GraphML, which igraph, networkx and Gephi read."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from xml.sax.saxutils import escape

from daemon.contract.graph import GraphEdge, GraphNode, GraphResponse

GRAPH_KEYS = {"query": "string", "commit": "long"}
NODE_KEYS = {
    "name": "string",
    "kind": "string",
    "title": "string",
    "text": "string",
    "document": "string",
    "mass": "double",
    "reset": "double",
    "rank": "long",
}
EDGE_KEYS = {"type": "string", "weight": "double", "triples": "string", "path": "boolean"}
"""Attributes and their types, named as in `hippoctl export --format graphml`."""
_UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, not even escaped."""


def on_paths(neighbourhood: GraphResponse) -> set[frozenset[str]]:
    """Return the pairs of nodes that are consecutive on a path."""
    return {frozenset(pair) for path in neighbourhood.paths for pair in pairwise(path.nodes)}


def ends(edge: GraphEdge) -> frozenset[str]:
    return frozenset((edge.source, edge.target))


def graphml(neighbourhood: GraphResponse) -> bytes:
    """Return the GraphML as bytes."""
    return "\n".join(_lines(neighbourhood)).encode()


def _lines(neighbourhood: GraphResponse) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for of, keys in (("graph", GRAPH_KEYS), ("node", NODE_KEYS), ("edge", EDGE_KEYS)):
        for name, kind in keys.items():
            yield f'  <key id="{of}-{name}" for="{of}" attr.name="{name}" attr.type="{kind}"/>'
    yield '  <graph id="G" edgedefault="undirected">'
    yield _data("graph", {"query": neighbourhood.query or "", "commit": neighbourhood.commit})
    ids = {node.id: f"n{number}" for number, node in enumerate(neighbourhood.nodes)}
    for node in neighbourhood.nodes:
        yield f'    <node id="{ids[node.id]}">{_data("node", _node_values(node))}</node>'
    on = on_paths(neighbourhood)
    for edge in neighbourhood.edges:
        values = _data("edge", _edge_values(edge, ends(edge) in on))
        yield f'    <edge source="{ids[edge.source]}" target="{ids[edge.target]}">{values}</edge>'
    yield "  </graph>\n</graphml>\n"


def _node_values(node: GraphNode) -> dict[str, str | float]:
    is_passage = node.kind == "passage"
    return {
        "name": node.id.partition(":")[2],
        "kind": node.kind,
        "title": node.text if is_passage else "",
        "text": (node.excerpt or "") if is_passage else node.text,
        "document": node.document or "",
        "mass": node.mass or 0.0,
        "reset": node.reset or 0.0,
        "rank": node.rank or 0,
    }


def _edge_values(edge: GraphEdge, on_path: bool) -> dict[str, str | float]:
    triples = "; ".join(f"{each.subject} · {each.predicate} · {each.object}" for each in edge.triples)
    return {"type": edge.type, "weight": edge.weight, "triples": triples, "path": str(on_path).lower()}


def _data(of: str, values: Mapping[str, str | float]) -> str:
    return "".join(f'<data key="{of}-{name}">{_text(str(value))}</data>' for name, value in values.items())


def _text(value: str) -> str:
    # An XML parser converts an unescaped carriage return to a line feed.
    return escape(_UNWRITABLE.sub("\ufffd", value), {"\r": "&#13;"})
