"""Synonym edges, kept up as phrases come and go.

Two phrases are a pair when their cosine reaches the threshold (HippoRAG, section 2.2: "synonymy edges"), neither is crowded
(`store.index.crowding`), and they differ in more than numbers (`store.index.numbers`). A pair is an edge when one of the two
counts the other among its `cap` nearest, ties going to the smaller text. That depends on which phrases live and on nothing
else, so any order of arrival ends in the same edges.

The graph is the only record. A phrase's nearest are the `cap` nearest of its edges: what it counts among its nearest is an
edge, and an edge that only the other end asks for is farther away than all of them. A phrase with fewer edges than `cap` has
no other pairs. One with `cap` or more is searched for again when one of its nearest goes, because somebody who was not an
edge moves up.

Pairs are looked at some at a time, and of each phrase no more than its nearest `cap` stay (`Nearest`). So a change takes
memory for `cap` pairs of each phrase that it concerns, however many pairs there are.

Cosines are compared as float32 values of float64 dot products, computed pair by pair: the blockwise product that finds
candidates may differ in its last bits with the shape of the block, the value that decides does not.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.arrays import VectorsView
from store.index.lsh import WORDS, Sketches, SketchIndex, flips, meet, sketch
from store.index.numbers import is_number, without_numbers

SLACK = 1e-4
"""By how much a blockwise cosine may fall short of the threshold before the pair is not looked at exactly."""

COMPARED_PAIRS = 1_024
"""Candidate pairs that are compared at a time."""

GATHERED_PAIRS = 1 << 18
"""Candidate pairs that are gathered before they are compared: 4 MB."""

CUT_PAIRS = 1 << 19
"""Pairs that `Nearest` holds, 12 MB, before it leaves out those that are not among the nearest; and how many it orders at a
time, but for a row that has more."""

TILE = (256, 8192)
"""Queries and candidates compared at a time: 8 MB of cosines, which stay in the processor's cache."""

EXACT_BELOW = 8_192
"""Phrases up to which each new one is compared with every other: simpler, and about as fast as `store.index.lsh` up to there
(`bench growth`, "crossover"). Both find the same pairs."""

MOST_FLIPS = 2
"""With a threshold that needs more, below 0.6, looking through the bands costs more than comparing with all."""

Rows = NDArray[np.int64]
Scored = tuple[Rows, Rows, NDArray[np.float64]]
"""(row, other row, cosine) of pairs, three arrays of one length."""


def linkable(phrase: str) -> bool:
    """Phrases of two alphanumeric characters or fewer get no synonym edges (HippoRAG's rule), nor do numbers and dates."""
    found = 0
    for character in phrase:
        found += character.isalnum()
        if found > 2:
            return not is_number(phrase)
    return False


