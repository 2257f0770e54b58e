"""Finding a phrase's near ones among many without comparing it with all of them, and without anything to train.

A vector's sketch is the signs of 256 random projections; two vectors at an angle of t differ in a share t / pi of them
(Charikar, "Similarity Estimation Techniques from Rounding Algorithms", 2002, section 3). Twenty bands of twelve bits are
sorted; a pair is looked at when some band of theirs differs in at most one bit (Lv et al., "Multi-Probe LSH", 2007), and
compared exactly when the whole sketches are as near as the threshold's angle lets expect. Of pairs right at a cosine of
0.8 this misses 2 in 1,000, of nearer ones fewer. Which pairs are found depends on the two vectors alone: not on the other
phrases, nor on the order in which they came.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.growing import Growing, Vectors

WORDS = 4
BITS = 64 * WORDS
BAND_BITS = 12
BANDS_A_WORD = 64 // BAND_BITS
BANDS = WORDS * BANDS_A_WORD
KEYS = 1 << BAND_BITS

SIGMAS = 4.0
"""How far beyond its expectation a pair's distance may lie: one pair in 30,000 at the threshold lies farther."""

WORD_SIGMAS = 2.0
"""The same for the one word that a band tells pairs apart by. A pair at the threshold meets in five bands on average, with
different words, so that being lost in one of them costs little; and few others are left to be looked at whole."""

TAIL_LEAST = 16_384
TAIL_SHARE = 0.1
"""Sketches that came since the bands were sorted are all looked at; beyond both of these it is time to sort again."""

TOGETHER = 8192
"""Vectors that are sketched at a time."""

Sketches = NDArray[np.uint64]

_FLIPS = np.array([0, *(1 << bit for bit in range(BAND_BITS))])
"""What turns a band's value into those that differ from it in at most one bit."""


def farthest(threshold: float, bits: int, sigmas: float = SIGMAS) -> int:
    """How many of `bits` two vectors with a cosine at the threshold differ in, at most but for rare pairs."""
    share = float(np.arccos(min(threshold, 1.0)) / np.pi)
    return int(np.ceil(bits * share + sigmas * np.sqrt(bits * share * (1 - share))))


@dataclass(frozen=True, slots=True)
class Sorted:
    """The first `n` rows by the value of each band: band `b`'s are at `b * n` and on, those with value `v` from
    `starts[b, v]` to `starts[b, v + 1]`. `words` is another word of each one's sketch, to tell most far ones apart."""

    n: int
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    words: NDArray[np.uint64]


