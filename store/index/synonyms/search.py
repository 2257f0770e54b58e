"""Searches pairs of phrases that may be synonyms in bounded memory, by comparing all phrases or by their sketches (`lsh`).

The deciding cosine is the float32 value of a dot product in float64, which is computed for each pair separately. The blockwise
product that finds candidates may differ in its last bits, depending on the shape of the block.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.fixed_point import Fixed, floats
from store.index.file_arrays import read_ahead
from store.index.parallel import in_parallel, processors
from store.index.synonyms.lsh import WORDS, Sketches, bands, collides, sketch
from store.index.synonyms.numbers import is_number
from store.index.synonyms.pairs import Scored
from store.index.synonyms.phrase_variants import PairRule
from store.index.synonyms.sketch_index import SketchIndex
from store.index.vectors.matrix import VectorsView
from store.rows import Rows64
from store.text.words import has_cjk

SLACK = 1e-4
"""A pair whose blockwise cosine is below the threshold by at most this much is compared exactly."""

COMPARED_PAIRS = 1_024
"""Number of candidate pairs compared exactly at a time."""

ROUGHLY_COMPARED_PAIRS = 4_096
"""Number of candidate pairs whose codes are compared at a time: 6 MB for each side."""

GATHERED_PAIRS = 1 << 18
"""Number of candidate pairs collected before they are compared: 4 MB."""

KEPT_SKETCHES = 4_096
"""Maximum number of query phrases whose sketches are cached: 3 MB."""

TILE = (256, 8192)
"""Number of queries and of candidates compared at a time: 8 MB of cosines, which stay in the processor's cache."""

EXACT_BELOW = 8_192
"""Up to this number of phrases, each new phrase is compared with all others, which is simpler than sketches (`lsh`) and about
as fast (`bench growth`, "crossover"). Both ways find the same pairs."""


def can_have_synonyms(phrase: str) -> bool:
    """Whether a phrase can have synonym edges. A phrase cannot have synonyms if it has at most two alphanumeric characters
    (HippoRAG's rule), or if it is a number or a date.

    One Chinese character, kana or Hangul syllable is enough, because these are not letters of an alphabet.
    """
    if has_cjk(phrase):
        return not is_number(phrase)
    found = 0
    for character in phrase:
        found += character.isalnum()
        if found > 2:
            return not is_number(phrase)
    return False


Candidates = tuple[Rows64, Rows64, NDArray[np.bool_]]
"""(row, other row, whether the pair is known to collide) of each pair, as three arrays of equal length."""


def similar(
    vectors: VectorsView,
    extra: Fixed,
    candidates: NDArray[np.bool_],
    queries: NDArray[Any],
    threshold: float,
    sketches: SketchIndex | None = None,
    by_rule: bool = True,
    through_bands: bool = True,
    pair_rule: PairRule | None = None,
    extra_sketches: Sketches | None = None,
) -> Iterator[Scored]:
    """Yields the pairs (query row, candidate row, cosine) that collide (`store.index.synonyms.lsh`) and whose cosine is at
    least `threshold`.

    Pairs of a row with itself are omitted. If `by_rule` is false, pairs that do not collide are included, which requires a
    comparison with all candidates.

    `extra`: vectors (in the stored form) of the rows after the last row of `vectors`. `candidates`: mask of the candidates
    among all these rows, shape (n + k,). `queries`: rows of the query phrases. `sketches`: the sketches of the rows in
    `vectors`; with `through_bands`, they are used to find candidates. `pair_rule` rejects pairs by their texts.
    `extra_sketches`: the sketches of `extra`; None if not yet computed.
    """

    def vectors_of(rows: NDArray[Any]) -> NDArray[np.float32]:
        old = rows < vectors.n
        out = np.empty((len(rows), vectors.dim), np.float32)
        out[old] = vectors.rows(rows[old])
        out[~old] = floats(extra[rows[~old] - vectors.n])
        return out

    queries = np.asarray(queries, np.int64)
    through_bands &= by_rule and bands(threshold) > 0
    if by_rule and extra_sketches is None:
        extra_sketches = sketch(floats(extra))

    def sketches_of(rows: Rows64) -> Sketches:
        if sketches is None or extra_sketches is None:
            each, places = np.unique(rows, return_inverse=True)
            return sketch(vectors_of(each))[places]
        out = np.empty((len(rows), WORDS), np.uint64)
        old = rows < vectors.n
        out[old], out[~old] = sketches.tail.sketches(rows[old], vectors.rows), extra_sketches[rows[~old] - vectors.n]
        return out

    query_sketches = _CachedSketches(sketches_of)
    comparison = _Comparison(
        vectors_of, vectors, sketches_of, query_sketches, candidates, threshold, by_rule, pair_rule
    )
    found = _candidates(comparison, vectors, extra, queries, sketches if through_bands else None)
    for a, b, met in _gathered(found):
        for begin in range(0, len(a), GATHERED_PAIRS):
            part = slice(begin, begin + GATHERED_PAIRS)
            left, right = a[part], b[part]
            scores = comparison.exactly(left, right, met[part])
            kept = np.flatnonzero(scores)
            if len(kept):
                yield left[kept], right[kept], scores[kept].astype(np.float64)


class _CachedSketches:
    """Caches the sketches of query rows for later calls: the pairs of a query are spread over many pieces, and computing its
    sketch takes as long as ten comparisons."""

    def __init__(self, sketches_of: Callable[[Rows64], Sketches]) -> None:
        self._sketches_of = sketches_of
        self._rows: Rows64 = np.empty(0, np.int64)
        """The cached rows, ascending."""
        self._sketches: Sketches = np.empty((0, WORDS), np.uint64)

    def __call__(self, rows: Rows64) -> Sketches:
        each, places = np.unique(rows, return_inverse=True)
        missing = np.setdiff1d(each, self._rows, assume_unique=True)
        if len(missing) and len(self._rows) + len(missing) > KEPT_SKETCHES:
            self._rows, self._sketches, missing = self._rows[:0], self._sketches[:0], each
        if len(missing):
            together = np.concatenate([self._rows, missing])
            order = np.argsort(together)
            self._rows = together[order]
            self._sketches = np.concatenate([self._sketches, self._sketches_of(missing)])[order]
        return self._sketches[np.searchsorted(self._rows, each)[places]]


def _gathered(pieces: Iterable[Candidates]) -> Iterator[Candidates]:
    """Joins small pieces to larger ones."""
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
    queries: Rows64,
    sketches: SketchIndex | None,
) -> Iterator[Candidates]:
    """Yields pairs that may reach the threshold; finds them with the sketches if these are given."""
    added = [(vectors.n, floats(extra))]
    if sketches is None:
        yield from comparison.blockwise([*vectors.blocks(), *added], queries)
        return
    yield from comparison.blockwise(added, queries)
    vectors.page_in_codes()
    found_by = sketches.candidates(comparison.sketches, queries, comparison.candidates, comparison.threshold)
    for first, end, found in found_by:
        if found is None:
            # Too many rows share a band: comparing with all rows costs less.
            yield from comparison.blockwise(vectors.blocks(), queries[first:end])
        else:
            which, rows = found
            yield queries[first:end][which], rows, np.ones(len(rows), np.bool_)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The parameters of one search. `vectors_of` and `sketches` return the vectors and the sketches of rows; the other fields
    are as in `similar`, unless they have a docstring."""

    vectors_of: Callable[[NDArray[Any]], NDArray[np.float32]]
    vectors: VectorsView
    sketches: Callable[[Rows64], Sketches]
    query_sketches: Callable[[Rows64], Sketches]
    """Like `sketches`, but for query rows, whose sketches are cached."""
    candidates: NDArray[np.bool_]
    threshold: float
    by_rule: bool
    pair_rule: PairRule | None

    def exactly(self, a: Rows64, b: Rows64, met: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Returns the cosine of each pair (a[i], b[i]), 0 if rejected. `met`: mask of the pairs that are known to collide."""
        scores = np.zeros(len(a), np.float32)
        # The pairs are sorted by their rows `b`, so that vectors are read in the order of the file.
        order = self._near(a, b, met, np.argsort(b))
        for begin in range(0, len(order), COMPARED_PAIRS):
            part = order[begin : begin + COMPARED_PAIRS]
            scores[part] = self._exactly(a[part], b[part], met[part])
        return scores

    def _near(self, a: Rows64, b: Rows64, met: NDArray[np.bool_], order: Rows64) -> Rows64:
        """Returns the pairs of `order` (sorted by `b`) that may reach the threshold according to their codes.

        Codes have half as many bytes as vectors, and they exclude most pairs that bands find. Pairs that were found by
        comparing vectors are always kept.
        """
        coded = met & (b < self.vectors.coded_rows)

        def near(part: Rows64) -> Rows64:
            found = np.flatnonzero(coded[part])
            each, places = np.unique(a[part[found]], return_inverse=True)
            bounds = self.vectors.upper_bounds(b[part[found]], self.vectors_of(each)[places])
            kept = ~coded[part]
            kept[found] = bounds >= self.threshold - SLACK
            return part[kept]

        parts = [order[at : at + ROUGHLY_COMPARED_PAIRS] for at in range(0, len(order), ROUGHLY_COMPARED_PAIRS)]
        # Most of the time goes into first accesses to pages, which several threads can do concurrently.
        return np.concatenate(in_parallel(near, parts)) if parts else order

    def _exactly(self, a: Rows64, b: Rows64, met: NDArray[np.bool_]) -> NDArray[np.float32]:
        x, y = self.vectors_of(a), self.vectors_of(b)
        scores = np.zeros(len(a), np.float32)
        # Most candidates are far below the threshold, so only candidates near or above it are computed exactly.
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
        self, blocks: Sequence[tuple[int, Fixed | NDArray[np.float32]]], queries: Rows64
    ) -> Iterator[Candidates]:
        """Yields pairs that may reach the threshold; compares each query with all vectors of `blocks`, each (first row,
        vectors)."""
        for begin in range(0, len(queries), TILE[0]):
            part = queries[begin : begin + TILE[0]]
            query_vectors = self.vectors_of(part)

            def compare(tile: Any, queries: NDArray[np.float32] = query_vectors) -> tuple[Any, Rows64]:
                # Vectors that are compared several times are passed as float32 by the caller.
                cosines = queries @ (tile if tile.dtype == np.float32 else floats(tile)).T
                # Most queries have no pair in most tiles, so one pass computes the maxima before four passes over all cosines.
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
        self, ones: Rows64, twos: Rows64, cosines: NDArray[np.float32], met: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Returns the mask of the pairs (ones[i], twos[i]) that the rules accept; their cosines reach the threshold. `met`:
        mask of the pairs that are known to collide."""
        can = np.ones(len(ones), np.bool_)
        unknown = np.flatnonzero(~met) if self.by_rule else ()
        if len(unknown):
            can[unknown] = collides(self.query_sketches(ones[unknown]), self.sketches(twos[unknown]), self.threshold)
        if self.pair_rule is not None:
            for place in np.flatnonzero(can).tolist():
                can[place] = self.pair_rule(int(ones[place]), int(twos[place]), float(cosines[place]))
        return can

    def _hits(self, cosines: NDArray[np.float32], first: int) -> tuple[Rows64, Rows64]:
        """Returns (row, column) of the cosines that may reach the threshold; `first` is the row of the first column."""
        hits = cosines >= self.threshold - SLACK
        hits &= self.candidates[first : first + cosines.shape[1]]
        rows, columns = np.nonzero(hits)
        return rows.astype(np.int64, copy=False), columns.astype(np.int64, copy=False)
