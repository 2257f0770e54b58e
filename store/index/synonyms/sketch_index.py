"""Finds the phrases near a phrase in a large memory by sorted bands of sketches, without comparing it with all phrases."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from store.index.append_only_arrays import GrowableArray
from store.index.file_arrays import IN_MEMORY, ArrayStorage
from store.index.pager import Pager
from store.index.parallel import in_parallel, processors
from store.index.part import Foldable, Part, PartFiles, PartWriter
from store.index.synonyms.lsh import (
    PREFIX_SIGMAS,
    PREFIX_WORDS,
    SIGN_WORDS,
    SIGNS,
    WORDS,
    Sketches,
    band_values,
    bands,
    farthest,
    share_band,
    sketch,
)
from store.index.synonyms.sorted_bands import (
    BAND_ARRAYS,
    BandLookup,
    Pairs,
    SortedBands,
    with_new_rows,
)
from store.index.vectors.matrix import Vectors

TAIL_MAX_SKETCHES = 1 << 14
"""Number of unsorted sketches above which they should be sorted into bands. A search reads every unsorted sketch."""

TAKEN_IN_ROWS = 1 << 13
"""Number of vectors read and sketched at a time: several batches, so that all processors are used."""

LOOKED_UP_BUCKETS = 1 << 16
"""Approximate number of buckets looked up at a time."""

MAX_PAIRS = 1 << 21
"""Maximum number of pairs in memory for one part of a search. If a search finds more pairs, its vectors are so similar that
comparing with all phrases is cheaper."""

COMPARED_SKETCHES = 1 << 14
"""Number of pairs whose signs are compared at a time: 5 MB."""

COMPARED_PREFIXES = 1 << 18
"""Number of pairs of prefixes compared at a time when the tail is searched: 2 MB per word. With an eighth of this number, two
threads wait for the interpreter as long as they work."""

COMPARISONS_A_CANDIDATE = 64
"""Number of phrases that can be compared sequentially in the time that one candidate takes."""

MIN_PAIRS = 4096
"""Number of candidates in one part of a search that never counts as too many."""

MIN_PART_QUERIES, MAX_PART_QUERIES = 256, 4096
"""Minimum and maximum number of query phrases in one part of a search; each part may get its own thread."""


@dataclass(frozen=True, slots=True)
class Order:
    """The sorted bands that a search uses. `n`: number of the index's first rows that the bands contain."""

    runs: Sequence[SortedBands] = ()
    n: int = 0
    places: NDArray[np.int32] | None = None
    """If the bands belong to another index: the row in this index for each row of that index, or -1. Rows after the end of the
    array are not in this index. None if the bands belong to this index."""

    def here(self, which: NDArray[np.int64], rows: NDArray[np.int64]) -> Pairs:
        """Converts pairs with rows of the bands to pairs with rows of this index; omits rows that it does not contain."""
        if self.places is None:
            return which, rows
        known = np.flatnonzero(rows < len(self.places))
        rows, which = self.places[rows[known]].astype(np.int64), which[known]
        return which[rows >= 0], rows[rows >= 0]


@dataclass(frozen=True, slots=True)
class Tail:
    """The complete sketches of all rows from `first` on. The first row and the sketches are in one object, so that readers see
    consistent values while the writer appends."""

    first: int
    rows: GrowableArray[np.uint64]

    def copy(self) -> "Tail":
        return Tail(self.first, self.rows.copy())

    def sketches(
        self, rows: NDArray[np.int64], vectors: Callable[[NDArray[np.int64]], NDArray[np.float32]]
    ) -> Sketches:
        """Returns the sketches of `rows`, shape (len(rows), WORDS). Rows before `first` are sketched from `vectors`."""
        out, kept = np.empty((len(rows), WORDS), np.uint64), rows >= self.first
        out[kept] = self.rows.view()[rows[kept] - self.first]
        each, places = np.unique(rows[~kept], return_inverse=True)
        out[~kept] = sketch(vectors(each))[places]
        return out


