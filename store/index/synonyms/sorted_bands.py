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
    BANDS,
    TAG_BITS,
    TAG_OF_BAND,
    TAG_SIGMAS,
    Sketches,
    band_values,
    farthest,
    probes,
    tags,
)

BITS_FROM = {1 << 18: 18, 1 << 16: 16, 1 << 13: 14, 1 << 10: 12, 0: 10}
"""From how many rows on a run has a bucket for each value of so many of the highest bits of a band. Looking one up takes as
long as looking at ten entries, and a bucket that is looked up has twice as many as the average. In steps, as runs with the same
can be joined without being sorted anew."""

SORTED_ROWS = 1 << 18
"""Rows that are sorted at a time, before they are joined: 90 MB of values."""

JOINED_SHARE = 16
"""A run is joined to what comes behind it once that is as long as this part of it."""

SCANNED_ENTRIES = 1 << 18
"""Entries of buckets that are looked at together, about: few enough to stay in the processor's cache, and so many that threads
do not wait for the interpreter between short steps."""

MIN_ENTRIES = 1 << 17
"""Entries that are not too many for any look."""

BAND_ARRAYS = ("starts", "rows", "tags")

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
"""(index of a question, row) of each pair."""


@dataclass(frozen=True, slots=True, eq=False)
class SortedBands:
    """The `n` rows from `first` on. Row `(band << bits) + value` of `buckets`, a CSR, has those with such highest bits of the
    band's value, as numbers from `first` on, and for each the tag that goes with the band; scipy gathers many of them in one
    pass."""

    first: int
    buckets: Any

    @property
    def n(self) -> int:
        return int(self.buckets.shape[1])

    @property
    def end(self) -> int:
        return self.first + self.n

    @property
    def bits(self) -> int:
        return int(self.buckets.shape[0] // BANDS).bit_length() - 1

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `bands_of_arrays` makes it of again, by name (`BAND_ARRAYS`)."""
        return dict(zip(BAND_ARRAYS, (self.buckets.indptr, self.buckets.indices, self.buckets.data), strict=True))

    def near(
        self, values: NDArray[np.int32], asked: NDArray[np.uint32], bands: range, threshold: float
    ) -> Iterator[Pairs | None]:
        """The rows that differ little in one of `bands`, which follow each other, and in the tag that goes with it, some at a
        time; None where so many rows are in the buckets that comparing with all is cheaper.

        `values` and `asked` are the band values and the tags of the questions, shape (questions, BANDS) and (questions, TAGS).
        """
        steps = probes(threshold, self.bits)
        # Questions in the order in which the buckets of a band lie in memory.
        asking = np.argsort(values[:, bands.start])
        keys = (values[asking, bands.start : bands.stop] >> (BAND_BITS - self.bits)) + (
            np.asarray(bands, np.int32) << self.bits
        )
        probed = (keys[:, :, None] ^ steps).ravel()
        wanted = asked[asking[:, None], TAG_OF_BAND[bands.start : bands.stop]].ravel()
        which = asking.astype(np.int32).repeat(len(bands))
        # Entries by question and band: those of all its buckets come one after the other.
        lengths = self.buckets.indptr.take(probed + 1) - self.buckets.indptr.take(probed)
        lengths = np.einsum("ij->i", lengths.reshape(-1, len(steps)))
        ends = np.cumsum(lengths, dtype=np.int64)
        if ends[-1] > max(MIN_ENTRIES, len(values) * self.n * len(bands) // BANDS):
            yield None
            return
        cuts = np.searchsorted(ends, np.arange(SCANNED_ENTRIES, ends[-1], SCANNED_ENTRIES)).tolist()
        for begin, end in pairwise(sorted({0, *cuts, len(ends)})):
            there = self.buckets[probed[begin * len(steps) : end * len(steps)]]
            apart = np.repeat(wanted[begin:end], lengths[begin:end])
            apart ^= there.data.view(np.uint32)
            here = places(np.bitwise_count(apart), farthest(threshold, TAG_BITS, TAG_SIGMAS))
            asks = np.repeat(which[begin:end], lengths[begin:end])
            yield asks.take(here).astype(np.int64), there.indices.take(here).astype(np.int64) + self.first


def places(counts: NDArray[np.uint8], most: int) -> NDArray[np.intp]:
    """Where `counts`, shape (n,), are `most` or less."""
    n = len(counts)
    added = n // 8 + 1
    # numpy looks for one after the other where no more than a tenth are there, and takes four times as long for a twelfth as
    # for a ninth. With as many more behind them there are always enough.
    small = np.ones(n + added, np.bool_)
    np.less_equal(counts, most, out=small[:n])
    return np.flatnonzero(small)[:-added]


def sort(sketches: Sketches, first: int = 0, storage: ArrayStorage = IN_MEMORY) -> SortedBands:
    """The rows of `sketches`, which have the numbers from `first` on, made in `storage`."""
    bits = _bits_for(len(sketches))
    return _joined(list(_sorted_pieces(sketches, first, bits, storage)), storage)


def sort_behind(
    runs: Sequence[SortedBands], sketches: Sketches, storage: ArrayStorage = IN_MEMORY
) -> tuple[SortedBands, ...]:
    """`runs`, of the first rows of `sketches`, and all rows behind them: sorted, and joined to those runs that are not long
    enough to stand alone. Reads what it is given and nothing else, so it may run beside all."""
    left, end = list(runs), len(sketches)
    begin = left[-1].end if left else 0
    taken: list[SortedBands] = []
    while left and (end - begin) * JOINED_SHARE >= left[-1].n:
        taken.insert(0, left.pop())
        begin = taken[0].first
    bits = _bits_for(end - begin)
    parts: list[SortedBands] = []
    for run in taken:
        # Buckets of another width are sorted anew: that happens to short runs alone.
        parts.extend(
            [run] if run.bits == bits else _sorted_pieces(sketches[run.first : run.end], run.first, bits, storage)
        )
    behind = taken[-1].end if taken else begin
    parts.extend(_sorted_pieces(sketches[behind:], behind, bits, storage))
    return (*left, _joined(parts, storage)) if parts else tuple(left)


def bands_of_arrays(first: int, starts: NDArray[Any], rows: NDArray[Any], tags: NDArray[Any]) -> SortedBands:
    """The run of these `BAND_ARRAYS`, which are used as they are."""
    buckets = sparse.csr_array((len(starts) - 1, len(rows) // BANDS), dtype=np.int32)
    buckets.data, buckets.indices, buckets.indptr = tags, rows, starts
    return SortedBands(first, buckets)


def _bits_for(n: int) -> int:
    return next(bits for least, bits in BITS_FROM.items() if n >= least)


def _sorted_pieces(sketches: Sketches, first: int, bits: int, storage: ArrayStorage) -> Iterator[SortedBands]:
    # One piece is soon joined and gone. Many, as where all bands are sorted anew, are as large together as what they become.
    place = IN_MEMORY if len(sketches) <= SORTED_ROWS else storage
    for start in range(0, len(sketches), SORTED_ROWS):
        yield _sorted(sketches[start : start + SORTED_ROWS], first + start, bits, place)


def _sorted(sketches: Sketches, first: int, bits: int, storage: ArrayStorage) -> SortedBands:
    n, buckets = len(sketches), 1 << bits
    values = np.ascontiguousarray((band_values(sketches) >> (BAND_BITS - bits)).T)
    each_tag = np.ascontiguousarray(tags(sketches).T).view(np.int32)
    starts = np.empty(BANDS * buckets + 1, _numbers(n))
    rows, entries = storage.empty((BANDS * n,), starts.dtype), storage.empty((BANDS * n,), np.int32)
    every = np.arange(n + 1, dtype=np.int32)
    for band in range(BANDS):
        # Turning a matrix with one entry a row on its side is a counting sort that keeps the rows' order.
        turned = sparse.csr_array((each_tag[TAG_OF_BAND[band]], values[band], every), shape=(n, buckets)).tocsc()
        part = slice(band * n, (band + 1) * n)
        rows[part], entries[part] = turned.indices, turned.data
        starts[band * buckets : (band + 1) * buckets] = turned.indptr[:-1] + band * n
    starts[-1] = BANDS * n
    return bands_of_arrays(first, starts, rows, entries)


def _joined(parts: Sequence[SortedBands], storage: ArrayStorage) -> SortedBands:
    """`parts`, which follow each other and have buckets of one width, as one run made in `storage`."""
    n, buckets = sum(part.n for part in parts), 1 << parts[0].bits
    numbers = _numbers(n)
    starts = storage.empty((BANDS * buckets + 1,), numbers)
    rows, entries = storage.empty((BANDS * n,), numbers), storage.empty((BANDS * n,), np.int32)
    for band in range(BANDS):
        joined = sparse.hstack([_band(part, band, buckets) for part in parts], format="csr")
        part = slice(band * n, (band + 1) * n)
        rows[part], entries[part] = joined.indices, joined.data
        starts[band * buckets : (band + 1) * buckets] = joined.indptr[:-1]
        starts[band * buckets : (band + 1) * buckets] += band * n
    starts[-1] = BANDS * n
    return bands_of_arrays(parts[0].first, starts, rows, entries)


def _band(part: SortedBands, band: int, buckets: int) -> Any:
    """One band of a run, as a CSR of its buckets."""
    begins = part.buckets.indptr[band * buckets : (band + 1) * buckets + 1]
    inside = slice(int(begins[0]), int(begins[-1]))
    found = sparse.csr_array((buckets, part.n), dtype=np.int32)
    found.data, found.indices = part.buckets.data[inside], part.buckets.indices[inside]
    found.indptr = begins - begins[0]
    return found


def _numbers(n: int) -> type[np.signedinteger[Any]]:
    """The type that holds how many entries `n` rows have: scipy wants starts and rows in one."""
    return np.int64 if BANDS * n > np.iinfo(np.int32).max else np.int32
