"""Finding a phrase's near ones among many without comparing it with all of them, and without anything to train.

A vector's sketch is the signs of 768 random projections; two vectors at an angle of t differ in a share t / pi of them
(Charikar, "Similarity Estimation Techniques from Rounding Algorithms", 2002, section 3). A pair *meets* when its sketches
are as near as the threshold's angle lets expect and some band of 15 bits differs in one at most (Lv et al., "Multi-Probe
LSH", 2007). Only pairs that meet can be synonyms, in a memory of any size and however they were found, so that the edges
follow from the vectors alone. Of pairs right at a cosine of 0.8 one in 1,300 does not meet, of nearer ones fewer.

The projections are products of whole numbers whose sums stay below 2²⁴, which float32 adds up exactly: a vector has the
same sketch in whatever company it is sketched, on every machine.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.index.append_only_arrays import GrowableArray
from store.index.file_arrays import IN_MEMORY, Room
from store.index.parallel import processors, threads
from store.index.vectors.matrix import Vectors

WORDS = 12
BITS = 64 * WORDS
BANDS_A_WORD = 4
BANDS = WORDS * BANDS_A_WORD
BAND_BITS = 15
KEYS = 1 << BAND_BITS
"""A band is 15 of the 16 bits that are its share: with 14 a search among 830,000 takes half as long again, with 16 a fifth less
and several times as many pairs are missed."""

MISSED = 1e-3
"""Share of the pairs right at the threshold that may fail to meet."""

SIGMAS = 4.0
"""How far beyond its expectation a pair's distance may lie: one pair in 30,000 at the threshold lies farther."""

WORD_SIGMAS = 1.5
"""The same for the one word that a band tells pairs apart by. A pair at the threshold meets in seven bands on average, with
different words, so that being lost in one of them costs little; and few others are left to be looked at whole."""

VECTOR_STEPS, PROJECTION_STEPS = 4096, 64
"""What a component of a vector and of a projection is rounded to: whole parts of these. The sum of a projection is at most
their product times the square root of the dimension, which float32 holds exactly up to 4,000 dimensions."""

TAIL_LEAST = 8_192
TAIL_SHARE = 0.05
"""Sketches that came since the bands were sorted are all looked at; beyond both of these it is time to sort again."""

TOGETHER = 8192
"""Vectors that are sketched at a time."""

SCANNED = 1 << 18
"""Entries of bands that are looked at together, about: 2 MB of each of the arrays that this takes."""

MOST_SCANNED = 1 << 21
"""Entries of bands that are looked at together at most, some 60 MB, and pairs that one part of a search holds. A search that
needs more is among vectors of which so many are alike that comparing with all is cheaper."""

COMPARED_SKETCHES = 1 << 14
"""Pairs whose whole sketches are compared at a time: 5 MB."""

COMPARED_INSTEAD = 64
"""With how many phrases one is compared, all in a row, in the time that one candidate takes."""

LEAST_PAIRS = 4096
"""Candidates that are not too many for any search."""

LEAST_ASKED, MOST_ASKED = 256, 1024
"""Phrases that are worth a thread of their own, and how many one part of a search has at most."""

Sketches = NDArray[np.uint64]


def farthest(threshold: float, bits: int, sigmas: float = SIGMAS) -> int:
    """How many of `bits` two vectors with a cosine at the threshold differ in, at most but for rare pairs."""
    share = float(np.arccos(min(threshold, 1.0)) / np.pi)
    return int(np.ceil(bits * share + sigmas * np.sqrt(bits * share * (1 - share))))


@cache
def flips(threshold: float) -> int:
    """In how many bits of a band a pair may differ that meets there: 1 for 0.8, 2 below 0.78, 3 below 0.6."""
    share = float(np.arccos(min(threshold, 1.0)) / np.pi)
    inside, allowed = (1 - share) ** BAND_BITS, 0
    while (1 - inside) ** BANDS > MISSED:
        allowed += 1
        inside += comb(BAND_BITS, allowed) * share**allowed * (1 - share) ** (BAND_BITS - allowed)
    return allowed


@cache
def _masks(most: int) -> NDArray[np.int32]:
    """What turns a band's value into those that differ from it in at most `most` bits."""
    places = (bits for count in range(most + 1) for bits in combinations(range(BAND_BITS), count))
    return np.array([sum(1 << bit for bit in bits) for bits in places], np.int32)


@cache
def _projections(dim: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(20).standard_normal((dim, BITS))
    return np.rint(drawn * PROJECTION_STEPS).astype(np.float32)


def sketch(vectors: NDArray[np.float32]) -> Sketches:
    """Signs of the projections of `vectors`, shape (n, dim); shape (n, WORDS)."""
    out = np.empty((len(vectors), WORDS), np.uint64)
    for start in range(0, len(vectors), TOGETHER):
        whole = np.rint(vectors[start : start + TOGETHER] * np.float32(VECTOR_STEPS))
        signs = whole @ _projections(vectors.shape[1]) > 0
        out[start : start + TOGETHER] = np.packbits(signs, axis=1).view(np.uint64)
    return out


def meet(a: Sketches, b: Sketches, threshold: float) -> NDArray[np.bool_]:
    """Which pairs (a[i], b[i]) can be synonyms, shape (n,); the same for (b[i], a[i])."""
    differing = a ^ b
    apart: NDArray[Any] = np.bitwise_count(differing)
    near = apart.sum(axis=1, dtype=np.int32) <= farthest(threshold, BITS)
    near &= apart[:, :2].sum(axis=1) <= farthest(threshold, 128)
    in_band = np.bitwise_count(_bands_of(differing)) <= flips(threshold)
    in_word = apart <= farthest(threshold, 64, WORD_SIGMAS)
    met: NDArray[np.bool_] = near & (in_band & in_word[:, _OTHER_WORD]).any(axis=1)
    return met


BAND_ARRAYS = ("starts", "rows", "words")


@dataclass(frozen=True, slots=True)
class Sorted:
    """The first `n` rows by the value of each band, as a CSR: row `b * (KEYS + 1) + v` of it has those with value `v` in
    band `b`, and for each another word of its sketch, to tell most far ones apart. scipy gathers many of them in one pass."""

    n: int
    buckets: Any
    """Nothing where `n` is 0."""
    places: NDArray[np.int32] | None = None
    """Where the buckets are another index's: by its row the one here, or -1, for the rows that there were; None where they are
    the same."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `sorted_bands` makes it of again, by name (`BAND_ARRAYS`)."""
        if not self.n:
            return dict(zip(BAND_ARRAYS, (np.empty(0, np.int32),) * 3, strict=True))
        parts = self.buckets.indptr, self.buckets.indices, self.buckets.data
        return dict(zip(BAND_ARRAYS, parts, strict=True))

    @property
    def entries(self) -> int:
        """Rows in the buckets, whether they are here or not."""
        return self.buckets.shape[1] if self.n else 0


class SketchIndex:
    """The sketches of all phrase rows. `extend` and `adopt` are the writer's, which is also the only one that searches."""

    def __init__(self, room: Room = IN_MEMORY) -> None:
        """`room`: where the sketches lie."""
        self._room = room
        self._sketches = GrowableArray(np.uint64, WORDS, room)
        self._heads = GrowableArray(np.uint64, room=room), GrowableArray(np.uint64, room=room)
        """The first two words of each sketch again, each side by side: all that most of the tail is looked at for."""
        self._sorted = Sorted(0, None)

    @property
    def n(self) -> int:
        return self._sketches.n

    def extend(self, vectors: Vectors) -> None:
        """Takes in the rows of `vectors` that came since the last call."""
        view = vectors.view()
        while self.n < view.n:
            self.append(sketch(view.rows(np.arange(self.n, min(self.n + TOGETHER, view.n)))))

    def append(self, sketches: Sketches) -> None:
        """Takes in the sketches of the next rows; they are looked through one by one until `adopt`."""
        self._sketches.extend(sketches)
        for word, head in enumerate(self._heads):
            head.extend(sketches[:, word])

    def view(self) -> Sketches:
        """The sketches of all rows, shape (n, WORDS)."""
        return self._sketches.view()

    def load(self, sketches: Sketches, bands: Sorted) -> None:
        """Takes over saved sketches, and the bands of the first of them."""
        self._sketches.load(sketches)
        for word, head in enumerate(self._heads):
            head.load(sketches[:, word])
        self.adopt(bands)

    @property
    def bands(self) -> Sorted:
        """What `adopt` took over last."""
        return self._sorted

    def frozen(self) -> "SketchIndex":
        """The sketches of the rows that there are now; nothing is copied, and nothing may be appended."""
        frozen = SketchIndex()
        frozen._sketches = self._sketches.frozen()
        frozen._heads = self._heads[0].frozen(), self._heads[1].frozen()
        return frozen

    @property
    def due(self) -> bool:
        """Whether it is time to sort again."""
        return self._is_due(self._sorted.n)

    def _is_due(self, ordered: int) -> bool:
        return self.n - ordered > max(TAIL_LEAST, TAIL_SHARE * self.n)

    def adopt(self, bands: Sorted) -> None:
        """Takes over what `sort` made of the first rows of `view`."""
        self._sorted = bands

    def candidates(
        self,
        take: Callable[[NDArray[np.int64]], NDArray[np.float32]],
        queries: NDArray[np.int64],
        wanted: NDArray[np.bool_],
        threshold: float,
    ) -> Iterator[tuple[int, int, tuple[NDArray[np.int64], NDArray[np.int64]] | None]]:
        """(first, end, pairs) for one part of `queries` after the other: `queries[first:end]`, and (index in the part, row) of
        all pairs that meet and some that do not, of `wanted` rows (shape (n,)) alone, the query itself among them. None for
        pairs where they are so many that comparing with all is cheaper.

        `take` gives the vectors of `queries`.
        """
        share = min(max(-(-len(queries) // processors()), LEAST_ASKED), MOST_ASKED)
        starts = range(0, len(queries), share)
        for at in range(0, len(starts), processors()):
            parts = [(start, sketch(take(queries[start : start + share]))) for start in starts[at : at + processors()]]
            beside = [threads().submit(self._pairs, part, wanted, threshold) for _, part in parts[1:]]
            for (start, part), found in zip(parts, [None, *beside], strict=True):
                pairs = self._pairs(part, wanted, threshold) if found is None else found.result()
                yield start, start + len(part), pairs

    def _pairs(
        self, sketches: Sketches, wanted: NDArray[np.bool_], threshold: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """The same for the sketches of one part."""
        found: list[NDArray[np.int64]] = []
        count, most = 0, min(MOST_SCANNED // 2, max(len(sketches) * self.n // COMPARED_INSTEAD, LEAST_PAIRS))
        for pairs in self._looked_through(sketches, wanted, threshold):
            if pairs is None:
                return None
            found.append(pairs)
            count += len(pairs)
            if count > MOST_SCANNED:
                # A pair that meets in several bands is one pair.
                found = [np.unique(np.concatenate(found))]
                count = len(found[0])
                if count > most:
                    return None
        every = np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)
        if len(every) > most:
            return None
        return every // max(self.n, 1), every % max(self.n, 1)

    def _looked_through(
        self, sketches: Sketches, wanted: NDArray[np.bool_], threshold: float
    ) -> Iterator[NDArray[np.int64] | None]:
        """The pairs as which * n + row, with repetitions; None where one look would take too much."""
        # The bands may be another's, who sorts again meanwhile: one search goes by one order.
        ordered = self._bands()
        # One band after the other for many queries, so that what is read of it stays in the cache; all at once for few.
        a_band = max(1, len(sketches) * len(_masks(flips(threshold))) * ordered.entries // KEYS)
        bands, asked = max(1, SCANNED // a_band), max(1, len(sketches) * SCANNED // a_band)
        for first in range(0, BANDS if ordered.n else 0, bands):
            for start in range(0, len(sketches), asked):
                part = sketches[start : start + asked]
                inside = _in_bands(ordered, part, first, min(first + bands, BANDS), threshold)
                yield None if inside is None else self._near(sketches, inside[0] + start, inside[1], wanted, threshold)
        near, (one, two) = farthest(threshold, 128), (head.view()[ordered.n :] for head in self._heads)
        for i, words in enumerate(sketches[:, :2] if len(one) else ()):
            rows = np.flatnonzero(np.bitwise_count(one ^ words[0]) + np.bitwise_count(two ^ words[1]) <= near)
            yield self._near(sketches, np.full(len(rows), i), rows + ordered.n, wanted, threshold)

    def _bands(self) -> Sorted:
        """What to search through."""
        return self._sorted

    def _near(
        self,
        sketches: Sketches,
        which: NDArray[np.int64],
        rows: NDArray[np.int64],
        wanted: NDArray[np.bool_],
        threshold: float,
    ) -> NDArray[np.int64]:
        """Of the pairs (which, row) those of `wanted` rows of which the whole sketches are near."""
        here = wanted[rows]
        which, rows = which[here], rows[here]
        every, near = self._sketches.view(), np.empty(len(rows), np.bool_)
        for start in range(0, len(rows), COMPARED_SKETCHES):
            part = slice(start, start + COMPARED_SKETCHES)
            apart = np.bitwise_count(every[rows[part]] ^ sketches[which[part]]).sum(axis=1, dtype=np.int32)
            near[part] = apart <= farthest(threshold, BITS)
        return which[near] * self.n + rows[near]


def _in_bands(
    ordered: Sorted, asked: Sketches, first: int, end: int, threshold: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """(index in `asked`, row) of sorted rows that differ little in one of the bands `first` to `end` and in the word that goes
    with it; None where that is to be said of more than `MOST_SCANNED` rows."""
    masks = _masks(flips(threshold))
    probed = ((_bands_of(asked)[:, first:end, None].astype(np.int32) ^ masks) + _KEYS_OFFSET[first:end]).ravel()
    begins = ordered.buckets.indptr
    if int((begins[probed + 1] - begins[probed]).sum(dtype=np.int64)) > MOST_SCANNED:
        return None
    there = ordered.buckets[probed]
    ends = there.indptr[:: len(masks)]
    words = np.repeat(asked[:, _OTHER_WORD[first:end]].ravel(), np.diff(ends))
    apart = np.bitwise_count(there.data.view(np.uint64) ^ words)
    here = np.flatnonzero(apart <= farthest(threshold, 64, WORD_SIGMAS))
    which = (np.searchsorted(ends, here, side="right") - 1) // (end - first)
    rows = there.indices[here].astype(np.int64)
    if ordered.places is None:
        return which, rows
    known = np.flatnonzero(rows < len(ordered.places))
    rows, which = ordered.places[rows[known]].astype(np.int64), which[known]
    return which[rows >= 0], rows[rows >= 0]


_OTHER_WORD = (np.arange(BANDS) // BANDS_A_WORD + 1) % WORDS
"""Which word of the sketch goes with each band: one that the band is no part of."""

_KEYS_OFFSET = (np.arange(BANDS, dtype=np.int32) * (KEYS + 1))[:, None]
"""Where each band's values begin among the rows of `Sorted.buckets`."""


def _bands_of(sketches: Sketches) -> NDArray[np.uint16]:
    """The values of each sketch's bands, shape (len(sketches), BANDS)."""
    return np.ascontiguousarray(sketches).view(np.uint16).reshape(len(sketches), BANDS) & np.uint16(KEYS - 1)


def sort(sketches: Sketches, room: Room = IN_MEMORY) -> Sorted:
    """The rows of `sketches` by each band, made in `room`. Some 2 s a million rows; touches nothing else, so it may run beside
    all."""
    n = len(sketches)
    # Each band has one row more than values, an empty one: where it ends is where the next begins.
    starts = np.empty(BANDS * (KEYS + 1), np.int64 if BANDS * n > np.iinfo(np.int32).max else np.int32)
    rows, words = room.empty((BANDS * n,), starts.dtype), room.empty((BANDS * n,), np.int64)
    every = np.ascontiguousarray(sketches).view(np.uint16).reshape(n, BANDS)
    for band in range(BANDS):
        values = every[:, band] & np.uint16(KEYS - 1)
        order = np.argsort(values, kind="stable")
        rows[band * n : (band + 1) * n] = order
        words[band * n : (band + 1) * n] = sketches[order, _OTHER_WORD[band]].view(np.int64)
        begin = band * (KEYS + 1)
        starts[begin] = band * n
        starts[begin + 1 : begin + KEYS + 1] = band * n + np.cumsum(np.bincount(values, minlength=KEYS))
    return sorted_bands(starts, rows, words)


def sorted_bands(starts: NDArray[Any], rows: NDArray[Any], words: NDArray[Any]) -> Sorted:
    """The bands of these `BAND_ARRAYS`, which are used as they are."""
    n = len(rows) // BANDS
    if not n:
        return Sorted(0, None)
    buckets = sparse.csr_array((len(starts) - 1, n), dtype=np.int64)
    buckets.data, buckets.indices, buckets.indptr = words, rows, starts
    return Sorted(n, buckets)
