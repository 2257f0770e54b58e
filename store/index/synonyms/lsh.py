"""Which pairs of phrases can be synonyms: a rule about two vectors alone, without anything to train.

A vector's sketch is the signs of 768 random projections; two vectors at an angle of t differ in a share t / pi of them
(Charikar, "Similarity Estimation Techniques from Rounding Algorithms", 2002, section 3). A pair *meets* when its sketches
are as near as the threshold's angle lets expect and some band of 18 bits differs in one at most (Lv et al., "Multi-Probe
LSH", 2007). Only pairs that meet can be synonyms, in a memory of any size and however they were found, so that the edges
follow from the vectors alone. Of pairs right at a cosine of 0.8 one in 540 does not meet, of pairs at 0.82 one in 2,100, of
nearer ones fewer.

A sketch's first 738 bits are 18 rows of 41, and a band is a line through them: its bit in row r is the one at
(start + slope * r) modulo 41. As 41 is prime, two bands share a bit at most, and those of one slope none, so that one that a
pair misses says little about the others.

The projections are products of whole numbers whose sums stay below 2²⁴, which float32 adds up exactly: a vector has the
same sketch in whatever company it is sketched, on every machine.
"""

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.parallel import in_parallel

WORDS = 12
BITS = 64 * WORDS
BAND_BITS = 18
BAND_STARTS = 41
SLOPES = 2
BANDS = SLOPES * BAND_STARTS

HEAD_WORDS = 2
"""Words at the beginning of a sketch that must be near by themselves."""

TAG_BITS = 32
TAGS = BITS // TAG_BITS

MISSED = 1e-3
"""Share of the pairs right at the threshold that may share no band, were bands independent of each other."""

SIGMAS = 4.0
"""How far beyond its expectation a pair's distance may lie: one pair in 30,000 at the threshold lies farther."""

TAG_SIGMAS = 1.5
"""The same for the tag that a band tells pairs apart by. A pair at the threshold meets in seven bands on average, with
different tags, so that being lost in one of them costs little; and few others are left to be looked at whole."""

VECTOR_STEPS, PROJECTION_STEPS = 4096, 64
"""What a component of a vector and of a projection is rounded to: whole parts of these. The sum of a projection is at most
their product times the square root of the dimension, which float32 holds exactly up to 4,000 dimensions."""

SKETCHED_AT_ONCE = 1024
"""Vectors that are sketched at a time, and sketches whose bands are worked out at a time."""

Sketches = NDArray[np.uint64]


def farthest(threshold: float, bits: int, sigmas: float = SIGMAS) -> int:
    """How many of `bits` two vectors with a cosine at the threshold differ in, at most but for rare pairs."""
    share = float(np.arccos(min(threshold, 1.0)) / np.pi)
    return int(np.ceil(bits * share + sigmas * np.sqrt(bits * share * (1 - share))))


@cache
def flips(threshold: float) -> int:
    """In how many bits of a band a pair may differ that meets there: 1 for 0.8, 2 below 0.79, 3 below 0.6."""
    share = float(np.arccos(min(threshold, 1.0)) / np.pi)
    inside, allowed = (1 - share) ** BAND_BITS, 0
    while (1 - inside) ** BANDS > MISSED:
        allowed += 1
        inside += comb(BAND_BITS, allowed) * share**allowed * (1 - share) ** (BAND_BITS - allowed)
    return allowed


@cache
def _masks(most: int, bits: int) -> NDArray[np.int32]:
    places = (flipped for count in range(most + 1) for flipped in combinations(range(BAND_BITS), count))
    return np.unique(np.array([sum(1 << bit for bit in flipped) for flipped in places], np.int32) >> (BAND_BITS - bits))


def probes(threshold: float, bits: int) -> NDArray[np.int32]:
    """What turns the highest `bits` of a band's value into those of all values that differ from it little enough to meet."""
    return _masks(flips(threshold), bits)


@cache
def _projections(dim: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(20).standard_normal((dim, BITS))
    return np.rint(drawn * PROJECTION_STEPS).astype(np.float32)


@cache
def _lines() -> NDArray[np.intp]:
    """Which bits of a sketch are a band's, shape (BAND_BITS, BANDS)."""
    rows, (slopes, starts) = np.arange(BAND_BITS)[:, None], np.divmod(np.arange(BANDS), BAND_STARTS)
    return rows * BAND_STARTS + (starts + slopes * rows) % BAND_STARTS


TAG_OF_BAND = np.arange(BANDS) * 7 % TAGS
"""Which part of the sketch goes with each band, to tell most far pairs apart that share the band."""


def sketch(vectors: NDArray[np.float32]) -> Sketches:
    """Signs of the projections of `vectors`, shape (n, dim); shape (n, WORDS)."""
    out = np.empty((len(vectors), WORDS), np.uint64)

    def fill(start: int) -> None:
        whole = np.rint(vectors[start : start + SKETCHED_AT_ONCE] * np.float32(VECTOR_STEPS))
        signs = whole @ _projections(vectors.shape[1]) > 0
        out[start : start + SKETCHED_AT_ONCE] = np.packbits(signs, axis=1).view(np.uint64)

    in_parallel(fill, range(0, len(vectors), SKETCHED_AT_ONCE))
    return out


def band_values(sketches: Sketches) -> NDArray[np.int32]:
    """The values of each sketch's bands, shape (len(sketches), BANDS)."""
    out = np.zeros((BANDS, len(sketches)), np.int32)
    for part, bits in _unpacked(sketches):
        for place, line in enumerate(_lines()):
            out[:, part] |= bits[line].astype(np.int32) << place
    return out.T


def tags(sketches: Sketches) -> NDArray[np.uint32]:
    """The parts of each sketch that `TAG_OF_BAND` names, shape (len(sketches), TAGS)."""
    return np.ascontiguousarray(sketches).view(np.uint32).reshape(len(sketches), TAGS)


def meet(a: Sketches, b: Sketches, threshold: float) -> NDArray[np.bool_]:
    """Which pairs (a[i], b[i]) can be synonyms, shape (n,); the same for (b[i], a[i])."""
    differing = a ^ b
    apart: NDArray[Any] = np.bitwise_count(differing)
    near = apart.sum(axis=1, dtype=np.int32) <= farthest(threshold, BITS)
    near &= apart[:, :HEAD_WORDS].sum(axis=1) <= farthest(threshold, 64 * HEAD_WORDS)
    met = np.zeros(len(a), np.bool_)
    rows = np.flatnonzero(near)
    in_band = _differing_in_bands(differing[rows]) <= flips(threshold)
    in_tag = np.bitwise_count(tags(differing[rows])) <= farthest(threshold, TAG_BITS, TAG_SIGMAS)
    met[rows] = (in_band & in_tag[:, TAG_OF_BAND]).any(axis=1)
    return met


def _differing_in_bands(differing: Sketches) -> NDArray[np.uint8]:
    """How many bits of each band are set, shape (len(differing), BANDS)."""
    out = np.zeros((BANDS, len(differing)), np.uint8)
    for part, bits in _unpacked(differing):
        for line in _lines():
            out[:, part] += bits[line]
    return out.T


def _unpacked(sketches: Sketches) -> Iterator[tuple[slice, NDArray[np.uint8]]]:
    """Some sketches after the others: which, and their bits, shape (BITS, sketches), so that a band's bits are whole rows."""
    octets = np.ascontiguousarray(sketches).view(np.uint8).reshape(len(sketches), BITS // 8)
    for start in range(0, len(sketches), SKETCHED_AT_ONCE):
        part = slice(start, start + SKETCHED_AT_ONCE)
        yield part, np.ascontiguousarray(np.unpackbits(octets[part], axis=1).T)
