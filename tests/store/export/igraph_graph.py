"""A snapshot's graph built with igraph, for comparison with igraph's import of GraphML."""

from typing import Any

import igraph

from store.export.canonical_order import EDGE_TYPES, CanonicalOrder
from store.snapshot import Snapshot


def to_igraph(snapshot: Snapshot) -> Any:
    """Returns nodes and edges in the order of `store.export.graphml`. O(everything), about 1 GB for a million edges."""
    ordered = CanonicalOrder(snapshot)
    passages = [snapshot.passage(row) for row in ordered.passages.tolist()]
    phrases = [snapshot.phrase(row) for row in ordered.phrases.tolist()]
    edges: list[tuple[int, int]] = []
    types: list[str] = []
    weights: list[float] = []
    for kind in EDGE_TYPES:
        sources, targets, found = ordered.edges(kind)
        first = 0 if kind == "context" else len(passages)
        edges += zip((sources + first).tolist(), (targets + len(passages)).tolist(), strict=True)
        types += [kind] * len(found)
        weights += found.tolist()
    vertices = {
        "name": [*(passage.id for passage in passages), *phrases],
        "kind": ["passage"] * len(passages) + ["phrase"] * len(phrases),
        "title": [*(passage.title for passage in passages), *("" for _ in phrases)],
        "text": [*(passage.text for passage in passages), *phrases],
    }
    count = len(passages) + len(phrases)
    return igraph.Graph(n=count, edges=edges, vertex_attrs=vertices, edge_attrs={"type": types, "weight": weights})
