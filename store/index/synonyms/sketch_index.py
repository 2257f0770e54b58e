"""The search for a phrase's near ones among many, without comparing it with all of them: by sorted bands of sketches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from store.index.append_only_arrays import GrowableArray
from store.index.file_arrays import IN_MEMORY, ArrayStorage
from store.index.pager import Pager
from store.index.parallel import in_parallel, processors
from store.index.synonyms.changed_flags import Flags
from store.index.synonyms.lsh import (
    HEAD_SIGMAS,
    HEAD_WORDS,
    SIGN_WORDS,
    SIGNS,
    WORDS,
    Sketches,
    band_values,
    bands,
    farthest,
    share_band,
    sketch,
    tags,
)
from store.index.synonyms.sorted_bands import Asked, Pairs, SortedBands, sort_behind
from store.index.vectors.matrix import Vectors, VectorsView

TAIL_MAX_SKETCHES = 1 << 14
"""Sketches that came since the bands were sorted are all looked at; beyond this it is time to sort them."""

TAKEN_IN_ROWS = 1 << 13
"""Vectors that are read and sketched at a time: several parts, for all processors."""

LOOKED_UP_BUCKETS = 1 << 16
"""Buckets that are looked up together, about."""

MAX_PAIRS = 1 << 21
"""Pairs that one part of a search holds. A search that needs more is among vectors of which so many are alike that comparing
with all is cheaper."""

COMPARED_SKETCHES = 1 << 14
"""Pairs whose signs are compared at a time: 5 MB."""

COMPARED_HEADS = 1 << 18
"""Pairs of heads that are compared at a time where all are looked at: 2 MB of each word. With an eighth of it two threads wait
for the interpreter as long as they work."""

COMPARISONS_A_CANDIDATE = 64
"""With how many phrases one is compared, all in a row, in the time that one candidate takes."""

MIN_PAIRS = 4096
"""Candidates that are not too many for any search."""

MIN_PART_QUERIES, MAX_PART_QUERIES = 256, 4096
"""Phrases that are worth a thread of their own, and how many one part of a search has at most."""


@dataclass(frozen=True, slots=True)
class Order:
    """The sorted bands that a search goes by, and how many of the index's rows, from the first on, are in them."""

    runs: Sequence[SortedBands] = ()
    n: int = 0
    places: NDArray[np.int32] | None = None
    """Where the bands are another index's: by its row the one here, or -1, for the rows that there were; None where they are
    the same."""

    def here(self, which: NDArray[np.int64], rows: NDArray[np.int64]) -> Pairs:
        """Of pairs with rows of the bands those that are here."""
        if self.places is None:
            return which, rows
        known = np.flatnonzero(rows < len(self.places))
        rows, which = self.places[rows[known]].astype(np.int64), which[known]
        return which[rows >= 0], rows[rows >= 0]


@dataclass(frozen=True, slots=True)
class Tail:
    """The whole sketches of the rows from `first` on: in one object, as others read both beside what is appended."""

    first: int
    rows: GrowableArray[np.uint64]

    def frozen(self) -> "Tail":
        return Tail(self.first, self.rows.frozen())

    def sketches(
        self, rows: NDArray[np.int64], vectors: Callable[[NDArray[np.int64]], NDArray[np.float32]]
    ) -> Sketches:
        """Those of `rows`, shape (len(rows), WORDS), before `first` as well: `vectors` gives what they are worked out from."""
        out, kept = np.empty((len(rows), WORDS), np.uint64), rows >= self.first
        out[kept] = self.rows.view()[rows[kept] - self.first]
        each, places = np.unique(rows[~kept], return_inverse=True)
        out[~kept] = sketch(vectors(each))[places]
        return out