def wordings(phrases: Iterable[str]) -> Rows:
    """For each phrase a number that phrases share which differ in numbers alone: those are no pairs. Holds in one process."""
    return np.fromiter((hash(without_numbers(phrase)) for phrase in phrases), np.int64)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which pairs a search may leave out: those that are among the nearest `cap` of neither end.

    `hears`: by candidate row, the cosine that a pair needs to be among that row's nearest; infinity for a row that does not
    want to know. What a query needs, the search finds out as it goes.
    """

    cap: int
    hears: NDArray[np.float32]


def similar(
    vectors: VectorsView,
    extra: NDArray[np.float32],
    candidates: NDArray[np.bool_],
    queries: NDArray[Any],
    threshold: float,
    sketches: SketchIndex | None = None,
    by_rule: bool = True,
    wanted: Wanted | None = None,
    through_bands: bool = True,
    wording: Callable[[Rows], Rows] | None = None,
) -> Iterator[Scored]:
    """Pairs (query row, candidate row, cosine) with cosine >= threshold that meet (`store.sketches`), without pairs of a row
    with itself, some at a time; with `by_rule` false those that do not meet too, which takes comparing with all.

    `extra` are vectors of rows that follow those in `vectors`, shape (k, dim); `candidates` covers both, shape (n + k,);
    `queries` are row numbers, any of them; `sketches`, where given, are of the rows of `vectors`, and candidates are found by
    them if `through_bands`. Without `wanted` all pairs come. `wording` gives the `wordings` of rows; where
    two share one, they are no pair.
    """

    def take(rows: NDArray[Any]) -> NDArray[np.float32]:
        old = rows < vectors.n
        out = np.empty((len(rows), vectors.dim), np.float32)
        out[old] = vectors.rows(rows[old])
        out[~old] = extra[rows[~old] - vectors.n]
        return out

    queries = np.asarray(queries, np.int64)
    through_bands &= by_rule and flips(threshold) <= MOST_FLIPS
    extra_sketches = sketch(extra) if by_rule else None

    def sketches_of(rows: Rows) -> Sketches:
        if sketches is None or extra_sketches is None:
            each, places = np.unique(rows, return_inverse=True)
            return sketch(take(each))[places]
        out = np.empty((len(rows), WORDS), np.uint64)
        old = rows < vectors.n
        out[old], out[~old] = sketches.view()[rows[old]], extra_sketches[rows[~old] - vectors.n]
        return out

    comparison = _Comparison(take, sketches_of, candidates, threshold, by_rule, wanted, wording)
    for a, b in _gathered(_candidates(comparison, vectors, extra, queries, sketches if through_bands else None)):
        for begin in range(0, len(a), GATHERED_PAIRS):
            left, right = a[begin : begin + GATHERED_PAIRS], b[begin : begin + GATHERED_PAIRS]
            scores = comparison.exactly(left, right)
            kept = np.flatnonzero(scores)
            if len(kept):
                yield left[kept], right[kept], scores[kept].astype(np.float64)


def _gathered(pieces: Iterable[tuple[Rows, Rows]]) -> Iterator[tuple[Rows, Rows]]:
    """The same pairs in fewer and larger pieces."""
    waiting: list[tuple[Rows, Rows]] = []
    count = 0
    for piece in pieces:
        waiting.append(piece)
        count += len(piece[0])
        if count >= GATHERED_PAIRS:
            yield np.concatenate([a for a, _ in waiting]), np.concatenate([b for _, b in waiting])
            waiting, count = [], 0
    if count:
        yield np.concatenate([a for a, _ in waiting]), np.concatenate([b for _, b in waiting])


def _candidates(
    comparison: "_Comparison",
    vectors: VectorsView,
    extra: NDArray[np.float32],
    queries: Rows,
    sketches: SketchIndex | None,
) -> Iterator[tuple[Rows, Rows]]:
    """Pairs that may reach the threshold, by the sketches where those help."""
    every = vectors.blocks()
    added = [(vectors.n, extra)]
    if sketches is None:
        yield from comparison.blockwise([*every, *added], queries)
        return
    yield from comparison.blockwise(added, queries)
    candidates = comparison.candidates[: vectors.n]
    for first, end, found in sketches.candidates(comparison.take, queries, candidates, comparison.threshold):
        if found is None:
            # So many share a band that comparing with all costs less.
            yield from comparison.blockwise(every, queries[first:end])
        else:
            which, rows = found
            yield queries[first:end][which], rows


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One search: `take` and `sketches` give the vectors and the sketches of rows, the rest is as of `similar`."""

    take: Callable[[NDArray[Any]], NDArray[np.float32]]
    sketches: Callable[[Rows], Sketches]
    candidates: NDArray[np.bool_]
    threshold: float
    by_rule: bool
    wanted: Wanted | None
    wording: Callable[[Rows], Rows] | None

    def exactly(self, a: Rows, b: Rows) -> NDArray[np.float32]:
        """The cosine of each pair (a[i], b[i]), 0 for those that are no pairs."""
        scores = np.zeros(len(a), np.float32)
        for begin in range(0, len(a), COMPARED_PAIRS):
            part = slice(begin, begin + COMPARED_PAIRS)
            scores[part] = self._exactly(a[part], b[part])
        return scores

    def _exactly(self, a: Rows, b: Rows) -> NDArray[np.float32]:
        x, y = self.take(a), self.take(b)
        scores = np.zeros(len(a), np.float32)
        # Most candidates are far from a pair: what decides is worked out for those that are not.
        maybe = np.flatnonzero((np.einsum("ij,ij->i", x, y) >= self.threshold - SLACK) & (a != b))
        if len(maybe) < len(a):
            x, y = x[maybe], y[maybe]
        exact = np.multiply(x, y, dtype=np.float64).sum(axis=1).astype(np.float32)
        kept = np.flatnonzero(exact >= np.float32(self.threshold))
        near = maybe[kept]
        kept = kept[self._meet(a[near], b[near])]
        scores[maybe[kept]] = exact[kept]
        return scores

    def blockwise(
        self, blocks: Sequence[tuple[int, NDArray[np.float32]]], queries: Rows
    ) -> Iterator[tuple[Rows, Rows]]:
        """Pairs that may reach the threshold, by comparing each query with each vector of `blocks` ((first row, vectors))."""
        for begin in range(0, len(queries), TILE[0]):
            part = queries[begin : begin + TILE[0]]
            asked, needs = self.take(part), np.full(len(part), self.threshold, np.float32)
            for start, block in blocks:
                for first in range(0, len(block), TILE[1]):
                    cosines = asked @ block[first : first + TILE[1]].T
                    # Most queries have no pair in most tiles: one pass for the maxima instead of four over all cosines.
                    some = np.flatnonzero(cosines.max(axis=1, initial=-1) >= self.threshold - SLACK)
                    if len(some):
                        q, c = self._hits(cosines[some], some, needs, part, start + first)
                        yield part[some[q]], c + (start + first)

    def _can_be_pairs(self, rows: Rows, others: Rows) -> NDArray[np.bool_]:
        """Whether rows[i] and others[i, j] are two and may be a pair but for their cosine; shape of `others`."""
        ones, twos = np.repeat(rows, others.shape[1]), others.ravel()
        shaped: NDArray[np.bool_] = ((ones != twos) & self._meet(ones, twos)).reshape(others.shape)
        return shaped

    def _meet(self, ones: Rows, twos: Rows) -> NDArray[np.bool_]:
        """Which (ones[i], twos[i]) are a pair by what is not their cosine."""
        can = np.ones(len(ones), np.bool_) if self.wording is None else self.wording(ones) != self.wording(twos)
        if self.by_rule:
            can &= meet(self.sketches(ones), self.sketches(twos), self.threshold)
        return can

    def _hits(
        self, cosines: NDArray[np.float32], some: Rows, needs: NDArray[np.float32], part: Rows, first: int
    ) -> tuple[Rows, Rows]:
        """Which (query of `some`, column) to look at exactly. `needs`: by query of `part`, the cosine that a pair needs to be
        among its nearest as far as is known; raised where one has many pairs here."""
        hits = cosines >= self.threshold - SLACK
        hits &= self.candidates[first : first + cosines.shape[1]]
        if self.wanted is None:
            return _places(hits)
        cap, hears = self.wanted.cap, self.wanted.hears[first : first + cosines.shape[1]]
        hits &= (cosines >= (needs[some] - SLACK)[:, None]) | (cosines >= hears - SLACK)
        many = np.flatnonzero(np.count_nonzero(hits, axis=1) > 2 * cap)
        if len(many):
            # Of the nearest here some are no pairs; where `cap` are left, what is farther away need not come.
            best = np.where(hits[many], cosines[many], np.float32(-1))
            columns = np.argpartition(best, -2 * cap, axis=1)[:, -2 * cap :]
            cosine = np.take_along_axis(best, columns, axis=1)
            cosine[~self._can_be_pairs(part[some[many]], columns + first)] = 0.0
            needed = np.partition(cosine, cap, axis=1)[:, cap] - SLACK
            needs[some[many]] = np.maximum(needs[some[many]], needed)
            hits[many] &= (cosines[many] >= (needs[some[many]] - SLACK)[:, None]) | (cosines[many] >= hears - SLACK)
        return _places(hits)


def _places(hits: NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """(row, column) of what is true."""
    rows, columns = np.nonzero(hits)
    return rows.astype(np.int64, copy=False), columns.astype(np.int64, copy=False)


class Nearest:
    """Takes pairs in any order and keeps for each row those with its `cap` nearest others, ties going to the smaller text."""

    def __init__(self, cap: int, text: Callable[[int], str]) -> None:
        self._cap = cap
        self._text = text
        self._found: tuple[list[NDArray[Any]], ...] = [], [], []
        self._count = 0
        self._cut_at = CUT_PAIRS

    def add(self, rows: Rows, others: Rows, scores: NDArray[np.float64]) -> None:
        """Takes more pairs, each of which comes once."""
        if not len(rows):
            return
        self._hold(rows, others, scores)
        if self._count >= self._cut_at:
            self.pairs()
            # Where most of them stay, the next cut waits until there are half as many again.
            self._cut_at = max(CUT_PAIRS, self._count + self._count // 2)

    def _hold(self, rows: Rows, others: Rows, scores: NDArray[np.float64]) -> None:
        for column, part in zip(self._found, (rows, others, scores), strict=True):
            column.append(part)
        self._count += len(rows)

    def pairs(self) -> Scored:
        """(row, other, cosine) of all that are among the nearest of their row so far, by row."""
        if not self._count:
            return NO_PAIRS
        rows, others, scores = (_joined(column) for column in self._found)
        many = np.bincount(rows)[rows] > self._cap
        kept = np.flatnonzero(~many)
        if many.any():
            kept = np.concatenate([kept, *self._nearest(np.flatnonzero(many), rows, others, scores)])
        kept = kept[np.argsort(rows[kept], kind="stable")]
        found = rows[kept], others[kept], scores[kept]
        self._count = 0
        self._hold(*found)
        return found

    def _nearest(self, inside: Rows, rows: Rows, others: Rows, scores: NDArray[np.float64]) -> Iterator[Rows]:
        """The members of `inside` that are among the nearest of their row, some rows at a time."""
        inside = inside[np.argsort(rows[inside], kind="stable")]
        ordered = rows[inside]
        start = 0
        while start < len(inside):
            # A row's pairs are cut together.
            end = np.searchsorted(ordered, ordered[min(start + CUT_PAIRS, len(inside)) - 1], side="right")
            yield self._cut(inside[start:end], rows, others, scores)
            start = int(end)

    def _cut(self, inside: Rows, rows: Rows, others: Rows, scores: NDArray[np.float64]) -> Rows:
        """The members of `inside` that are among the nearest of their row."""
        names, places = np.unique(others[inside], return_inverse=True)
        ranks = np.empty(len(names), np.int64)
        ranks[sorted(range(len(names)), key=[self._text(row) for row in names.tolist()].__getitem__)] = np.arange(
            len(names)
        )
        order = np.lexsort((ranks[places], -scores[inside], rows[inside]))
        ordered = rows[inside][order]
        begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        place = np.arange(len(ordered)) - np.repeat(begins, np.diff(np.append(begins, len(ordered))))
        return inside[order[place < self._cap]]


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """All `parts` as one; leaves none of them."""
    whole: NDArray[Any] = parts[0] if len(parts) == 1 else np.concatenate(parts)
    parts.clear()
    return whole


NO_PAIRS: Scored = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))


@dataclass(slots=True)
class SynonymChange:
    """What one commit does to the synonym edges: the new `weights` of pairs (a < b; 0 = no longer an edge), the old ones
    beside. Arrays of one length."""

    a: Rows = field(default_factory=lambda: NO_PAIRS[0])
    b: Rows = field(default_factory=lambda: NO_PAIRS[1])
    weights: NDArray[np.float64] = field(default_factory=lambda: NO_PAIRS[2])
    before: NDArray[np.float64] = field(default_factory=lambda: NO_PAIRS[2])
    rows: Rows = field(default_factory=lambda: NO_PAIRS[0])
    needs: NDArray[np.float64] = field(default_factory=lambda: NO_PAIRS[2])
    """What each of `rows` needs from now on: `SynonymPlanner.needs`."""


def needed(nearest: Scored, cap: int) -> tuple[Rows, NDArray[np.float64]]:
    """Of what `Nearest.pairs` gives: each row that has `cap` pairs, and the cosine of its farthest."""
    rows, _, scores = nearest
    begins = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]])) if len(rows) else np.empty(0, np.int64)
    counts = np.diff(np.append(begins, len(rows)))
    least = np.minimum.reduceat(scores, begins) if len(begins) else NO_PAIRS[2]
    return rows[begins[counts >= cap]], least[counts >= cap]


