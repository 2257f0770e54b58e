"""The search for pairs of phrases that may be synonyms: all with all, or by sketches (`lsh`), in pieces of bounded memory.

Cosines are compared as float32 values of float64 dot products, computed pair by pair: the blockwise product that finds
candidates may differ in its last bits with the shape of the block, the value that decides does not.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.fixed_point import Fixed, floats
from store.index.file_arrays import read_ahead
from store.index.parallel import in_parallel, processors
from store.index.synonyms.changed_flags import Flags
from store.index.synonyms.lsh import WORDS, Sketches, bands, meet, sketch
from store.index.synonyms.numbers import is_number
from store.index.synonyms.pairs import Rows, Scored
from store.index.synonyms.phrase_variants import PairRule
from store.index.synonyms.sketch_index import SketchIndex
from store.index.vectors.matrix import VectorsView
from store.text.scripts import has_cjk

SLACK = 1e-4
"""By how much a blockwise cosine may fall short of the threshold before the pair is not looked at exactly."""

COMPARED_PAIRS = 1_024
"""Candidate pairs that are compared at a time."""

ROUGHLY_COMPARED_PAIRS = 4_096
"""Candidate pairs that are compared by codes at a time: 6 MB of each side."""

GATHERED_PAIRS = 1 << 18
"""Candidate pairs that are gathered before they are compared: 4 MB."""

TILE = (256, 8192)
"""Queries and candidates compared at a time: 8 MB of cosines, which stay in the processor's cache."""

EXACT_BELOW = 8_192
"""Phrases up to which each new one is compared with every other: simpler, and about as fast as sketches (`lsh`) up to there
(`bench growth`, "crossover"). Both find the same pairs."""


def linkable(phrase: str) -> bool:
    """Phrases of two alphanumeric characters or fewer get no synonym edges (HippoRAG's rule), nor do numbers and dates.

    The rule is about letters of an alphabet: a Chinese character, a kana or a Hangul syllable is no letter, and one is enough.
    """
    if has_cjk(phrase):
        return not is_number(phrase)
    found = 0
    for character in phrase:
        found += character.isalnum()
        if found > 2:
            return not is_number(phrase)
    return False


Candidates = tuple[Rows, Rows, NDArray[np.bool_]]
"""(row, other row, whether they are known to meet) of pairs, three arrays of one length."""


def similar(
    vectors: VectorsView,
    extra: Fixed,
    candidates: Flags,
    queries: NDArray[Any],
    threshold: float,
    sketches: SketchIndex | None = None,
    by_rule: bool = True,
    through_bands: bool = True,
    pair_rule: PairRule | None = None,
    extra_sketches: Sketches | None = None,
) -> Iterator[Scored]:
    """Pairs (query row, candidate row, cosine) with cosine >= threshold that meet (`store.index.synonyms.lsh`), some at a time,
    without pairs of a row with itself; with `by_rule` false those that do not meet too, which takes comparing with all.

    `extra` are vectors of rows that follow those in `vectors`, as they are kept; `candidates` covers both, shape (n + k,);
    `queries` are row numbers, any of them; `sketches`, where given, are of the rows of `vectors`, and candidates are found by
    them if `through_bands`. `pair_rule` rejects pairs by their texts. `extra_sketches`: those
    of `extra`, where they are known.
    """

    def take(rows: NDArray[Any]) -> NDArray[np.float32]:
        old = rows < vectors.n
        out = np.empty((len(rows), vectors.dim), np.float32)
        out[old] = vectors.rows(rows[old])
        out[~old] = floats(extra[rows[~old] - vectors.n])
        return out

    queries = np.asarray(queries, np.int64)
    through_bands &= by_rule and bands(threshold) > 0
    if by_rule and extra_sketches is None:
        extra_sketches = sketch(floats(extra))

    def sketches_of(rows: Rows) -> Sketches:
        if sketches is None or extra_sketches is None:
            each, places = np.unique(rows, return_inverse=True)
            return sketch(take(each))[places]
        out = np.empty((len(rows), WORDS), np.uint64)
        old = rows < vectors.n
        out[old], out[~old] = sketches.tail.sketches(rows[old], vectors.rows), extra_sketches[rows[~old] - vectors.n]
        return out

    comparison = _Comparison(take, vectors, sketches_of, candidates, threshold, by_rule, pair_rule)
    found = _candidates(comparison, vectors, extra, queries, sketches if through_bands else None)
    for a, b, met in _gathered(found):
        for begin in range(0, len(a), GATHERED_PAIRS):
            part = slice(begin, begin + GATHERED_PAIRS)
            left, right = a[part], b[part]
            scores = comparison.exactly(left, right, met[part])
            kept = np.flatnonzero(scores)
            if len(kept):
                yield left[kept], right[kept], scores[kept].astype(np.float64)


def _gathered(pieces: Iterable[Candidates]) -> Iterator[Candidates]:
    """The same pairs in fewer and larger pieces."""
    waiting: list[Candidates] = []
    count = 0
    for piece in pieces:
        waiting.append(piece)
        count += len(piece[0])
        if count >= GATHERED_PAIRS:
            yield _joined(waiting)
            waiting, count = [], 0
    if count:
        yield _joined(waiting)


def _joined(pieces: list[Candidates]) -> Candidates:
    a, b, met = zip(*pieces, strict=True)
    return np.concatenate(a), np.concatenate(b), np.concatenate(met)