class SketchIndex(Part, Foldable):
    """The signs of all phrase rows, and the complete sketches of the unsorted rows; sorted rows have bands instead.

    Only one thread at a time may change the index. Scopes search the bands in other threads
    (`store.index.shared_rows.SharedSketches`).
    """

    def __init__(self, threshold: float, vectors: Vectors, storage: ArrayStorage = IN_MEMORY) -> None:
        """`threshold`: the cosine for which the bands are made. `vectors`: the vectors of all rows. `storage`: allocates signs,
        sketches and bands."""
        self.threshold, self._vectors, self._storage = threshold, vectors, storage
        self._signs = GrowableArray(np.uint64, SIGN_WORDS, storage)
        self._prefixes = GrowableArray(np.uint64, PREFIX_WORDS, storage)
        """A copy of the first words of each sketch; comparing these words decides about most pairs."""
        self.tail = Tail(0, GrowableArray(np.uint64, WORDS, storage))
        """The sketches of the unsorted rows."""
        self.runs: tuple[SortedBands, ...] = ()
        """The sorted bands of the first rows, set by `swap_in`."""
        self._pager = Pager("bands")

    @property
    def n(self) -> int:
        return self._signs.n

    def extend(self) -> None:
        """Adds the rows whose vectors were appended since the previous call."""
        view = self._vectors.view()
        while self.n < view.n:
            self.append(sketch(view.rows(np.arange(self.n, min(self.n + TAKEN_IN_ROWS, view.n)))))

    def append(self, sketches: Sketches) -> None:
        """Adds the sketches of the next rows. Until `swap_in` sorts them, searches compare with each of them."""
        self._signs.extend(sketches[:, :SIGN_WORDS])
        self._prefixes.extend(sketches[:, :PREFIX_WORDS])
        self.tail.rows.extend(sketches)

    def signs(self) -> Sketches:
        """Returns the signs of all rows, shape (n, SIGN_WORDS)."""
        return self._signs.view()

    def copy(self) -> "SketchIndex":
        """Returns an index of the existing rows that shares their data."""
        other = copy(self)
        other._signs, other._prefixes, other.tail = self._signs.copy(), self._prefixes.copy(), self.tail.copy()
        other._pager = Pager("bands")
        return other

    def save(self, files: PartWriter, name: str) -> None:
        files.array(f"{name}-signs", self.signs(), checked_later=True)
        files.array(f"{name}-sketches", self.tail.rows.view())
        for number, run in enumerate(self.runs):
            for part, array in run.arrays().items():
                files.array(f"bands-{part}-{number:05d}", array, immutable=True, checked_later=True)

    def load(self, files: PartFiles, name: str) -> None:
        signs, tail = files.array(f"{name}-signs"), files.array(f"{name}-sketches")
        self._signs.set(signs)
        self._prefixes.set(signs[:, :PREFIX_WORDS])
        self.tail = Tail(len(signs) - len(tail), GrowableArray(np.uint64, WORDS, self._storage))
        self.tail.rows.extend(tail)
        self.swap_in(_map_runs(files))

    def map_saved(self, files: PartFiles, _name: str, saved: "SketchIndex", /) -> None:
        if self.runs is saved.runs:
            self.swap_in(_map_runs(files, saved.runs))

    @property
    def due(self) -> bool:
        return bands(self.threshold) > 0 and self.n - self.order().n > TAIL_MAX_SKETCHES

    def fold(self) -> None:
        """Sorts all rows into bands; sorts none if the threshold is too low for bands."""
        if count := bands(self.threshold):
            rows = np.arange(self.runs[-1].end if self.runs else 0, self.n)
            new_sketches = self.tail.sketches(rows, self._vectors.view().rows)
            self.swap_in(with_new_rows(self.runs, new_sketches, count, self._storage))

    def swap_in_fold(self, folded: "SketchIndex") -> None:
        self.swap_in(folded.runs)

    def swap_in(self, runs: Sequence[SortedBands]) -> None:
        """Replaces the sorted bands, which contain the first rows."""
        self.runs = tuple(runs)
        if self.runs and self.runs[-1].end > self.tail.first:
            tail = Tail(self.runs[-1].end, GrowableArray(np.uint64, WORDS, self._storage))
            tail.rows.extend(self.tail.rows.view()[tail.first - self.tail.first :])
            self.tail = tail

    def order(self) -> Order:
        """Returns the bands that a search should use."""
        return Order(self.runs, self.runs[-1].end if self.runs else 0)

    def candidates(
        self,
        sketches: Callable[[NDArray[np.int64]], Sketches],
        queries: NDArray[np.int64],
        wanted: NDArray[np.bool_],
        threshold: float,
    ) -> Iterator[tuple[int, int, Pairs | None]]:
        """Yields (first, end, pairs) for each consecutive part `queries[first:end]`.

        `pairs` are (index in the part, row) of all pairs that collide and whose row is in the mask `wanted`; each query
        collides with itself. `pairs` is None if there are so many pairs that comparing with all rows is cheaper. `sketches`
        returns the sketches of query rows.
        """
        # A phrase reads 95 places of each run, so a few thousand phrases would read the whole run page by page.
        self._pager.bring(self.runs)
        rounds = -(-len(queries) // (MAX_PART_QUERIES * processors()))
        share = max(-(-len(queries) // (max(rounds, 1) * processors())), MIN_PART_QUERIES)
        starts = range(0, len(queries), share)
        for at in range(0, len(starts), processors()):
            parts = [(start, sketches(queries[start : start + share])) for start in starts[at : at + processors()]]
            found = in_parallel(lambda part: self._pairs(part[1], wanted, threshold), parts)
            for (start, part), pairs in zip(parts, found, strict=True):
                yield start, start + len(part), pairs

    def _pairs(self, sketches: Sketches, wanted: NDArray[np.bool_], threshold: float) -> Pairs | None:
        """Returns the pairs of one part, whose queries have the given `sketches`; None as in `candidates`."""
        # Another thread may sort concurrently, so one search must use one order.
        order = self.order()
        found: list[NDArray[np.int64]] = []
        count, limit = 0, min(MAX_PAIRS // 2, max(len(sketches) * self.n // COMPARISONS_A_CANDIDATE, MIN_PAIRS))
        for pairs in self._looked_through(order, sketches, threshold):
            if pairs is None:
                return None
            found.append(pairs)
            count += len(pairs)
            if count > MAX_PAIRS:
                found = [self._near(found, sketches, wanted, threshold)]
                count = len(found[0])
                if count > limit:
                    return None
        every = self._near(found, sketches, wanted, threshold)
        return None if len(every) > limit else self._colliding(order, every, sketches, threshold)

    def _colliding(self, order: Order, pairs: NDArray[np.int64], sketches: Sketches, threshold: float) -> Pairs:
        """Returns the pairs that share a band; `pairs` are encoded as which * n + row. Pairs with unsorted rows were found only
        by their prefixes and signs, so their bands are compared here."""
        which, rows = np.divmod(pairs, max(self.n, 1))
        kept, unsorted = np.ones(len(pairs), np.bool_), np.flatnonzero(rows >= order.n)
        there = self.tail.rows.view().take(rows[unsorted] - self.tail.first, axis=0)
        kept[unsorted] = share_band(sketches.take(which[unsorted], axis=0), there, threshold)
        return which[kept], rows[kept]

    def _looked_through(self, order: Order, sketches: Sketches, threshold: float) -> Iterator[NDArray[np.int64] | None]:
        """Yields pairs with near prefixes, encoded as which * n + row, with repetitions; None if too many entries must be
        read."""
        count = bands(self.threshold)
        values, prefixes = band_values(sketches, count), sketches[:, :PREFIX_WORDS].copy()
        # If there are many queries, a few bands are read at a time, so that their entries stay in the cache; if there are few,
        # all bands at once.
        together = max(1, LOOKED_UP_BUCKETS // len(sketches))
        for first in range(0, count if order.runs else 0, together):
            some = BandLookup.of(values, range(first, min(first + together, count)))
            for pairs in chain.from_iterable(run.near(some) for run in order.runs):
                yield None if pairs is None else self._prefixes_near(prefixes, *order.here(*pairs), threshold)
        yield from self._tail_near(prefixes, order.n, threshold)

    def _prefixes_near(
        self, prefixes: Sketches, which: NDArray[np.int64], rows: NDArray[np.int64], threshold: float
    ) -> NDArray[np.int64]:
        """Returns the pairs with near prefixes, encoded as which * n + row. `prefixes`: the prefixes of the queries."""
        apart = _differing(self._prefixes.view().take(rows, axis=0), prefixes.take(which, axis=0))
        near = np.flatnonzero(apart <= farthest(threshold, 64 * PREFIX_WORDS, PREFIX_SIGMAS))
        return which[near] * self.n + rows[near]

    def _tail_near(self, prefixes: Sketches, first: int, threshold: float) -> Iterator[NDArray[np.int64]]:
        """Yields pairs with near prefixes, encoded as which * n + row, by comparing each query with each row from `first`
        on."""
        # Compares word by word, because adding two columns of one array would take four times as long.
        words = np.ascontiguousarray(self._prefixes.view()[first:].T)
        n = words.shape[1]
        together = max(1, COMPARED_PREFIXES // max(n, 1))
        for begin in range(0, len(prefixes) if n else 0, together):
            queries = prefixes[begin : begin + together, :, None]
            apart = np.bitwise_count(words[0] ^ queries[:, 0])
            for word in range(1, PREFIX_WORDS):
                apart += np.bitwise_count(words[word] ^ queries[:, word])
            which, rows = np.divmod(np.flatnonzero(apart <= farthest(threshold, 64 * PREFIX_WORDS, PREFIX_SIGMAS)), n)
            yield (begin + which) * self.n + rows + first

    def _near(
        self, found: list[NDArray[np.int64]], sketches: Sketches, wanted: NDArray[np.bool_], threshold: float
    ) -> NDArray[np.int64]:
        """Returns the distinct pairs (encoded as which * n + row) whose row is in `wanted` and whose signs are near."""
        # A pair that shares several bands was found several times.
        pairs = _once(np.concatenate(found)) if found else np.empty(0, np.int64)
        pairs = pairs[wanted[pairs % max(self.n, 1)]]
        every, queries, near = self.signs(), sketches[:, :SIGN_WORDS].copy(), np.empty(len(pairs), np.bool_)
        for start in range(0, len(pairs), COMPARED_SKETCHES):
            part = slice(start, start + COMPARED_SKETCHES)
            which, rows = np.divmod(pairs[part], self.n)
            apart = np.bitwise_count(every.take(rows, axis=0) ^ queries.take(which, axis=0))
            # Three times as fast as `sum`, which adds only twelve numbers at a time.
            near[part] = np.einsum("ij->i", apart, dtype=np.uint16) <= farthest(threshold, SIGNS)
        return pairs[near]


def _map_runs(files: PartFiles, known: Sequence[SortedBands] = ()) -> list[SortedBands]:
    """Maps the sorted bands; uses the bands of `known` that are mapped from the same files."""
    runs: list[SortedBands] = []
    for number in range(files.count(f"bands-{BAND_ARRAYS[0]}")):
        before = known[number].arrays() if known else {}
        arrays = {part: files.array(f"bands-{part}-{number:05d}", before.get(part)) for part in BAND_ARRAYS}
        kept = known and all(arrays[part] is before[part] for part in BAND_ARRAYS)
        runs.append(known[number] if kept else SortedBands(runs[-1].end if runs else 0, *arrays.values()))
    return runs


def _differing(prefixes: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Returns the number of differing bits of each pair of prefixes, shape (n,)."""
    counts: NDArray[np.uint8] = np.bitwise_count(prefixes ^ others)
    return counts[:, 0] + counts[:, 1]


def _once(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the distinct numbers, sorted. `np.unique` uses hashing, which takes ten times as long for a million numbers."""
    ordered = np.sort(numbers)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered
