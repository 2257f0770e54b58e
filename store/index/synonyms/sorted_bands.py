"""Phrase rows sorted by the value of each band of their sketches (`lsh`): one hash table per band, all in one sparse matrix.

The hash tables cover a *run* of consecutive rows. New rows become a separate run, and short runs are joined to longer ones, as
in a log-structured merge tree (O'Neil et al., 1996). Each phrase is therefore sorted about log(n) times.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.index.file_arrays import IN_MEMORY, ArrayStorage
from store.index.synonyms.lsh import BAND_BITS, Sketches, band_values

ROWS_A_BUCKET = 4
"""Maximum average number of rows per bucket. Lookups thus read few rows, and a short run has no more buckets than rows."""

SORTED_ROWS = 1 << 18
"""Number of rows sorted into one run; the runs are joined afterwards. The values of a run take 100 MB."""

JOINED_SHARE = 4
"""A run is joined with the rows after it once these rows number at least 1 / JOINED_SHARE of the run's length. A larger value
gives fewer runs to search, but rewrites long runs more often, and a rewritten run temporarily needs twice its memory."""

SCANNED_ENTRIES = 1 << 19
"""Approximate number of bucket entries read at a time. With half this number, two threads wait longer for the interpreter; with
four times this number, more reads miss the processor's cache. Either change makes a search 10% slower."""

MIN_ENTRIES = 1 << 17
"""Up to this number of entries, a lookup always reads the buckets."""

BAND_ARRAYS = ("starts", "entries")

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
"""(index of a query, row) of each pair, as two arrays."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class SortedBands:
    """The bands of the `n` rows from `first` on, divided into buckets by the first `bucket_bits` bits of a band's value.

    `entries` has shape (bands, n); the entries of each band are sorted by bucket. `starts` is the position of each bucket's
    first entry in the flattened `entries`. The lower bits of an entry are the row, counted from `first`; the bits above are the
    bits of the value that the bucket does not determine.
    """

    first: int
    starts: NDArray[Any]
    entries: NDArray[np.int32]

    @property
    def n(self) -> int:
        return int(self.entries.shape[1])

    @property
    def end(self) -> int:
        return self.first + self.n

    @property
    def bucket_bits(self) -> int:
        return bucket_bits(self.n)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns the arrays by their names (`BAND_ARRAYS`)."""
        return {"starts": self.starts, "entries": self.entries}

    def near(self, lookups: "BandLookup") -> Iterator[Pairs | None]:
        """Yields batches of pairs whose rows share one of the bands; None if the buckets contain so many rows that comparing
        with all rows is cheaper."""
        bits = self.bucket_bits
        looked_up = (lookups.values >> (BAND_BITS - bits)) + (lookups.bands << bits)
        begins = self.starts.take(looked_up)
        lengths = self.starts.take(looked_up + 1) - begins
        ends = np.cumsum(lengths, dtype=np.int64)
        if ends[-1] > max(MIN_ENTRIES, len(looked_up) * self.n // len(self.entries)):
            yield None
            return
        open_bits, entries = _above_row(lookups.values, self.n), self.entries.reshape(-1)
        skipped = begins - (ends - lengths)
        """Number of entries before each bucket that are not read."""
        cuts = np.searchsorted(ends, np.arange(SCANNED_ENTRIES, ends[-1], SCANNED_ENTRIES)).tolist()
        for begin, end in pairwise(sorted({0, *cuts, len(ends)})):
            part, read = slice(begin, end), int(ends[begin] - lengths[begin])
            of_each = np.repeat(np.arange(begin, end), lengths[part])
            found = entries.take(np.arange(read, int(ends[end - 1])) + skipped.take(of_each))
            if bits < BAND_BITS:
                # If the bits that the bucket does not determine are equal, XOR leaves the row number.
                found ^= open_bits.take(of_each)
                equal = np.flatnonzero(found < self.n)
                found, of_each = found.take(equal), of_each.take(equal)
            yield lookups.which.take(of_each), found.astype(np.int64) + self.first


@dataclass(frozen=True, slots=True)
class BandLookup:
    """Lookups in several bands: each array has one element per query and band, shape (queries * bands,).

    Within a band, lookups are sorted like the buckets, so most lookups read the same page as the previous one.
    """

    which: NDArray[np.intp]
    bands: NDArray[np.int32]
    values: NDArray[np.int32]

    @classmethod
    def of(cls, values: NDArray[np.int32], bands: range) -> Self:
        """Returns the lookups in `bands`. `values`: the queries' values of all bands, shape (bands, queries)."""
        order = np.argsort(values[bands.start : bands.stop], axis=1)
        ordered = np.take_along_axis(values[bands.start : bands.stop], order, axis=1)
        return cls(order.ravel(), np.repeat(np.asarray(bands, np.int32), values.shape[1]), ordered.ravel())


def bucket_bits(n: int) -> int:
    """Returns the number of bits of a band's value that form the bucket's number in a run of `n` rows."""
    return min((n // ROWS_A_BUCKET).bit_length(), BAND_BITS)


def _above_row(values: NDArray[np.int32], n: int) -> NDArray[np.int32]:
    """Returns the bits of `values` that the buckets do not determine, shifted above the row number's bits."""
    bits = bucket_bits(n)
    return (values & ((1 << (BAND_BITS - bits)) - 1)) << _row_bits(bits)


def _row_bits(bits: int) -> int:
    """Returns the number of bits of a row number in an entry whose bucket does not determine all bits of the band's value: a
    bucket has on average `ROWS_A_BUCKET` rows or fewer."""
    return bits + ROWS_A_BUCKET.bit_length() - 1


def with_new_rows(
    runs: Sequence[SortedBands], new_sketches: Sketches, bands: int, storage: ArrayStorage = IN_MEMORY
) -> tuple[SortedBands, ...]:
    """Returns `runs` with further rows at the end; `new_sketches` are the sketches of these rows. The new rows are sorted, and
    joined with the last runs unless these are long enough to stay separate.

    `bands`: number of bands. `storage`: allocates the new runs. Only reads its arguments, so it may run concurrently.
    """
    left = list(runs)
    begin = first = left[-1].end if left else 0
    joined: list[SortedBands] = []
    while left and (first + len(new_sketches) - begin) * JOINED_SHARE >= left[-1].n:
        joined.insert(0, left.pop())
        begin = joined[0].first
    joined.extend(_sorted_pieces(new_sketches, bands, first, storage))
    return (*left, _joined(joined, storage)) if joined else tuple(left)


def _sorted_pieces(sketches: Sketches, bands: int, first: int, storage: ArrayStorage) -> Iterator[SortedBands]:
    # A single piece will soon be joined and freed. If there are many pieces, for example when all bands are sorted anew, they
    # are together as large as the result.
    place = IN_MEMORY if len(sketches) <= SORTED_ROWS else storage
    for start in range(0, len(sketches), SORTED_ROWS):
        yield _sorted(sketches[start : start + SORTED_ROWS], bands, first + start, place)


def _sorted(sketches: Sketches, bands: int, first: int, storage: ArrayStorage) -> SortedBands:
    n, values = len(sketches), band_values(sketches, bands)
    rows = np.arange(n, dtype=np.int32)
    return _run(first, n, bands, storage, lambda band: _by_bucket(values[band], rows, n))


def _joined(parts: Sequence[SortedBands], storage: ArrayStorage) -> SortedBands:
    """Returns the consecutive `parts`, which must have the same bands, joined into one run that `storage` allocates."""
    n, first = sum(part.n for part in parts), parts[0].first

    def band_of_all(band: int) -> Any:
        # hstack increases the row numbers of each part by the number of rows in the parts before it.
        return sparse.hstack([_band(part, band, n) for part in parts], format="csr")

    return _run(first, n, len(parts[0].entries), storage, band_of_all)


def _run(first: int, n: int, bands: int, storage: ArrayStorage, band: Callable[[int], Any]) -> SortedBands:
    """Returns a run of `n` rows. `band(number)` returns one band as a CSR matrix of its buckets."""
    per_band = 1 << bucket_bits(n)
    numbers = np.int64 if bands * n > np.iinfo(np.int32).max else np.int32
    starts, entries = storage.empty((bands * per_band + 1,), numbers), storage.empty((bands, n), np.int32)
    for number in range(bands):
        made = band(number)
        entries[number] = made.indices
        of_band = slice(number * per_band, (number + 1) * per_band)
        starts[of_band] = made.indptr[:-1]
        starts[of_band] += number * n
    starts[-1] = bands * n
    return SortedBands(first, starts, entries)


def _band(part: SortedBands, band: int, n: int) -> Any:
    """Returns one band of `part` as a CSR matrix, divided into the buckets of a run of `n` rows."""
    bits = part.bucket_bits
    begins, entries = part.starts[band << bits : (band + 1 << bits) + 1], part.entries[band]
    if bits == bucket_bits(n):
        return _buckets(entries, begins - begins[0], part.n)
    open_bits = entries >> _row_bits(bits)
    of_bucket = np.repeat(np.arange(len(begins) - 1, dtype=np.int32), np.diff(begins))
    rows = entries & ((1 << _row_bits(bits)) - 1)
    return _by_bucket((of_bucket << (BAND_BITS - bits)) | open_bits, rows, n)


def _by_bucket(values: NDArray[np.int32], rows: NDArray[np.int32], n: int) -> Any:
    """Returns rows with these band values as a CSR matrix of the buckets in a run of `n` rows."""
    bits, of = bucket_bits(n), len(rows)
    # Transposing a matrix that has one entry per row is a counting sort that keeps the rows' order.
    places = values >> (BAND_BITS - bits), np.arange(of + 1, dtype=np.int32)
    turned = sparse.csr_array((np.empty(of, np.int8), *places), shape=(of, 1 << bits)).tocsc()
    order = turned.indices
    return _buckets(rows.take(order) | _above_row(values, n).take(order), turned.indptr, of)


def _buckets(entries: NDArray[Any], begins: NDArray[Any], n: int) -> Any:
    """Returns a CSR matrix whose values have no meaning; scipy's operations are used only for its indices."""
    found = sparse.csr_array((len(begins) - 1, n), dtype=np.int8)
    found.data, found.indices, found.indptr = np.empty(len(entries), np.int8), entries, begins
    return found