def _candidates(
    comparison: "_Comparison",
    vectors: VectorsView,
    extra: Fixed,
    queries: Rows,
    sketches: SketchIndex | None,
) -> Iterator[Candidates]:
    """Pairs that may reach the threshold, by the sketches where those help."""
    added = [(vectors.n, floats(extra))]
    if sketches is None:
        yield from comparison.blockwise([*vectors.blocks(), *added], queries)
        return
    yield from comparison.blockwise(added, queries)
    vectors.page_in_codes()
    found_by = sketches.candidates(comparison.sketches, queries, comparison.candidates, comparison.threshold)
    for first, end, found in found_by:
        if found is None:
            # So many share a band that comparing with all costs less.
            yield from comparison.blockwise(vectors.blocks(), queries[first:end])
        else:
            which, rows = found
            yield queries[first:end][which], rows, np.ones(len(rows), np.bool_)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One search: `take` and `sketches` give the vectors and the sketches of rows, the rest is as of `similar`."""

    take: Callable[[NDArray[Any]], NDArray[np.float32]]
    vectors: VectorsView
    sketches: Callable[[Rows], Sketches]
    candidates: Flags
    threshold: float
    by_rule: bool
    pair_rule: PairRule | None

    def exactly(self, a: Rows, b: Rows, met: NDArray[np.bool_]) -> NDArray[np.float32]:
        """The cosine of each pair (a[i], b[i]), 0 for those that are no pairs. `met`: which are known to meet."""
        scores = np.zeros(len(a), np.float32)
        # In the order in which the others' vectors lie.
        order = self._near(a, b, met, np.argsort(b))
        for begin in range(0, len(order), COMPARED_PAIRS):
            part = order[begin : begin + COMPARED_PAIRS]
            scores[part] = self._exactly(a[part], b[part], met[part])
        return scores

    def _near(self, a: Rows, b: Rows, met: NDArray[np.bool_], order: Rows) -> Rows:
        """Of `order`, which is that of `b`, the pairs that can reach the threshold by the codes of their vectors. Most of what
        bands find cannot, and codes are half of the bytes to read; pairs that were compared already can."""
        coded = met & (b < self.vectors.coded_rows)

        def near(part: Rows) -> Rows:
            found = np.flatnonzero(coded[part])
            each, places = np.unique(a[part[found]], return_inverse=True)
            most = self.vectors.most(b[part[found]], self.take(each)[places])
            kept = ~coded[part]
            kept[found] = most >= self.threshold - SLACK
            return part[kept]

        parts = [order[at : at + ROUGHLY_COMPARED_PAIRS] for at in range(0, len(order), ROUGHLY_COMPARED_PAIRS)]
        # What takes long is the first look at a page, which threads do side by side.
        return np.concatenate(in_parallel(near, parts)) if parts else order

    def _exactly(self, a: Rows, b: Rows, met: NDArray[np.bool_]) -> NDArray[np.float32]:
        x, y = self.take(a), self.take(b)
        scores = np.zeros(len(a), np.float32)
        # Most candidates are far from a pair: what decides is worked out for those that are not.
        maybe = np.flatnonzero((np.einsum("ij,ij->i", x, y) >= self.threshold - SLACK) & (a != b))
        if len(maybe) < len(a):
            x, y = x[maybe], y[maybe]
        exact = np.multiply(x, y, dtype=np.float64).sum(axis=1).astype(np.float32)
        kept = np.flatnonzero(exact >= np.float32(self.threshold))
        near = maybe[kept]
        kept = kept[self._can_pair(a[near], b[near], exact[kept], met[near])]
        scores[maybe[kept]] = exact[kept]
        return scores

    def blockwise(
        self, blocks: Sequence[tuple[int, Fixed | NDArray[np.float32]]], queries: Rows
    ) -> Iterator[Candidates]:
        """Pairs that may reach the threshold, by comparing each query with each vector of `blocks` ((first row, vectors))."""
        for begin in range(0, len(queries), TILE[0]):
            part = queries[begin : begin + TILE[0]]
            asked = self.take(part)

            def compare(tile: Any, asked: NDArray[np.float32] = asked) -> tuple[Any, Rows]:
                # The vectors of a batch are compared with each of its parts, so they come as float32.
                cosines = asked @ (tile if tile.dtype == np.float32 else floats(tile)).T
                # Most queries have no pair in most tiles: one pass for the maxima instead of four over all cosines.
                return cosines, np.flatnonzero(cosines.max(axis=1, initial=-1) >= self.threshold - SLACK)

            for start, block in blocks:
                read_ahead(block)
                firsts = range(0, len(block), TILE[1])
                for at in range(0, len(firsts), processors()):
                    several = firsts[at : at + processors()]
                    compared = in_parallel(compare, [block[first : first + TILE[1]] for first in several])
                    for first, (cosines, some) in zip(several, compared, strict=True):
                        if len(some):
                            q, c = self._hits(cosines[some], start + first)
                            yield part[some[q]], c + (start + first), np.zeros(len(q), np.bool_)

    def _can_pair(
        self, ones: Rows, twos: Rows, cosines: NDArray[np.float32], met: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which (ones[i], twos[i]), whose cosines reach the threshold, are a pair. `met`: which are known to meet."""
        can = np.ones(len(ones), np.bool_)
        asked = np.flatnonzero(~met) if self.by_rule else ()
        if len(asked):
            can[asked] = meet(self.sketches(ones[asked]), self.sketches(twos[asked]), self.threshold)
        if self.pair_rule is not None:
            for place in np.flatnonzero(can).tolist():
                can[place] = self.pair_rule(int(ones[place]), int(twos[place]), float(cosines[place]))
        return can

    def _hits(self, cosines: NDArray[np.float32], first: int) -> tuple[Rows, Rows]:
        """(row, column) of the cosines of candidates from `first` on that may reach the threshold."""
        hits = cosines >= self.threshold - SLACK
        hits &= self.candidates[first : first + cosines.shape[1]]
        rows, columns = np.nonzero(hits)
        return rows.astype(np.int64, copy=False), columns.astype(np.int64, copy=False)
