"""The part of the graph that a query is about, within a set number of nodes however large the memory is.

Nodes are chosen by their PageRank from the query's seeds, edges by how much of it passes along them in a step: d (r(u) /
D(u) + r(v) / D(v)) times the edge's weight. What an answer is made of comes first: its passages, the strongest way to each,
the phrases it starts from. Everything is a handful of array operations; only what is chosen is ever looked at one by one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from memory.asking import Asked, Floats, Ranking, Walked
from memory.explain import passage_target
from memory.modes import MODES
from memory.modes.walking import HIPPORAG2, walk
from memory.retrieval import hits
from memory.types import Hit, Seed
from memory.ways import Ways
from store.matrix import MatrixView
from store.snapshot import Snapshot, column_entries
from store.types import Triple

MOST_NODES = 2_000
EDGES_A_NODE = 4
MOST_TRIPLES = 3
"""Most nodes of a neighbourhood, most edges for each of them, and triples told of one relation edge."""
LEAST_SHARE = 0.01
"""A way that less of a passage's score came along explains nothing; to find it would take a search of the whole graph."""
KINDS: tuple[Literal["relation", "synonym", "context"], ...] = ("relation", "synonym", "context")
FACTORS = np.array([HIPPORAG2.relation, HIPPORAG2.synonym, HIPPORAG2.context])
"""The kinds of edges, and what an edge's weight counts for in a walk."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Links:
    """Edges, each once. `sources` and `targets` index the neighbourhood's nodes, `kinds` index `KINDS`; shapes (edges,)."""

    sources: Rows
    targets: Rows
    kinds: Rows
    weights: Floats
    triples: tuple[tuple[Triple, ...], ...]
    """Of each: some of the triples that a relation edge stands for, by text."""
    there: int
    """How many edges there are between the nodes; those that most passes along were chosen."""
    degrees: Rows
    """How many edges each node has in the whole memory, shape (nodes,)."""


@dataclass(frozen=True, slots=True)
class Trail:
    """The strongest way to a passage, where it matters: `nodes` of the graph from the seed on, and the share of its score
    that came along."""

    passage: int
    share: float
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """`nodes` number the snapshot's phrases first, then its passages. `mass` is their PageRank and `reset` their part of the
    reset probability, shapes (nodes,); None where no query was asked."""

    snapshot: Snapshot
    nodes: Rows
    links: Links
    mass: Floats | None = None
    reset: Floats | None = None
    hits: tuple[Hit, ...] = ()
    seeds: tuple[Seed, ...] = ()
    trails: tuple[Trail, ...] = ()
    note: str | None = None
    neighbours: int | None = None
    """How many there are of the first node, where one was expanded."""


def neighbourhood(asked: Asked, mode: str, most: int) -> Neighbourhood:
    """The `most` nodes that matter to the query, found as `retrieve` finds its passages in `mode`."""
    ranking = MODES[mode](asked)
    snapshot, found = asked.snapshot, hits(asked, ranking, asked.k)
    walked, note = _walk(asked, ranking, found)
    if walked is None:
        return Neighbourhood(snapshot, np.empty(0, np.int64), _none(), note=note)
    first = snapshot.n_phrases
    trails = _trails(snapshot, walked, ranking, found)
    seeds = np.flatnonzero(walked.reset[:first] > 0)
    seeds = seeds[np.argsort(-walked.reset[seeds], kind="stable")]
    nodes = _together(
        [first + hit.row for hit in found],
        (node for trail in trails for node in trail.nodes),
        seeds.tolist(),
        _heaviest(walked.ranks, most).tolist(),
        most=most,
    )
    trails = tuple(trail for trail in trails if set(trail.nodes) <= set(nodes.tolist()))
    links = _links(snapshot, nodes, walked, trails)
    shares = walked.ranks[nodes], _reset(walked)[nodes]
    return Neighbourhood(snapshot, nodes, links, *shares, found, ranking.seeds, trails, note)