@dataclass(frozen=True, slots=True)
class SynonymPlanner:
    """Works out a `SynonymChange` without touching the live state, which it reads through the given functions.

    `edges(rows)` gives all present edges of known rows; `search(rows, wanted)` the wanted pairs of `rows` as they are after
    the change, some at a time. There are `n` rows. `needs`: by row, the cosine that a pair needs to be among its nearest, that
    of its farthest where it has `cap`, else 0; shape (n,).
    """

    cap: int
    n: int
    text: Callable[[int], str]
    edges: Callable[[Rows], Scored]
    search: Callable[[Rows, Wanted], Iterable[Scored]]
    needs: NDArray[np.float32]

    def plan(self, died: Rows, born: Rows) -> SynonymChange:
        """`died` and `born`: rows that can no longer have synonyms, and that can from now on."""
        dead = np.zeros(self.n, np.bool_)
        dead[died] = True
        ended = self.edges(died)
        bereft = self._bereft(dead, ended[1])
        searched = np.union1d(born, bereft)
        asked = np.zeros(self.n, np.bool_)
        asked[searched] = True
        nearest = Nearest(self.cap, self.text)
        hears = np.full(self.n, np.inf, np.float32)
        for a, b, scores in self.search(bereft, Wanted(self.cap, hears)) if len(bereft) else ():
            nearest.add(a, b, scores)
        # Those that are not searched for themselves hear of the newborn from them.
        hears = np.where(asked, np.float32(np.inf), self.needs)
        for a, b, scores in self.search(born, Wanted(self.cap, hears)) if len(born) else ():
            nearest.add(a, b, scores)
            back = ~asked[b]
            nearest.add(b[back], a[back], scores[back])
        concerned = np.union1d(searched, nearest.pairs()[0])
        present = self.edges(concerned)
        before = self._without(dead, self._cut(present))
        older = ~asked[before[0]]
        nearest.add(before[0][older], before[1][older], before[2][older])
        after = nearest.pairs()
        gained, lost = self._only(after, before), self._only(before, after)
        stays = self._counted(lost[1], lost[0], concerned, after)
        # Pairs that were no edge have no place among the present ones, and 0 for their weight.
        new = np.concatenate([np.zeros(len(ended[0])), gained[2], np.where(stays, lost[2], 0.0)])
        old = np.concatenate([ended[2], self._weights(gained, present), lost[2]])
        a, b = (np.concatenate([ended[side], gained[side], lost[side]]) for side in (0, 1))
        a, b = np.minimum(a, b), np.maximum(a, b)
        # A pair that was looked at from both ends got the same answer twice.
        _, once = np.unique(self._keys(a, b), return_index=True)
        once = once[new[once] != old[once]]
        now = np.zeros(self.n)
        rows, needs = needed(after, self.cap)
        now[rows] = needs
        rows = np.union1d(died, concerned)
        return SynonymChange(a[once], b[once], new[once], old[once], rows, now[rows])

    def _keys(self, a: Rows, b: Rows) -> Rows:
        return a * self.n + b

    def _cut(self, pairs: Scored) -> Scored:
        """Of the edges of some rows those that are among the row's nearest."""
        nearest = Nearest(self.cap, self.text)
        nearest.add(*pairs)
        return nearest.pairs()

    @staticmethod
    def _without(dead: NDArray[np.bool_], pairs: Scored) -> Scored:
        alive = ~dead[pairs[1]]
        return pairs[0][alive], pairs[1][alive], pairs[2][alive]

    def _bereft(self, dead: NDArray[np.bool_], neighbours: Rows) -> Rows:
        """The living among `neighbours` that have `cap` edges or more and lose one of their nearest: they may have pairs that
        were no edges, of which one moves up."""
        left = np.unique(neighbours)
        edges = self.edges(left[~dead[left]])
        rows, counts = np.unique(edges[0], return_counts=True)
        full = np.isin(edges[0], rows[counts >= self.cap])
        near = self._cut((edges[0][full], edges[1][full], edges[2][full]))
        return np.unique(near[0][dead[near[1]]])

    def _only(self, these: Scored, those: Scored) -> Scored:
        """The pairs of `these` that are not among `those`."""
        apart = ~np.isin(self._keys(these[0], these[1]), self._keys(those[0], those[1]))
        return these[0][apart], these[1][apart], these[2][apart]

    def _counted(self, rows: Rows, others: Rows, concerned: Rows, after: Scored) -> NDArray[np.bool_]:
        """For each pair, whether `row` counts `other` among its nearest after the change."""
        elsewhere = np.setdiff1d(rows, concerned)
        unchanged = self._cut(self.edges(elsewhere))
        counted = np.concatenate([self._keys(after[0], after[1]), self._keys(unchanged[0], unchanged[1])])
        found: NDArray[np.bool_] = np.isin(self._keys(rows, others), counted)
        return found

    def _weights(self, pairs: Scored, present: Scored) -> NDArray[np.float64]:
        """The present weights of the pairs, 0 where one is no edge."""
        keys = self._keys(present[0], present[1])
        order = np.argsort(keys)
        keys = keys[order]
        wanted = self._keys(pairs[0], pairs[1])
        places = np.searchsorted(keys, wanted).clip(max=max(len(keys) - 1, 0))
        if not len(keys):
            return np.zeros(len(wanted))
        found: NDArray[np.float64] = np.where(keys[places] == wanted, present[2][order][places], 0.0)
        return found
