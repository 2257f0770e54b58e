"""Phrase rows by the value of each band of their sketches (`lsh`): a hash table a band, all in one sparse matrix.

A table is a *run* of rows: what came since is sorted into a run of its own, and short runs are joined to longer ones, as in
a log-structured merge tree (O'Neil et al., 1996). So a phrase is sorted in again as often as the logarithm of their number, not
as often as a share of them has come.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

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

ROWS_A_BUCKET = 4
"""On average, or fewer: so few rows of a run are looked at, and a short one has not more buckets than rows."""

SORTED_ROWS = 1 << 18
"""Rows that are sorted at a time, before they are joined: 100 MB of values."""

JOINED_SHARE = 4
"""A run is joined to what comes behind it once that is as long as this part of it. With a smaller part there are fewer runs to
look at, but a long one is written anew more often, and then takes its room in memory twice."""

SCANNED_ENTRIES = 1 << 19
"""Entries of buckets that are looked at together, about. With half as many two threads wait more for the interpreter, with four
times as many more is read from beyond the processor's cache: a search takes a tenth longer either way."""

MIN_ENTRIES = 1 << 17
"""Entries that are not too many for any look."""

BAND_ARRAYS = ("starts", "entries", "tags")

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
"""(index of a question, row) of each pair."""


@dataclass(frozen=True, slots=True, eq=False)
class SortedBands:
    """The `n` rows from `first` on, by the first `bucket_bits` bits of each band's value.

    `buckets` is a CSR, of which scipy gathers many rows in one pass: a row for each bucket of each of the `bands`, `n` entries
    for a band. An entry is a row, counted from `first`, with the bits of its value that its bucket leaves open above it,
    and the tag that goes with the band.
    """

    first: int
    bands: int
    buckets: Any

    @property
    def n(self) -> int:
        return len(self.buckets.indices) // self.bands

    @property
    def end(self) -> int:
        return self.first + self.n

    @property
    def bucket_bits(self) -> int:
        return bucket_bits(self.n)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `bands_of_arrays` makes it of again, by name (`BAND_ARRAYS`): where the entries of each bucket begin, then their
        rows and their tags, both of shape (bands, n)."""
        shape, made = (self.bands, self.n), self.buckets
        return dict(zip(BAND_ARRAYS, (made.indptr, made.indices.reshape(shape), made.data.reshape(shape)), strict=True))

    def near(self, asked: "Asked", threshold: float) -> Iterator[Pairs | None]:
        """The rows that share one of the bands, and differ little in the tag that goes with it, some at a time; None where so
        many rows are in the buckets that comparing with all is cheaper."""
        bits = self.bucket_bits
        looked_up = (asked.values >> (BAND_BITS - bits)) + (asked.bands << bits)
        lengths = self.buckets.indptr.take(looked_up + 1) - self.buckets.indptr.take(looked_up)
        ends = np.cumsum(lengths, dtype=np.int64)
        if ends[-1] > max(MIN_ENTRIES, len(looked_up) * self.n // self.bands):
            yield None
            return
        open_bits, wanted, which = _above_row(asked.values, self.n), asked.tags, asked.which
        cuts = np.searchsorted(ends, np.arange(SCANNED_ENTRIES, ends[-1], SCANNED_ENTRIES)).tolist()
        for begin, end in pairwise(sorted({0, *cuts, len(ends)})):
            there = self.buckets[looked_up[begin:end]]
            apart = np.repeat(wanted[begin:end], lengths[begin:end])
            apart ^= there.data.view(np.uint32)
            here = places(np.bitwise_count(apart), farthest(threshold, TAG_BITS, TAG_SIGMAS))
            of_each = np.diff(np.searchsorted(here, there.indptr))
            # Where the bits that the bucket leaves open are equal, the row is what differs.
            entries = there.indices.take(here) ^ np.repeat(open_bits[begin:end], of_each)
            found = np.repeat(which[begin:end], of_each), entries.astype(np.int64) + self.first
            if bits == BAND_BITS:
                yield found
            else:
                equal = np.flatnonzero(entries < self.n)
                yield found[0][equal], found[1][equal]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked up in some bands: for each question and band a place in these arrays, shape (questions * bands,).

    In each band questions come in the order in which its buckets lie in memory: then most lie in a page with the one before.
    """

    which: NDArray[np.intp]
    bands: NDArray[np.int32]
    values: NDArray[np.int32]
    tags: NDArray[np.uint32]

    @classmethod
    def of(cls, values: NDArray[np.int32], asked: NDArray[np.uint32], bands: range) -> Self:
        """`values` and `asked` are the band values and the tags of the questions, shape (bands, questions) and (questions,
        TAGS). Of these `bands`, which follow each other."""
        order = np.argsort(values[bands.start : bands.stop], axis=1)
        ordered = np.take_along_axis(values[bands.start : bands.stop], order, axis=1)
        tags = asked[order, tag_of_band(np.asarray(bands))[:, None]]
        return cls(
            order.ravel(), np.repeat(np.asarray(bands, np.int32), values.shape[1]), ordered.ravel(), tags.ravel()
        )


