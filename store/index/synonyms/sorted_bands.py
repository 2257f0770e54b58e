"""Phrase rows by the value of each band of their sketches (`lsh`): a hash table a band, all in one sparse matrix.

A table is a *run* of rows: what came since is sorted into a run of its own, and short runs are joined to longer ones, as in
a log-structured merge tree (O'Neil et al., 1996). So a phrase is sorted in again as often as the logarithm of their number, not
as often as a share of them has come.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.index.file_arrays import IN_MEMORY, ArrayStorage
from store.index.synonyms.lsh import (
    BAND_BITS,
    TAG_BITS,
    TAG_SIGMAS,
    Sketches,
    band_values,
    farthest,
    tag_of_band,
    tags,
)

BUCKETS = 1 << BAND_BITS
"""Buckets of a band: one for each value."""

SORTED_ROWS = 1 << 18
"""Rows that are sorted at a time, before they are joined: 90 MB of values."""

JOINED_SHARE = 16
"""A run is joined to what comes behind it once that is as long as this part of it."""

SCANNED_ENTRIES = 1 << 19
"""Entries of buckets that are looked at together, about. With half as many two threads wait more for the interpreter, with four
times as many more is read from beyond the processor's cache: a search takes a tenth longer either way."""

MIN_ENTRIES = 1 << 17
"""Entries that are not too many for any look."""

BAND_ARRAYS = ("starts", "rows", "tags")

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
"""(index of a question, row) of each pair."""