def around(asked: Asked | None, mode: str, snapshot: Snapshot, centre: int, most: int) -> Neighbourhood:
    """Node `centre` and its neighbours, those of the heaviest edges first; equal ones by PageRank where a query is asked."""
    walked: Walked | None = None
    note = None
    if asked is not None:
        ranking = MODES[mode](asked)
        walked, note = _walk(asked, ranking, hits(asked, ranking, asked.k))
    rows, weights = _adjacent(snapshot, centre)
    mass = np.zeros(len(rows)) if walked is None else walked.ranks[rows]
    order = np.lexsort((rows, -mass, -weights))
    nodes = np.concatenate([[centre], rows[order][: most - 1]]).astype(np.int64)
    links = _links(snapshot, nodes, walked, centre=True)
    shares = (None, None) if walked is None else (walked.ranks[nodes], _reset(walked)[nodes])
    return Neighbourhood(snapshot, nodes, links, shares[0], shares[1], note=note, neighbours=len(rows))


def _walk(asked: Asked, ranking: Ranking, found: Sequence[Hit]) -> tuple[Walked | None, str | None]:
    """The walk that ranked the passages, and what a user should know; where none did, one from the passages found."""
    if ranking.walked is not None or not found:
        return ranking.walked, ranking.note
    reset = np.zeros(asked.snapshot.n_passages)
    reset[[hit.row for hit in found]] = 1.0
    walked = walk(asked, (), reset, HIPPORAG2).walked
    note = "the passages were ranked without a walk: the graph is what one from them reaches"
    return walked, f"{ranking.note}; {note}" if ranking.note else note


def _trails(snapshot: Snapshot, walked: Walked, ranking: Ranking, found: Sequence[Hit]) -> tuple[Trail, ...]:
    if ranking.walked is None:
        return ()
    ways, first = Ways(snapshot, walked), snapshot.n_phrases
    # PageRank is scaled to sum to 1: by what falls on nodes without edges, which pass nothing on (see memory.ppr).
    alone = float(walked.reset[walked.walk.degrees <= 0].sum())
    whole = float(walked.reset.sum()) - walked.damping * alone
    trails = []
    for hit in found:
        score = float(ranking.scores[hit.row]) * whole
        way = ways.to(passage_target(snapshot, walked, hit.row), score, LEAST_SHARE) if score > 0 else None
        if way is not None:
            share, nodes = way
            through = [first + hit.row] if walked.through_phrases else []
            trails.append(Trail(hit.row, min(share, 1.0), (*nodes, *through)))
    return tuple(trails)


def _heaviest(ranks: Floats, most: int) -> Rows:
    """The nodes of most PageRank, heaviest first; none that has no more than rounding leaves."""
    rows = np.argpartition(ranks, -most)[-most:] if len(ranks) > most else np.arange(len(ranks))
    rows = rows[ranks[rows] > 0]
    found: Rows = rows[np.lexsort((rows, -ranks[rows]))]
    return found


def _together(*parts: Iterable[int], most: int) -> Rows:
    """The first `most` of all parts, each node once."""
    nodes = dict.fromkeys(int(node) for part in parts for node in part)
    return np.array(list(nodes)[:most], np.int64)


def _reset(walked: Walked) -> Floats:
    """Reset probabilities, shape (all nodes,), summing to 1."""
    scaled: Floats = walked.reset / walked.reset.sum()
    return scaled


def _none() -> Links:
    empty = np.empty(0, np.int64)
    return Links(empty, empty, empty, np.empty(0), (), 0, empty)


