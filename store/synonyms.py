"""Synonym edges, kept up as phrases come and go.

Two phrases are a pair when their cosine reaches the threshold (HippoRAG, section 2.2: "synonymy edges"). A pair is an edge
when one of the two counts the other among its `cap` nearest living phrases, ties going to the smaller text. That depends
on which phrases live and on nothing else, so any order of arrival ends in the same edges:

- A phrase with at most `cap` pairs is *open*: all its pairs are edges, and the graph itself is the record of them.
- One with more is *crowded*: its nearest `cap` are kept in `Crowd.nearest`. When one of those dies the phrase is searched
  for again, because somebody who was not an edge moves up.

Cosines are compared as float32 values of float64 dot products, computed pair by pair: the blockwise product that finds
candidates may differ in its last bits with the shape of the block, the value that decides does not.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.growing import VectorsView
from store.sketches import SketchIndex, flips, meet, sketch

SLACK = 1e-4
"""By how much a blockwise cosine may fall short of the threshold before the pair is not looked at exactly."""

TOGETHER = 16_384
"""Candidate pairs that are compared at a time."""

TILE = (512, 8192)
"""Queries and candidates compared at a time: 16 MB of cosines, which stay in the processor's cache."""

EXACT_BELOW = 8_192
"""Phrases up to which each new one is compared with every other: simpler, and about as fast as `store.sketches` up to there
(`bench growth`, "crossover"). Both find the same pairs."""

MOST_FLIPS = 2
"""With a threshold that needs more, below 0.6, looking through the bands costs more than comparing with all."""

Pair = tuple[int, int]


def linkable(phrase: str) -> bool:
    """Phrases of two alphanumeric characters or fewer get no synonym edges (HippoRAG's rule)."""
    found = 0
    for character in phrase:
        found += character.isalnum()
        if found > 2:
            return True
    return False


def similar(
    vectors: VectorsView,
    extra: NDArray[np.float32],
    candidates: NDArray[np.bool_],
    queries: NDArray[Any],
    threshold: float,
    sketches: SketchIndex | None = None,
    by_rule: bool = True,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Pairs (query row, candidate row, cosine) with cosine >= threshold that meet (`store.sketches`), without pairs of a row
    with itself; with `by_rule` false those that do not meet too, which takes comparing with all.

    `extra` are vectors of rows that follow those in `vectors`, shape (k, dim); `candidates` covers both, shape (n + k,);
    `queries` are row numbers, any of them; `sketches`, where given, are of the rows of `vectors`.
    """

    def take(rows: NDArray[Any]) -> NDArray[np.float32]:
        old = rows < vectors.n
        out = np.empty((len(rows), vectors.dim), np.float32)
        out[old] = vectors.rows(rows[old])
        out[~old] = extra[rows[~old] - vectors.n]
        return out

    queries = np.asarray(queries, np.int64)
    if not by_rule or flips(threshold) > MOST_FLIPS:
        sketches = None
    blocks = [(vectors.n, extra)] if sketches is not None else [*vectors.blocks(), (vectors.n, extra)]
    a, b = _blockwise(take, blocks, candidates, queries, threshold)
    if sketches is not None and len(queries):
        asking, rows = sketches.candidates(take(queries), threshold)
        here = candidates[rows]
        a, b = np.concatenate([queries[asking[here]], a]), np.concatenate([rows[here], b])
    a, b = a[a != b], b[a != b]
    near, scores = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    for begin in range(0, len(a), TOGETHER):
        x, y = take(a[begin : begin + TOGETHER]), take(b[begin : begin + TOGETHER])
        # Most candidates are far from a pair: what decides is worked out for those that are not.
        maybe = np.flatnonzero(np.einsum("ij,ij->i", x, y) >= threshold - SLACK)
        exact = (x[maybe].astype(np.float64) * y[maybe].astype(np.float64)).sum(axis=1).astype(np.float32)
        kept = np.flatnonzero(exact >= np.float32(threshold))
        if by_rule:
            kept = kept[meet(sketch(x[maybe[kept]]), sketch(y[maybe[kept]]), threshold)]
        near.append(maybe[kept] + begin)
        scores.append(exact[kept])
    pairs = np.concatenate(near)
    return a[pairs], b[pairs], np.concatenate(scores)


def _blockwise(
    take: Callable[[NDArray[Any]], NDArray[np.float32]],
    blocks: Sequence[tuple[int, NDArray[np.float32]]],
    candidates: NDArray[np.bool_],
    queries: NDArray[np.int64],
    threshold: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs that may reach the threshold, by comparing each query with each vector of `blocks` ((first row, vectors))."""
    left: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    right: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    for begin in range(0, len(queries), TILE[0]):
        part = queries[begin : begin + TILE[0]]
        asked = take(part)
        for start, block in blocks:
            for first in range(0, len(block), TILE[1]):
                tile = block[first : first + TILE[1]]
                cosines = asked @ tile.T
                # Most queries have no pair in most tiles: one pass for the maxima instead of four over all cosines.
                some = np.flatnonzero(cosines.max(axis=1) >= threshold - SLACK)
                if not len(some):
                    continue
                hits = cosines[some] >= threshold - SLACK
                hits &= candidates[start + first : start + first + len(tile)]
                q, c = np.nonzero(hits)
                left.append(part[some[q]])
                right.append(c + start + first)
    return np.concatenate(left), np.concatenate(right)


@dataclass(slots=True)
class Crowd:
    """A phrase with more pairs than the cap: how many pairs, and its nearest `cap` with their cosines."""

    pairs: int
    nearest: dict[int, float]


@dataclass(slots=True)
class SynonymChange:
    """What one commit does to the synonym edges: `weights` of changed pairs (0 = no longer an edge), old ones beside."""

    weights: dict[Pair, float] = field(default_factory=dict)
    before: dict[Pair, float] = field(default_factory=dict)
    pair_counts: dict[int, int] = field(default_factory=dict)
    crowds: dict[int, Crowd | None] = field(default_factory=dict)


class SynonymPlanner:
    """Works out a `SynonymChange` without touching the live state, which it reads through the given functions.

    `search(rows, alive)` gives all pairs of `rows` with living phrases; `edges(rows)` the present edges of `rows`.
    """

    def __init__(
        self,
        cap: int,
        text: Callable[[int], str],
        pair_count: Callable[[int], int],
        crowd: Callable[[int], Crowd | None],
        edges: Callable[[Sequence[int]], Iterable[tuple[int, int, float]]],
        search: Callable[[Sequence[int], bool], Iterable[tuple[int, int, float]]],
    ) -> None:
        self._cap = cap
        self._text = text
        self._pair_count = pair_count
        self._crowd = crowd
        self._edges = edges
        self._search = search
        self._change = SynonymChange()

    def plan(self, died: Sequence[int], born: Sequence[int]) -> SynonymChange:
        if died:
            self._deaths(died)
        if born:
            self._births(born)
        change = self._change
        for pair in [pair for pair, weight in change.weights.items() if weight == change.before[pair]]:
            del change.weights[pair], change.before[pair]
        return change

    def _count(self, row: int) -> int:
        return self._change.pair_counts.get(row, self._pair_count(row))

    def _crowd_of(self, row: int) -> Crowd | None:
        return self._change.crowds[row] if row in self._change.crowds else self._crowd(row)

    def _writable_crowd(self, row: int, crowd: Crowd) -> Crowd:
        if row not in self._change.crowds:
            crowd = Crowd(crowd.pairs, dict(crowd.nearest))
            self._change.crowds[row] = crowd
        return crowd

    def _set(self, a: int, b: int, weight: float, present: float) -> None:
        """Sets the weight of the pair; `present` is its weight before this commit, used at the pair's first mention."""
        pair = (a, b) if a < b else (b, a)
        self._change.before.setdefault(pair, present)
        self._change.weights[pair] = weight

    def _nearest(self, pairs: Iterable[tuple[int, float]]) -> dict[int, float]:
        ordered = sorted(pairs, key=lambda item: (-item[1], self._text(item[0])))
        return dict(ordered[: self._cap])

    def _counts_as_near(self, row: int, other: int) -> bool:
        crowd = self._crowd_of(row)
        return crowd is None or other in crowd.nearest

    def _deaths(self, died: Sequence[int]) -> None:
        gone = set(died)
        crowded = [row for row in died if self._crowd_of(row) is not None]
        pairs = {(a, b): w for a, b, w in self._edges(died)}
        for (a, b), weight in pairs.items():
            self._set(a, b, 0.0, weight)
        # A crowded phrase has pairs that are no edges; they too count for those it leaves behind.
        all_pairs = {pair: w for pair, w in pairs.items() if pair[0] not in crowded}
        all_pairs.update({(a, b): w for a, b, w in self._search(crowded, True)} if crowded else {})
        refill: set[int] = set()
        for a, b in all_pairs:
            if b in gone:
                continue
            self._change.pair_counts[b] = self._count(b) - 1
            crowd = self._crowd_of(b)
            if crowd is not None:
                crowd = self._writable_crowd(b, crowd)
                crowd.pairs -= 1
                if a in crowd.nearest or crowd.pairs <= self._cap:
                    refill.add(b)
        for row in died:
            self._change.pair_counts[row] = 0
            if self._crowd_of(row) is not None:
                self._change.crowds[row] = None
        if refill:
            self._refill(sorted(refill), gone)

    def _refill(self, rows: Sequence[int], gone: set[int]) -> None:
        found: dict[int, list[tuple[int, float]]] = {row: [] for row in rows}
        for a, b, weight in self._search(rows, True):
            if b not in gone:
                found[a].append((b, weight))
        present = {(a, b): w for a, b, w in self._edges(rows)}
        for row in rows:
            if len(found[row]) <= self._cap:
                self._change.crowds[row] = None
                near = dict(found[row])
            else:
                near = self._nearest(found[row])
                self._change.crowds[row] = Crowd(len(found[row]), near)
            for other, weight in near.items():
                self._set(row, other, weight, present.get((row, other), 0.0))

    def _births(self, born: Sequence[int]) -> None:
        fresh: dict[int, dict[int, float]] = {}
        for a, b, weight in self._search(born, False):
            fresh.setdefault(a, {})[b] = weight
            fresh.setdefault(b, {})[a] = weight
        crowding: list[int] = []
        for row, pairs in fresh.items():
            count = self._count(row) + len(pairs)
            self._change.pair_counts[row] = count
            if count > self._cap and self._crowd_of(row) is None:
                crowding.append(row)
        newborn = set(born)
        older = [row for row in crowding if row not in newborn]
        present: dict[int, dict[int, float]] = {row: {} for row in crowding}
        if older:
            for a, b, weight in self._edges(older):
                present[a][b] = weight
        # Edges that this commit itself took or gave (deaths, refills) stand in the change, not in the graph yet.
        for (a, b), weight in self._change.weights.items():
            for row, other in ((a, b), (b, a)):
                if row in present:
                    if weight:
                        present[row][other] = weight
                    else:
                        present[row].pop(other, None)
        evicted: dict[Pair, float] = {}
        for row, pairs in fresh.items():
            if self._change.pair_counts[row] <= self._cap:
                continue
            crowd = self._crowd_of(row)
            if crowd is not None:
                crowd = self._writable_crowd(row, crowd)
                known = crowd.nearest
            else:
                known = present[row]
            near = self._nearest({**known, **pairs}.items())
            self._change.crowds[row] = Crowd(self._change.pair_counts[row], near)
            for other, weight in known.items():
                if other not in near:
                    evicted[(row, other) if row < other else (other, row)] = weight
        for a, others in fresh.items():
            for b, weight in others.items():
                if a < b and (self._counts_as_near(a, b) or self._counts_as_near(b, a)):
                    self._set(a, b, weight, 0.0)
        for (a, b), weight in evicted.items():
            if not self._counts_as_near(a, b) and not self._counts_as_near(b, a):
                self._set(a, b, 0.0, weight)
