"""The edges between the nodes of a neighbourhood: those along which most PageRank passes, with the triples that they stand for.

In one step, d (r(u) / D(u) + r(v) / D(v)) times the edge's weight passes along an edge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.pagerank.scoring import HIPPORAG2_WEIGHTS
from memory.retrieval.pagerank.walk import PageRankResult
from memory.retrieval.passage_weights import Floats
from store.snapshot import Snapshot
from store.types import Triple

EDGES_PER_NODE = 4
"""Maximum number of edges per node of a neighbourhood."""
TRIPLES_PER_EDGE = 3
"""Maximum number of triples that are listed for a relation edge."""
EdgeKind = Literal["relation", "mention", "synonym", "context"]
EDGE_KINDS: tuple[EdgeKind, ...] = ("relation", "mention", "synonym", "context")
RELATION, MENTION, SYNONYM, CONTEXT = range(len(EDGE_KINDS))
WALK_FACTORS = np.array([getattr(HIPPORAG2_WEIGHTS, kind) for kind in EDGE_KINDS])
"""The factor of each of `EDGE_KINDS` in `hipporag2`, by which the edges of every walk are compared."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NeighbourhoodEdges:
    """Distinct edges. `sources` and `targets` index the nodes, `kinds` index `EDGE_KINDS`; all have shape (edges,)."""

    sources: Rows
    targets: Rows
    kinds: Rows
    weights: Floats
    triples: tuple[tuple[Triple, ...], ...]
    """For each relation edge, some of its triples, in order of text; empty for other edges."""
    edges_between: int
    """Number of all edges between the nodes. The listed edges are those along which most PageRank passes."""
    degrees: Rows
    """Number of edges of each node in the whole memory, shape (nodes,)."""


def no_edges() -> NeighbourhoodEdges:
    empty = np.empty(0, np.int64)
    return NeighbourhoodEdges(empty, empty, empty, np.empty(0), (), 0, empty)


def listed_edges(
    snapshot: Snapshot,
    nodes: Rows,
    pagerank: PageRankResult | None,
    paths: Sequence[Sequence[int]] = (),
    *,
    centre: bool = False,
) -> NeighbourhoodEdges:
    """Returns the edges between `nodes`, at most `EDGES_PER_NODE` times as many as nodes.

    Edges on `paths` come first, and with `centre` also those of the first node; then the edges along which most PageRank
    passes.
    """
    first = snapshot.n_phrases
    place = np.full(first + snapshot.n_passages, -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    phrases, passages = nodes[nodes < first], nodes[nodes >= first] - first
    degrees = np.zeros(len(place), np.int64)
    degrees[phrases] = snapshot.phrase_passages[phrases]
    parts = []
    for kind, view, rows, shift in (
        (RELATION, snapshot.relation, phrases, 0),
        (MENTION, snapshot.mention, phrases, 0),
        (SYNONYM, snapshot.synonym, phrases, 0),
        (CONTEXT, snapshot.context, passages, first),
    ):
        at, to, values = view.entries(rows)
        begins, ends = place[at.astype(np.int64) + shift], place[to]
        np.add.at(degrees, at.astype(np.int64) + shift, 1)
        both = (ends >= 0) & ((begins < ends) | (kind == CONTEXT))
        parts.append((begins[both], ends[both], np.full(int(both.sum()), kind), values[both]))
    sources, targets, kinds, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    passing = weights * WALK_FACTORS[kinds]
    if pagerank is not None:
        rates = np.divide(
            pagerank.ranks, pagerank.walk.graph.degrees, out=np.zeros(len(place)), where=pagerank.walk.graph.degrees > 0
        )
        passing *= rates[nodes[sources]] + rates[nodes[targets]]
    wanted = _on_paths(paths, place, sources, targets) | (centre & ((sources == 0) | (targets == 0)))
    order = np.lexsort((targets, sources, kinds, -passing, ~wanted))[: EDGES_PER_NODE * len(nodes)]
    kept = np.sort(order)
    sources, targets, kinds = sources[kept], targets[kept], kinds[kept]
    triples = _triples(snapshot, nodes, sources, targets, kinds)
    return NeighbourhoodEdges(sources, targets, kinds, weights[kept], triples, len(passing), degrees[nodes])


def _on_paths(paths: Sequence[Sequence[int]], place: Rows, sources: Rows, targets: Rows) -> NDArray[np.bool_]:
    """Returns which edges are on a path, shape (edges,)."""
    width = len(place)
    steps = [(place[a], place[b]) for path in paths for a, b in pairwise(path)]
    keys = {int(min(pair)) * width + int(max(pair)) for pair in steps}
    return np.isin(np.minimum(sources, targets) * width + np.maximum(sources, targets), list(keys))


def _triples(
    snapshot: Snapshot, nodes: Rows, sources: Rows, targets: Rows, kinds: Rows
) -> tuple[tuple[Triple, ...], ...]:
    """Returns some statements of each relation edge, and none for other edges."""
    first = snapshot.n_phrases
    found: list[list[Triple]] = [[] for _ in sources]
    relations = np.flatnonzero(kinds == RELATION)
    width = first + 1

    def key(a: NDArray[Any], b: NDArray[Any]) -> Rows:
        pairs: Rows = np.minimum(a, b).astype(np.int64) * width + np.maximum(a, b)
        return pairs

    wanted = key(nodes[sources[relations]], nodes[targets[relations]])
    chosen = np.zeros(first, np.bool_)
    chosen[nodes[nodes < first]] = True
    ends = snapshot.triple_ends
    rows = np.flatnonzero(chosen[ends[:, 0]] & chosen[ends[:, 1]] & snapshot.statement_alive)
    order = np.argsort(wanted)
    keys = key(*ends[rows].T)
    at = np.searchsorted(wanted, keys, sorter=order)
    there = (at < len(wanted)) & (wanted[order[np.minimum(at, len(wanted) - 1)]] == keys) if len(wanted) else keys < 0
    for row, edge in zip(rows[there].tolist(), relations[order[at[there]]].tolist(), strict=True):
        found[edge].append(snapshot.triple(row))
    return tuple(tuple(sorted(each)[:TRIPLES_PER_EDGE]) for each in found)