def _links(
    snapshot: Snapshot,
    nodes: Rows,
    walked: Walked | None,
    trails: Sequence[Trail] = (),
    *,
    centre: bool = False,
) -> Links:
    """The edges between `nodes`, at most `EDGES_A_NODE` times as many: those on `trails`, or of the node in front, first."""
    first = snapshot.n_phrases
    place = np.full(first + snapshot.n_passages, -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    phrases, passages = nodes[nodes < first], nodes[nodes >= first] - first
    degrees = np.zeros(len(place), np.int64)
    degrees[phrases] = snapshot.phrase_passages[phrases]
    parts = []
    for kind, view, rows, shift in (
        (0, snapshot.relation, phrases, 0),
        (1, snapshot.synonym, phrases, 0),
        (2, snapshot.context, passages, first),
    ):
        at, to, values = view.entries(rows)
        begins, ends = place[at.astype(np.int64) + shift], place[to]
        np.add.at(degrees, at.astype(np.int64) + shift, 1)
        both = (ends >= 0) & ((begins < ends) | (kind == 2))
        parts.append((begins[both], ends[both], np.full(int(both.sum()), kind), values[both]))
    sources, targets, kinds, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    passing = weights * FACTORS[kinds]
    if walked is not None:
        rates = np.divide(walked.ranks, walked.walk.degrees, out=np.zeros(len(place)), where=walked.walk.degrees > 0)
        passing *= rates[nodes[sources]] + rates[nodes[targets]]
    wanted = _on(trails, place, sources, targets) | (centre & ((sources == 0) | (targets == 0)))
    order = np.lexsort((targets, sources, kinds, -passing, ~wanted))[: EDGES_A_NODE * len(nodes)]
    kept = np.sort(order)
    sources, targets, kinds = sources[kept], targets[kept], kinds[kept]
    triples = _triples(snapshot, nodes, sources, targets, kinds)
    return Links(sources, targets, kinds, weights[kept], triples, len(passing), degrees[nodes])


def _on(trails: Sequence[Trail], place: Rows, sources: Rows, targets: Rows) -> NDArray[np.bool_]:
    """Which edges lie on a trail."""
    width = len(place)
    steps = [(place[a], place[b]) for trail in trails for a, b in zip(trail.nodes, trail.nodes[1:], strict=False)]
    keys = {int(min(pair)) * width + int(max(pair)) for pair in steps}
    return np.isin(np.minimum(sources, targets) * width + np.maximum(sources, targets), list(keys))


def _triples(
    snapshot: Snapshot, nodes: Rows, sources: Rows, targets: Rows, kinds: Rows
) -> tuple[tuple[Triple, ...], ...]:
    """Some triples of each relation edge; nothing of the others."""
    first = snapshot.n_phrases
    found: list[list[Triple]] = [[] for _ in sources]
    relations = np.flatnonzero(kinds == 0)
    width = first + 1

    def key(a: NDArray[Any], b: NDArray[Any]) -> Rows:
        pairs: Rows = np.minimum(a, b).astype(np.int64) * width + np.maximum(a, b)
        return pairs

    wanted = key(nodes[sources[relations]], nodes[targets[relations]])
    chosen = np.zeros(first, np.bool_)
    chosen[nodes[nodes < first]] = True
    ends = snapshot.triple_ends
    rows = np.flatnonzero(chosen[ends[:, 0]] & chosen[ends[:, 1]] & snapshot.triple_alive)
    order = np.argsort(wanted)
    keys = key(*ends[rows].T)
    at = np.searchsorted(wanted, keys, sorter=order)
    there = (at < len(wanted)) & (wanted[order[np.minimum(at, len(wanted) - 1)]] == keys) if len(wanted) else keys < 0
    for row, edge in zip(rows[there].tolist(), relations[order[at[there]]].tolist(), strict=True):
        found[edge].append(snapshot.triple(row))
    return tuple(tuple(sorted(each)[:MOST_TRIPLES]) for each in found)


def _adjacent(snapshot: Snapshot, centre: int) -> tuple[Rows, Floats]:
    """The nodes joined to `centre`, each once, and the weight of the heaviest edge to it."""
    first = snapshot.n_phrases
    if centre >= first:
        columns, values = snapshot.context.row(centre - first)
        return columns.astype(np.int64), values
    parts: list[tuple[NDArray[Any], Floats]]
    parts = [snapshot.relation.row(centre), snapshot.synonym.row(centre), _held_by(snapshot.context, centre, first)]
    rows = np.concatenate([np.asarray(part[0], np.int64) for part in parts])
    values = np.concatenate([part[1] for part in parts])
    unique, inverse = np.unique(rows, return_inverse=True)
    heaviest: Floats = np.zeros(len(unique))
    np.maximum.at(heaviest, inverse, values)
    kept = unique != centre
    return unique[kept], heaviest[kept]


def _held_by(context: MatrixView, phrase: int, first: int) -> tuple[NDArray[Any], Floats]:
    _, passages = column_entries(context, np.array([phrase]))
    return passages.astype(np.int64) + first, np.ones(len(passages))