class SketchIndex:
    """The sketches of all phrase rows. `extend` and `adopt` are the writer's, which is also the only one that searches."""

    def __init__(self, dim: int) -> None:
        self._projections = np.random.default_rng(20).standard_normal((dim, BITS), dtype=np.float32)
        self._sketches = Growing(np.uint64, WORDS)
        self._sorted = sort(self._sketches.view())

    @property
    def n(self) -> int:
        return self._sketches.n

    def sketch(self, vectors: NDArray[np.float32]) -> Sketches:
        """Signs of the projections, shape (len(vectors), WORDS)."""
        out = np.empty((len(vectors), WORDS), np.uint64)
        for start in range(0, len(vectors), TOGETHER):
            signs = vectors[start : start + TOGETHER] @ self._projections > 0
            out[start : start + TOGETHER] = np.packbits(signs, axis=1).view(np.uint64)
        return out

    def extend(self, vectors: Vectors) -> None:
        """Takes in the rows of `vectors` that came since the last call."""
        view = vectors.view()
        while self.n < view.n:
            self._sketches.extend(self.sketch(view.rows(np.arange(self.n, min(self.n + TOGETHER, view.n)))))

    def view(self) -> Sketches:
        """The sketches of all rows, shape (n, WORDS)."""
        return self._sketches.view()

    def load(self, sketches: Sketches) -> None:
        """Takes over saved sketches."""
        self._sketches = Growing(np.uint64, WORDS)
        self._sketches.extend(sketches)
        self.adopt(sort(self.view()))

    @property
    def due(self) -> bool:
        """Whether it is time to sort again."""
        return self.n - self._sorted.n > max(TAIL_LEAST, TAIL_SHARE * self.n)

    def adopt(self, bands: Sorted) -> None:
        """Takes over what `sort` made of the first rows of `view`."""
        self._sorted = bands

    def candidates(self, queries: NDArray[np.float32], threshold: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(index of the query, row) of pairs that may reach the threshold; dead rows and the query itself among them."""
        asking: list[NDArray[Any]] = [np.empty(0, np.int64)]
        found: list[NDArray[Any]] = [np.empty(0, np.int64)]
        sketches = self.sketch(queries)
        for i, (sketch, keys) in enumerate(zip(sketches, _keys(sketches), strict=True)):
            rows = self._near(sketch, keys, threshold)
            asking.append(np.full(len(rows), i))
            found.append(rows)
        return np.concatenate(asking), np.concatenate(found).astype(np.int64)

    def _near(self, sketch: Sketches, keys: NDArray[np.int64], threshold: float) -> NDArray[np.int64]:
        bands, known = self._sorted, self._sketches.view()
        probed = (keys[:, None] ^ _FLIPS) + KEYS_OFFSET
        # Bands have one more start than values: the end of the last.
        begins, ends = bands.starts[probed].ravel(), bands.starts[probed + 1].ravel()
        parts = [bands.words[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        lengths = ends - begins
        word_of = np.repeat(np.repeat(sketch[_OTHER_WORD], len(_FLIPS)), lengths)
        apart = np.bitwise_count(np.concatenate(parts) ^ word_of)
        here = np.flatnonzero(apart <= farthest(threshold, 64, WORD_SIGMAS))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        part = np.searchsorted(offsets, here, side="right") - 1
        sorted_rows = bands.rows[begins[part] + here - offsets[part]]
        apart = np.bitwise_count(known[bands.n :, 0] ^ sketch[0])
        rows = np.concatenate([sorted_rows, np.flatnonzero(apart <= farthest(threshold, 64)) + bands.n])
        apart = np.bitwise_count(known[rows] ^ sketch).sum(axis=1, dtype=np.int32)
        near: NDArray[np.int64] = np.unique(rows[apart <= farthest(threshold, BITS)])
        return near


_OTHER_WORD = (np.arange(BANDS) // BANDS_A_WORD + 1) % WORDS
"""Which word of the sketch goes with each band: one that the band is no part of."""

KEYS_OFFSET = (np.arange(BANDS) * (KEYS + 1))[:, None]
"""Where each band's values begin among `Sorted.starts`."""


def _keys(sketches: Sketches) -> NDArray[np.int64]:
    """The values of each sketch's bands, shape (len(sketches), BANDS)."""
    shifts = np.uint64(BAND_BITS) * np.arange(BANDS_A_WORD, dtype=np.uint64)
    values = (sketches[:, :, None] >> shifts) & np.uint64(KEYS - 1)
    return values.reshape(len(sketches), BANDS).astype(np.int64)


def sort(sketches: Sketches) -> Sorted:
    """The rows of `sketches` by each band. Some 0.3 s a million rows; touches nothing else, so it may run beside all."""
    n = len(sketches)
    starts = np.empty(BANDS * (KEYS + 1), np.int64)
    rows, words = np.empty(BANDS * n, np.int32), np.empty(BANDS * n, np.uint64)
    for band in range(BANDS):
        word, place = divmod(band, BANDS_A_WORD)
        values = ((sketches[:, word] >> np.uint64(BAND_BITS * place)) & np.uint64(KEYS - 1)).astype(np.uint16)
        order = np.argsort(values, kind="stable")
        rows[band * n : (band + 1) * n] = order
        words[band * n : (band + 1) * n] = sketches[order, _OTHER_WORD[band]]
        first = starts[band * (KEYS + 1) : (band + 1) * (KEYS + 1)]
        first[0] = band * n
        np.cumsum(np.bincount(values, minlength=KEYS), out=first[1:])
        first[1:] += band * n
    return Sorted(n, starts, rows, words)