class SketchIndex:
    """The signs of all phrase rows' sketches, and the whole sketches of those that are not sorted yet: of the others the bands
    are enough. `extend` and `adopt` are the writer's, which is also the only one that searches."""

    def __init__(self, threshold: float, storage: ArrayStorage = IN_MEMORY) -> None:
        """`threshold`: the cosine that the bands are for; `storage`: where signs and sketches lie."""
        self.threshold, self._storage = threshold, storage
        self._signs = GrowableArray(np.uint64, SIGN_WORDS, storage)
        self._heads = GrowableArray(np.uint64, HEAD_WORDS, storage)
        """The first words of each sketch again: all that most pairs are looked at for."""
        self.tail = Tail(0, GrowableArray(np.uint64, WORDS, storage))
        """Those that are not sorted among them."""
        self._runs: tuple[SortedBands, ...] = ()
        self._pager = Pager("bands")

    @property
    def n(self) -> int:
        return self._signs.n

    def extend(self, vectors: Vectors) -> None:
        """Takes in the rows of `vectors` that came since the last call."""
        view = vectors.view()
        while self.n < view.n:
            self.append(sketch(view.rows(np.arange(self.n, min(self.n + TAKEN_IN_ROWS, view.n)))))

    def append(self, sketches: Sketches) -> None:
        """Takes in the sketches of the next rows; they are looked through one by one until `adopt`."""
        self._signs.extend(sketches[:, :SIGN_WORDS])
        self._heads.extend(sketches[:, :HEAD_WORDS])
        self.tail.rows.extend(sketches)

    def signs(self) -> Sketches:
        """The signs of all rows, shape (n, SIGN_WORDS)."""
        return self._signs.view()

    def load(self, signs: Sketches, runs: Sequence[SortedBands], tail: Sketches) -> None:
        """Takes over saved signs, the bands of the first rows and the sketches of the last."""
        self._signs.load(signs)
        self._heads.load(signs[:, :HEAD_WORDS])
        self.tail = Tail(len(signs) - len(tail), GrowableArray(np.uint64, WORDS, self._storage))
        self.tail.rows.extend(tail)
        self.adopt(runs)

    @property
    def runs(self) -> tuple[SortedBands, ...]:
        """What `adopt` took over last."""
        return self._runs

    def frozen(self) -> "SketchIndex":
        """The sketches of the rows that there are now; nothing is copied, and nothing may be appended."""
        frozen = SketchIndex(self.threshold)
        frozen._share(self)
        return frozen

    def _share(self, other: "SketchIndex") -> None:
        self._signs, self._heads, self.tail = other._signs.frozen(), other._heads.frozen(), other.tail.frozen()

    @property
    def due(self) -> bool:
        """Whether it is time to sort what came since."""
        return bands(self.threshold) > 0 and self.n - self.order().n > TAIL_MAX_SKETCHES

    def sorted_behind(
        self, tail: Tail, vectors: VectorsView, storage: ArrayStorage = IN_MEMORY
    ) -> tuple[SortedBands, ...]:
        """The runs with all rows up to the end of `tail`, for `adopt`; none where pairs are not found by bands. Changes
        nothing, so it may run beside all with a tail that is frozen. `vectors`: of all rows."""
        count = bands(self.threshold)
        if not count:
            return ()
        rows = np.arange(self._runs[-1].end if self._runs else 0, tail.first + tail.rows.n)
        return sort_behind(self._runs, tail.sketches(rows, vectors.rows), count, storage)

    def sort(self, vectors: Vectors, storage: ArrayStorage = IN_MEMORY) -> None:
        """Sorts all rows at once, where nothing goes on beside. `vectors`: of all rows."""
        self.adopt(self.sorted_behind(self.tail, vectors.view(), storage))

    def adopt(self, runs: Sequence[SortedBands]) -> None:
        """Takes over the sorted bands of the first rows."""
        for run in self._runs:
            if run not in runs:
                self._pager.forget(run)
        self._runs = tuple(runs)
        if self._runs and self._runs[-1].end > self.tail.first:
            tail = Tail(self._runs[-1].end, GrowableArray(np.uint64, WORDS, self._storage))
            tail.rows.extend(self.tail.rows.view()[tail.first - self.tail.first :])
            self.tail = tail

    def order(self) -> Order:
        """What a search goes by."""
        return Order(self._runs, self._runs[-1].end if self._runs else 0)

    def wait_until_paged_in(self) -> None:
        """Until all bands that were searched are in memory."""
        self._pager.wait()

    def candidates(
        self,
        sketches: Callable[[NDArray[np.int64]], Sketches],
        queries: NDArray[np.int64],
        wanted: Flags,
        threshold: float,
    ) -> Iterator[tuple[int, int, Pairs | None]]:
        """(first, end, pairs) for one part of `queries` after the other: `queries[first:end]`, and (index in the part, row) of
        all pairs that meet, of `wanted` rows alone, the query itself among them. None for pairs where they are so many that
        comparing with all is cheaper.

        `sketches` gives those of `queries`.
        """
        # One phrase looks at 95 places of each run, so a few thousand would read them whole, page by page.
        self._pager.bring(self._runs)
        rounds = -(-len(queries) // (MAX_PART_QUERIES * processors()))
        share = max(-(-len(queries) // (max(rounds, 1) * processors())), MIN_PART_QUERIES)
        starts = range(0, len(queries), share)
        for at in range(0, len(starts), processors()):
            parts = [(start, sketches(queries[start : start + share])) for start in starts[at : at + processors()]]
            found = in_parallel(lambda part: self._pairs(part[1], wanted, threshold), parts)
            for (start, part), pairs in zip(parts, found, strict=True):
                yield start, start + len(part), pairs

    def _pairs(self, sketches: Sketches, wanted: Flags, threshold: float) -> Pairs | None:
        """The same for the sketches of one part."""
        # Others may sort meanwhile: one search goes by one order.
        order = self.order()
        found: list[NDArray[np.int64]] = []
        count, most = 0, min(MAX_PAIRS // 2, max(len(sketches) * self.n // COMPARISONS_A_CANDIDATE, MIN_PAIRS))
        for pairs in self._looked_through(order, sketches, threshold):
            if pairs is None:
                return None
            found.append(pairs)
            count += len(pairs)
            if count > MAX_PAIRS:
                found = [self._near(found, sketches, wanted, threshold)]
                count = len(found[0])
                if count > most:
                    return None
        every = self._near(found, sketches, wanted, threshold)
        return None if len(every) > most else self._meeting(order, every, sketches, threshold)

    def _meeting(self, order: Order, pairs: NDArray[np.int64], sketches: Sketches, threshold: float) -> Pairs:
        """Of pairs which * n + row those that share a band: rows behind the sorted ones came for being near."""
        which, rows = np.divmod(pairs, max(self.n, 1))
        kept, behind = np.ones(len(pairs), np.bool_), np.flatnonzero(rows >= order.n)
        there = self.tail.rows.view().take(rows[behind] - self.tail.first, axis=0)
        kept[behind] = share_band(sketches.take(which[behind], axis=0), there, threshold)
        return which[kept], rows[kept]

    def _looked_through(self, order: Order, sketches: Sketches, threshold: float) -> Iterator[NDArray[np.int64] | None]:
        """Pairs whose heads are near as which * n + row, with repetitions; None where there are too many to look at."""
        count = bands(self.threshold)
        values, asked, heads = band_values(sketches, count), tags(sketches), sketches[:, :HEAD_WORDS].copy()
        # Some bands after the others for many queries, so that what is read of them stays in the cache; all at once for few.
        together = max(1, LOOKED_UP_BUCKETS // len(sketches))
        for first in range(0, count if order.runs else 0, together):
            some = Asked.of(values, asked, range(first, min(first + together, count)))
            for pairs in chain.from_iterable(run.near(some, threshold) for run in order.runs):
                yield None if pairs is None else self._heads_near(heads, *order.here(*pairs), threshold)
        yield from self._tail_near(heads, order.n, threshold)

    def _heads_near(
        self, heads: Sketches, which: NDArray[np.int64], rows: NDArray[np.int64], threshold: float
    ) -> NDArray[np.int64]:
        """Of the pairs (which, row) those whose heads are near. `heads`: of the questions."""
        apart = _differing(self._heads.view().take(rows, axis=0), heads.take(which, axis=0))
        near = np.flatnonzero(apart <= farthest(threshold, 64 * HEAD_WORDS, HEAD_SIGMAS))
        return which[near] * self.n + rows[near]

    def _tail_near(self, heads: Sketches, first: int, threshold: float) -> Iterator[NDArray[np.int64]]:
        """The pairs which * n + row of rows from `first` on whose heads are near, comparing with each of them."""
        # Word after word: adding up two columns side by side takes four times as long.
        words = np.ascontiguousarray(self._heads.view()[first:].T)
        n = words.shape[1]
        together = max(1, COMPARED_HEADS // max(n, 1))
        for begin in range(0, len(heads) if n else 0, together):
            asked = heads[begin : begin + together, :, None]
            apart = np.bitwise_count(words[0] ^ asked[:, 0])
            for word in range(1, HEAD_WORDS):
                apart += np.bitwise_count(words[word] ^ asked[:, word])
            which, rows = np.divmod(np.flatnonzero(apart <= farthest(threshold, 64 * HEAD_WORDS, HEAD_SIGMAS)), n)
            yield (begin + which) * self.n + rows + first

    def _near(
        self, found: list[NDArray[np.int64]], sketches: Sketches, wanted: Flags, threshold: float
    ) -> NDArray[np.int64]:
        """Of the pairs which * n + row, each once, those of `wanted` rows of which all signs are near."""
        # A pair that meets in several bands is one pair.
        pairs = _once(np.concatenate(found)) if found else np.empty(0, np.int64)
        pairs = pairs[wanted[pairs % max(self.n, 1)]]
        every, asked, near = self.signs(), sketches[:, :SIGN_WORDS].copy(), np.empty(len(pairs), np.bool_)
        for start in range(0, len(pairs), COMPARED_SKETCHES):
            part = slice(start, start + COMPARED_SKETCHES)
            which, rows = np.divmod(pairs[part], self.n)
            apart = np.bitwise_count(every.take(rows, axis=0) ^ asked.take(which, axis=0))
            # Three times as fast as `sum`, which goes through twelve numbers at a time.
            near[part] = np.einsum("ij->i", apart, dtype=np.uint16) <= farthest(threshold, SIGNS)
        return pairs[near]


def _differing(heads: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """In how many bits heads differ, shape (n,)."""
    counts: NDArray[np.uint8] = np.bitwise_count(heads ^ others)
    return counts[:, 0] + counts[:, 1]


def _once(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each of `numbers` once, in order; `np.unique` hashes them, which takes ten times as long for a million."""
    ordered = np.sort(numbers)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered
