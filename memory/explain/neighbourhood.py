"""Extracts the part of the graph that a query is about, with a limited number of nodes.

Nodes are selected by their PageRank from the query's seeds. The parts of the answer come first: the passages found, the
strongest path to each, and the phrase seeds. The edges with the highest flow between the selected nodes are listed. An edge's
flow in one step is d (r(u) / D(u) + r(v) / D(v)) times its weight. All steps are a few array operations; loops cover selected
nodes only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from memory.explain.explain import passage_target
from memory.explain.strongest_path import StrongestPathSearch
from memory.retrieval.mode_result import Ranking
from memory.retrieval.modes import MODES
from memory.retrieval.pagerank.chebyshev import unscaled_sum
from memory.retrieval.pagerank.scoring import HIPPORAG2_WEIGHTS, rank_by_pagerank
from memory.retrieval.pagerank.walk import PageRankResult
from memory.retrieval.passage_weights import Floats, PassageWeights
from memory.retrieval.query_context import QueryContext
from memory.retrieval.retrieve import top_hits
from memory.types import Hit, Seed
from store.index.delta_csr import MatrixView
from store.snapshot import Snapshot
from store.types import Triple

MIN_PATH_SHARE = 0.01
"""Minimum share of a passage's score for a path to be shown. A weaker path explains little, and finding it takes a search of
the whole graph."""

EDGES_PER_NODE = 4
"""Maximum number of edges per node of a neighbourhood."""
TRIPLES_PER_EDGE = 3
"""Maximum number of triples listed for a relation edge."""
EdgeKind = Literal["relation", "mention", "synonym", "context"]
EDGE_KINDS: tuple[EdgeKind, ...] = ("relation", "mention", "synonym", "context")
RELATION, MENTION, SYNONYM, CONTEXT = range(len(EDGE_KINDS))
WALK_FACTORS = np.array([getattr(HIPPORAG2_WEIGHTS, kind) for kind in EDGE_KINDS])
"""Factor of each of `EDGE_KINDS` in `hipporag2`; flows are compared with these factors in every mode."""
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NeighbourhoodEdges:
    """Distinct edges. `sources` and `targets` are indices of nodes, `kinds` indices of `EDGE_KINDS`; all have shape
    (edges,)."""

    sources: Rows
    targets: Rows
    kinds: Rows
    weights: Floats
    triples: tuple[tuple[Triple, ...], ...]
    """For each edge, some of its triples in alphabetical order; () for edges that are not relation edges."""
    edges_between: int
    """Number of edges between the nodes; only the edges with the highest flow are listed."""
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
    """Returns edges between `nodes`: at most `EDGES_PER_NODE` times the number of nodes.

    Edges on `paths` come first; with `centre`, edges of the first node too. Edges with the highest flow follow.
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
    """Returns a mask of the edges that are on a path, shape (edges,)."""
    width = len(place)
    steps = [(place[a], place[b]) for path in paths for a, b in pairwise(path)]
    keys = {int(min(pair)) * width + int(max(pair)) for pair in steps}
    return np.isin(np.minimum(sources, targets) * width + np.maximum(sources, targets), list(keys))


def _triples(
    snapshot: Snapshot, nodes: Rows, sources: Rows, targets: Rows, kinds: Rows
) -> tuple[tuple[Triple, ...], ...]:
    """Returns some statements of each relation edge; () for other edges."""
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


@dataclass(frozen=True, slots=True)
class PassagePath:
    """The strongest path to a passage: its nodes in the graph, seed first, and its share of the score."""

    passage: int
    share: float
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A node's number is the row of a phrase, or the number of phrases plus the row of a passage.

    `mass` contains the nodes' PageRank, `reset` their reset probabilities, both of shape (nodes,); None without a query.
    """

    snapshot: Snapshot
    nodes: Rows
    edges: NeighbourhoodEdges
    mass: Floats | None = None
    reset: Floats | None = None
    hits: tuple[Hit, ...] = ()
    seeds: tuple[Seed, ...] = ()
    paths: tuple[PassagePath, ...] = ()
    note: str | None = None
    neighbours: int | None = None
    """Number of all neighbours of the first node, if the nodes are its neighbourhood."""


def query_neighbourhood(context: QueryContext, mode: str, max_nodes: int) -> Neighbourhood:
    """Returns at most `max_nodes` nodes that are relevant to the query. Its passages are the hits of `retrieve` in `mode`."""
    ranking = MODES[mode].rank(context)
    snapshot, hits = context.snapshot, top_hits(context, ranking, context.k)
    pagerank, note = _pagerank(context, ranking, hits)
    if pagerank is None:
        return Neighbourhood(snapshot, np.empty(0, np.int64), no_edges(), note=note)
    first = snapshot.n_phrases
    paths = _paths(snapshot, pagerank, ranking, hits)
    seeds = np.flatnonzero(pagerank.walk.reset[:first] > 0)
    seeds = seeds[np.argsort(-pagerank.walk.reset[seeds], kind="stable")]
    nodes = _first_nodes(
        [first + hit.row for hit in hits],
        (node for path in paths for node in path.nodes),
        seeds.tolist(),
        _heaviest(pagerank.ranks, max_nodes).tolist(),
        max_nodes=max_nodes,
    )
    paths = tuple(path for path in paths if set(path.nodes) <= set(nodes.tolist()))
    edges = listed_edges(snapshot, nodes, pagerank, [path.nodes for path in paths])
    shares = pagerank.ranks[nodes], _reset_probabilities(pagerank)[nodes]
    return Neighbourhood(snapshot, nodes, edges, *shares, hits, ranking.seeds, paths, note)


def node_neighbourhood(
    context: QueryContext | None, mode: str, snapshot: Snapshot, centre: int, max_nodes: int
) -> Neighbourhood:
    """Returns the node `centre` and its neighbours, ordered by decreasing weight of their edges.

    With a query, ties are ordered by PageRank.
    """
    pagerank: PageRankResult | None = None
    note = None
    if context is not None:
        ranking = MODES[mode].rank(context)
        pagerank, note = _pagerank(context, ranking, top_hits(context, ranking, context.k))
    rows, weights = _adjacent(snapshot, centre)
    mass = np.zeros(len(rows)) if pagerank is None else pagerank.ranks[rows]
    order = np.lexsort((rows, -mass, -weights))
    nodes = np.concatenate([[centre], rows[order][: max_nodes - 1]]).astype(np.int64)
    edges = listed_edges(snapshot, nodes, pagerank, centre=True)
    shares = (None, None) if pagerank is None else (pagerank.ranks[nodes], _reset_probabilities(pagerank)[nodes])
    return Neighbourhood(snapshot, nodes, edges, shares[0], shares[1], note=note, neighbours=len(rows))


def _pagerank(context: QueryContext, ranking: Ranking, hits: Sequence[Hit]) -> tuple[PageRankResult | None, str | None]:
    """Returns the walk that ranked the passages, or else a walk from the passages found, and a note for the user."""
    if ranking.pagerank is not None or not hits:
        return ranking.pagerank, ranking.note
    reset = PassageWeights(np.array(sorted(hit.row for hit in hits)), np.ones(len(hits)))
    pagerank = rank_by_pagerank(context, (), reset, HIPPORAG2_WEIGHTS).pagerank
    note = "the mode ranks passages without a walk; the graph shows what a walk from these passages reaches"
    return pagerank, f"{ranking.note}; {note}" if ranking.note else note


def _paths(
    snapshot: Snapshot, pagerank: PageRankResult, ranking: Ranking, hits: Sequence[Hit]
) -> tuple[PassagePath, ...]:
    if ranking.pagerank is None:
        return ()
    search, first = StrongestPathSearch(snapshot, pagerank), snapshot.n_phrases
    # The search needs the scores before they are scaled to sum to 1.
    whole = float(pagerank.walk.reset.sum())
    total = whole * unscaled_sum(pagerank.walk.reset / whole, pagerank.walk.graph.degrees, pagerank.walk.damping)
    paths = []
    for hit in hits:
        if hit.row in ranking.links:
            continue
        score = float(ranking.scores[hit.row]) * total
        found = search.to(passage_target(snapshot, pagerank, hit.row), score, MIN_PATH_SHARE) if score > 0 else None
        if found is not None:
            share, nodes = found
            last = [first + hit.row] if pagerank.walk.through_phrases else []
            paths.append(PassagePath(hit.row, min(share, 1.0), (*nodes, *last)))
    return tuple(paths)


def _heaviest(ranks: Floats, count: int) -> Rows:
    """Returns at most `count` nodes with the highest PageRank, highest first, without nodes of rank 0."""
    rows = np.argpartition(ranks, -count)[-count:] if len(ranks) > count else np.arange(len(ranks))
    rows = rows[ranks[rows] > 0]
    found: Rows = rows[np.lexsort((rows, -ranks[rows]))]
    return found


def _first_nodes(*parts: Iterable[int], max_nodes: int) -> Rows:
    """Returns the first `max_nodes` distinct nodes of the parts, in order."""
    nodes = dict.fromkeys(int(node) for part in parts for node in part)
    return np.array(list(nodes)[:max_nodes], np.int64)


def _reset_probabilities(pagerank: PageRankResult) -> Floats:
    """Returns the reset probabilities, shape (all nodes,), which sum to 1."""
    scaled: Floats = pagerank.walk.reset / pagerank.walk.reset.sum()
    return scaled


def _adjacent(snapshot: Snapshot, centre: int) -> tuple[Rows, Floats]:
    """Returns the distinct neighbours of `centre`, and for each the weight of its heaviest edge."""
    first = snapshot.n_phrases
    if centre >= first:
        columns, values = snapshot.context.row(centre - first)
        return columns.astype(np.int64), values
    parts: list[tuple[NDArray[Any], Floats]]
    parts = [
        snapshot.relation.row(centre),
        snapshot.mention.row(centre),
        snapshot.synonym.row(centre),
        _passages_with(snapshot.context, centre, first),
    ]
    rows = np.concatenate([np.asarray(part[0], np.int64) for part in parts])
    values = np.concatenate([part[1] for part in parts])
    unique, inverse = np.unique(rows, return_inverse=True)
    heaviest: Floats = np.zeros(len(unique))
    np.maximum.at(heaviest, inverse, values)
    kept = unique != centre
    return unique[kept], heaviest[kept]


def _passages_with(context: MatrixView, phrase: int, first: int) -> tuple[NDArray[Any], Floats]:
    _, passages = context.column_entries(np.array([phrase]))
    return passages.astype(np.int64) + first, np.ones(len(passages))