def bucket_bits(n: int) -> int:
    """How many bits of a band's value make the number of a bucket, among `n` rows."""
    return min((n // ROWS_A_BUCKET).bit_length(), BAND_BITS)


def _above_row(values: NDArray[np.int32], n: int) -> NDArray[np.int32]:
    """The bits of `values` that their buckets leave open, above where a row's number stands, among `n` rows."""
    bits = bucket_bits(n)
    return (values & ((1 << (BAND_BITS - bits)) - 1)) << _row_bits(bits)


def _row_bits(bits: int) -> int:
    """How many bits a row's number has where buckets leave something open: there are at most `ROWS_A_BUCKET` rows for each."""
    return bits + ROWS_A_BUCKET.bit_length() - 1


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


def bands_of_arrays(first: int, starts: NDArray[Any], entries: NDArray[Any], tags: NDArray[Any]) -> SortedBands:
    """The run of these `BAND_ARRAYS`, which are used as they are."""
    buckets = sparse.csr_array((len(starts) - 1, 1), dtype=np.int32)
    buckets.data, buckets.indices, buckets.indptr = tags.reshape(-1), entries.reshape(-1), starts
    return SortedBands(first, len(entries), buckets)


def _sorted_pieces(sketches: Sketches, bands: int, first: int, storage: ArrayStorage) -> Iterator[SortedBands]:
    # One piece is soon joined and gone. Many, as where all bands are sorted anew, are as large together as what they become.
    place = IN_MEMORY if len(sketches) <= SORTED_ROWS else storage
    for start in range(0, len(sketches), SORTED_ROWS):
        yield _sorted(sketches[start : start + SORTED_ROWS], bands, first + start, place)


def _sorted(sketches: Sketches, bands: int, first: int, storage: ArrayStorage) -> SortedBands:
    n = len(sketches)
    values, each_tag = band_values(sketches, bands), np.ascontiguousarray(tags(sketches).T).view(np.int32)
    rows = np.arange(n, dtype=np.int32)
    return _run(first, n, bands, storage, lambda band: _by_bucket(values[band], rows, each_tag[tag_of_band(band)], n))


def _joined(parts: Sequence[SortedBands], storage: ArrayStorage) -> SortedBands:
    """`parts`, which follow each other and have the same bands, as one run made in `storage`."""
    n, first = sum(part.n for part in parts), parts[0].first

    def band_of_all(band: int) -> Any:
        # The numbers of rows of a part go up by those of the parts before.
        return sparse.hstack([_band(part, band, n) for part in parts], format="csr")

    return _run(first, n, parts[0].bands, storage, band_of_all)


def _run(first: int, n: int, bands: int, storage: ArrayStorage, band: Callable[[int], Any]) -> SortedBands:
    """The run of `n` rows of which `band` gives one band after the other, as a CSR of its buckets."""
    per_band = 1 << bucket_bits(n)
    # scipy wants places and entries in one type, or makes a copy of all.
    numbers = np.int64 if bands * n > np.iinfo(np.int32).max else np.int32
    starts, entries = storage.empty((bands * per_band + 1,), numbers), storage.empty((bands, n), numbers)
    each_tag = storage.empty((bands, n), np.int32)
    for number in range(bands):
        made = band(number)
        entries[number], each_tag[number] = made.indices, made.data
        of_band = slice(number * per_band, (number + 1) * per_band)
        starts[of_band] = made.indptr[:-1]
        starts[of_band] += number * n
    starts[-1] = bands * n
    return bands_of_arrays(first, starts, entries, each_tag)


def _band(part: SortedBands, band: int, n: int) -> Any:
    """One band of a run, as a CSR of the buckets that it has among `n` rows."""
    bits = part.bucket_bits
    starts, entries, each_tag = part.arrays().values()
    begins, entries, each_tag = starts[band << bits : (band + 1 << bits) + 1], entries[band], each_tag[band]
    if bits == bucket_bits(n):
        return _buckets(entries, each_tag, begins - begins[0], part.n)
    open_bits = entries >> _row_bits(bits)
    of_bucket = np.repeat(np.arange(len(begins) - 1, dtype=np.int32), np.diff(begins))
    rows = entries & ((1 << _row_bits(bits)) - 1)
    return _by_bucket((of_bucket << (BAND_BITS - bits)) | open_bits, rows, each_tag, n)


def _by_bucket(values: NDArray[np.int32], rows: NDArray[np.int32], each_tag: NDArray[np.int32], n: int) -> Any:
    """Rows with these values and tags as a CSR of the buckets that a band has among `n` rows."""
    bits, of = bucket_bits(n), len(rows)
    # Turning a matrix with one entry a row on its side is a counting sort that keeps the rows' order.
    turned = sparse.csr_array(
        (each_tag, values >> (BAND_BITS - bits), np.arange(of + 1, dtype=np.int32)), shape=(of, 1 << bits)
    ).tocsc()
    order = turned.indices
    return _buckets(rows.take(order) | _above_row(values, n).take(order), turned.data, turned.indptr, of)


def _buckets(entries: NDArray[Any], each_tag: NDArray[Any], begins: NDArray[Any], n: int) -> Any:
    found = sparse.csr_array((len(begins) - 1, n), dtype=np.int32)
    found.data, found.indices, found.indptr = each_tag, entries, begins
    return found