@dataclass(frozen=True, slots=True, eq=False)
class SortedBands:
    """The `n` rows from `first` on. Row `band * BUCKETS + value` of `buckets`, a CSR, has those with such a value of the band,
    as numbers from `first` on, and for each the tag that goes with the band; scipy gathers many of them in one pass."""

    first: int
    buckets: Any

    @property
    def n(self) -> int:
        return int(self.buckets.shape[1])

    @property
    def end(self) -> int:
        return self.first + self.n

    @property
    def bands(self) -> int:
        return int(self.buckets.shape[0]) // BUCKETS

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `bands_of_arrays` makes it of again, by name (`BAND_ARRAYS`)."""
        return dict(zip(BAND_ARRAYS, (self.buckets.indptr, self.buckets.indices, self.buckets.data), strict=True))

    def near(
        self, values: NDArray[np.int32], asked: NDArray[np.uint32], bands: range, threshold: float
    ) -> Iterator[Pairs | None]:
        """The rows that share one of `bands`, which follow each other, and differ little in the tag that goes with it, some at
        a time; None where so many rows are in the buckets that comparing with all is cheaper.

        `values` and `asked` are the band values and the tags of the questions, shape (bands, questions) and (questions, TAGS).
        """
        # In each band questions in the order in which its buckets lie in memory: then most lie in a page with the one before.
        asking = np.argsort(values[bands.start : bands.stop], axis=1)
        first = np.asarray(bands, np.int32)[:, None] * BUCKETS
        looked_up = (np.take_along_axis(values[bands.start : bands.stop], asking, axis=1) + first).ravel()
        wanted = asked[asking, tag_of_band(np.asarray(bands))[:, None]].ravel()
        which = asking.ravel()
        lengths = self.buckets.indptr.take(looked_up + 1) - self.buckets.indptr.take(looked_up)
        ends = np.cumsum(lengths, dtype=np.int64)
        if ends[-1] > max(MIN_ENTRIES, values.shape[1] * self.n * len(bands) // self.bands):
            yield None
            return
        cuts = np.searchsorted(ends, np.arange(SCANNED_ENTRIES, ends[-1], SCANNED_ENTRIES)).tolist()
        for begin, end in pairwise(sorted({0, *cuts, len(ends)})):
            there = self.buckets[looked_up[begin:end]]
            apart = np.repeat(wanted[begin:end], lengths[begin:end])
            apart ^= there.data.view(np.uint32)
            here = places(np.bitwise_count(apart), farthest(threshold, TAG_BITS, TAG_SIGMAS))
            of_each = np.diff(np.searchsorted(here, there.indptr))
            yield np.repeat(which[begin:end], of_each), there.indices.take(here).astype(np.int64) + self.first


def places(counts: NDArray[np.uint8], most: int) -> NDArray[np.intp]:
    """Where `counts`, shape (n,), are `most` or less."""
    n = len(counts)
    added = n // 8 + 1
    # numpy looks for one after the other where no more than a tenth are there, and takes four times as long for a twelfth as
    # for a ninth. With as many more behind them there are always enough.
    small = np.ones(n + added, np.bool_)
    np.less_equal(counts, most, out=small[:n])
    return np.flatnonzero(small)[:-added]


def sort(sketches: Sketches, bands: int, first: int = 0, storage: ArrayStorage = IN_MEMORY) -> SortedBands:
    """The rows of `sketches`, which have the numbers from `first` on, by their first so many `bands`, made in `storage`."""
    return _joined(list(_sorted_pieces(sketches, bands, first, storage)), storage)


def sort_behind(
    runs: Sequence[SortedBands], behind: Sketches, bands: int, storage: ArrayStorage = IN_MEMORY
) -> tuple[SortedBands, ...]:
    """`runs`, and the rows behind them, of the sketches `behind`: sorted, and joined to those runs that are not long enough to
    stand alone. Reads what it is given and nothing else, so it may run beside all."""
    left = list(runs)
    begin = first = left[-1].end if left else 0
    joined: list[SortedBands] = []
    while left and (first + len(behind) - begin) * JOINED_SHARE >= left[-1].n:
        joined.insert(0, left.pop())
        begin = joined[0].first
    joined.extend(_sorted_pieces(behind, bands, first, storage))
    return (*left, _joined(joined, storage)) if joined else tuple(left)


def bands_of_arrays(first: int, starts: NDArray[Any], rows: NDArray[Any], tags: NDArray[Any]) -> SortedBands:
    """The run of these `BAND_ARRAYS`, which are used as they are."""
    bands = len(starts) // BUCKETS
    buckets = sparse.csr_array((bands * BUCKETS, len(rows) // bands), dtype=np.int32)
    buckets.data, buckets.indices, buckets.indptr = tags, rows, starts
    return SortedBands(first, buckets)


def _sorted_pieces(sketches: Sketches, bands: int, first: int, storage: ArrayStorage) -> Iterator[SortedBands]:
    # One piece is soon joined and gone. Many, as where all bands are sorted anew, are as large together as what they become.
    place = IN_MEMORY if len(sketches) <= SORTED_ROWS else storage
    for start in range(0, len(sketches), SORTED_ROWS):
        yield _sorted(sketches[start : start + SORTED_ROWS], bands, first + start, place)


def _sorted(sketches: Sketches, bands: int, first: int, storage: ArrayStorage) -> SortedBands:
    n = len(sketches)
    values, each_tag = band_values(sketches, bands), np.ascontiguousarray(tags(sketches).T).view(np.int32)
    starts = np.empty(bands * BUCKETS + 1, _numbers(bands, n))
    rows, entries = storage.empty((bands * n,), starts.dtype), storage.empty((bands * n,), np.int32)
    every = np.arange(n + 1, dtype=np.int32)
    for band in range(bands):
        # Turning a matrix with one entry a row on its side is a counting sort that keeps the rows' order.
        turned = sparse.csr_array((each_tag[tag_of_band(band)], values[band], every), shape=(n, BUCKETS)).tocsc()
        part = slice(band * n, (band + 1) * n)
        rows[part], entries[part] = turned.indices, turned.data
        starts[band * BUCKETS : (band + 1) * BUCKETS] = turned.indptr[:-1] + band * n
    starts[-1] = bands * n
    return bands_of_arrays(first, starts, rows, entries)


def _joined(parts: Sequence[SortedBands], storage: ArrayStorage) -> SortedBands:
    """`parts`, which follow each other and have the same bands, as one run made in `storage`."""
    n, bands = sum(part.n for part in parts), parts[0].bands
    numbers = _numbers(bands, n)
    starts = storage.empty((bands * BUCKETS + 1,), numbers)
    rows, entries = storage.empty((bands * n,), numbers), storage.empty((bands * n,), np.int32)
    for band in range(bands):
        joined = sparse.hstack([_band(part, band) for part in parts], format="csr")
        part = slice(band * n, (band + 1) * n)
        rows[part], entries[part] = joined.indices, joined.data
        of_band = slice(band * BUCKETS, (band + 1) * BUCKETS)
        starts[of_band] = joined.indptr[:-1]
        starts[of_band] += band * n
    starts[-1] = bands * n
    return bands_of_arrays(parts[0].first, starts, rows, entries)


def _band(part: SortedBands, band: int) -> Any:
    """One band of a run, as a CSR of its buckets."""
    begins = part.buckets.indptr[band * BUCKETS : (band + 1) * BUCKETS + 1]
    inside = slice(int(begins[0]), int(begins[-1]))
    found = sparse.csr_array((BUCKETS, part.n), dtype=np.int32)
    found.data, found.indices = part.buckets.data[inside], part.buckets.indices[inside]
    found.indptr = begins - begins[0]
    return found


def _numbers(bands: int, n: int) -> type[np.signedinteger[Any]]:
    """The type that holds how many entries `n` rows have: scipy wants starts and rows in one."""
    return np.int64 if bands * n > np.iinfo(np.int32).max else np.int32
