"""Which pairs of phrases can be synonyms: a rule about two vectors alone, without anything to train.

A vector's sketch is the signs of 768 random projections, of which two vectors at an angle of t differ in a share t / pi
(Charikar, "Similarity Estimation Techniques from Rounding Algorithms", 2002, section 3), and 288 *hashes*: which of 32 random
directions or their opposites it points to most (Andoni et al., "Practical and Optimal LSH for Angular Distance", 2015,
section 3: cross-polytope hashing). A *band* is three hashes. A pair *meets* when its signs are as near as the threshold's angle
lets expect and it has all hashes of some band in common. Only pairs that meet can be synonyms, in a memory of any size and
however they were found, so that the edges follow from the vectors alone. Of pairs right at a cosine of 0.8 one in 50 does
not meet, of pairs at 0.82 one in 140, at 0.84 one in 490, of nearer ones fewer.

For a threshold of 0.8 there are 95 bands, which share no hash. A lower one needs more, for which hashes are put together anew.

The projections are products of whole numbers whose sums stay below 2²⁴, which float32 adds up exactly: a vector has the
same sketch in whatever company it is sketched, on every machine.
"""

from bisect import bisect_left
from functools import cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.parallel import in_parallel

SIGN_WORDS = 12
SIGNS = 64 * SIGN_WORDS

HASHES = 288
HASH_BITS = 6
BAND_HASHES = 3
BAND_BITS = BAND_HASHES * HASH_BITS
DIRECTIONS = 1 << (HASH_BITS - 1)
"""A hash is twice the number of a direction, and one more for its opposite."""

PART = 64
PARTS = SIGNS // PART
"""The directions of a hash lie among so many projections, as to look for them among all takes longer. With parts half as long
pairs that are far apart meet half as often again."""

WORDS = SIGN_WORDS + HASHES // 8
"""Length of a sketch in words of 64 bits."""

HEAD_WORDS = 2
"""Words at the beginning of a sketch that must be near by themselves."""

TAG_BITS = 32
TAGS = SIGNS // TAG_BITS

MISSED = 1 / 50
"""Share of the pairs right at the threshold that may share no band. Half of it takes 16 bands more, with as many more bytes and
comparisons, for pairs that a threshold 0.01 higher would leave out."""

FEWEST_BANDS = 64
"""A high threshold needs fewer. More of them miss fewer pairs, and take no longer than for 0.8."""

MOST_BANDS = 480
"""More take more room than vectors do, and longer to look through than comparing with all."""

SIGMAS = 4.0
"""How far beyond its expectation a pair's distance may lie: one pair in 30,000 at the threshold lies farther."""

HEAD_SIGMAS = 3.5
"""The same for heads: one in 6,000."""

TAG_SIGMAS = 1.5
"""The same for the tag that a band tells pairs apart by. A pair at the threshold meets in four bands on average, with
different tags, so that being lost in one of them costs little; and few others are left to be looked at whole."""

VECTOR_STEPS, PROJECTION_STEPS, DIRECTION_STEPS = 4096, 64, 8
"""What a component of a vector, of a projection and of a direction is rounded to: whole parts of these."""

PROJECTED_STEP = 1024
"""What a projection is rounded to a multiple of, before its directions are looked for. So sums stay below 2²⁴ up to 4,000
dimensions: a sum of products is at most the product of both lengths."""

SKETCHED_AT_ONCE = 128
"""Vectors that are sketched at a time: what is worked out for them stays in the processor's cache."""

COMPARED_AT_ONCE = 4096
"""Pairs whose hashes are compared at a time."""

Sketches = NDArray[np.uint64]


def farthest(threshold: float, bits: int, sigmas: float = SIGMAS) -> int:
    """How many of `bits` two vectors with a cosine at the threshold differ in, at most but for rare pairs."""
    share = _differing_share(threshold)
    return int(np.ceil(bits * share + sigmas * np.sqrt(bits * share * (1 - share))))


def _differing_share(threshold: float) -> float:
    return float(np.arccos(min(threshold, 1.0)) / np.pi)


@cache
def bands(threshold: float) -> int:
    """How many bands a pair at the threshold needs so as to meet, but for rare pairs: 95 for 0.8, 305 for 0.7; 0 where it
    would be more than `MOST_BANDS`, below 0.66. There comparing with all costs less, and pairs meet by their signs alone."""
    share, most = _differing_share(threshold), farthest(threshold, TAG_BITS, TAG_SIGMAS)
    in_tag, equal = _binomial(TAG_BITS, share)[: most + 1].sum(), _equal_hashes(threshold)
    third, met = HASHES // BAND_HASHES, in_tag * equal**BAND_HASHES
    apart = int(np.ceil(np.log(MISSED) / np.log(1 - met)))
    if apart <= third:
        return max(apart, FEWEST_BANDS)
    # Further bands share hashes with these. So many of the second third of the hashes, and so many of the last, are equal: a
    # hash of the first third has as many bands as the others, and each of them meets with the same chance.
    chance, numbers = _binomial(third, equal), np.arange(third + 1)
    in_both = in_tag * np.outer(numbers, numbers) / third**2

    def missed(count: int) -> float:
        of_one = (1 - in_both) ** (count / third)
        return float(chance @ (1 - equal + equal * of_one) ** third @ chance)

    count = bisect_left(range(MOST_BANDS + 1), True, lo=third, key=lambda count: missed(count) <= MISSED)
    return count if count <= MOST_BANDS else 0


def _binomial(n: int, share: float) -> NDArray[np.float64]:
    """How likely 0 to n of n are so, each with this likelihood; shape (n + 1,)."""
    return np.array([comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)])


def _equal_hashes(cosine: float) -> float:
    """The share of hashes that two vectors with this cosine have in common.

    Their components along one direction, u and v, are normal and correlated. The hash is this direction's where all
    others are shorter: an integral over u, v > 0 of their density, times the share of shorter ones to the power of the others.
    """
    cosine = min(max(cosine, 0.0), 0.995)
    step, at = 0.02, np.arange(-6.0, 6.0, 0.02) + 0.01
    u, v = at[:, None], at[None]
    squared = 1 - cosine**2
    density = np.exp(-(u**2 - 2 * cosine * u * v + v**2) / (2 * squared)) / (2 * np.pi * np.sqrt(squared)) * step**2
    below, half = np.cumsum(np.cumsum(density, axis=0), axis=1), len(at) // 2
    up, down = slice(half, None), slice(half - 1, None, -1)
    shorter = below[up, up] - below[down, up] - below[up, down] + below[down, down]
    return float(2 * DIRECTIONS * (density[up, up] * shorter.clip(0, 1) ** (DIRECTIONS - 1)).sum())


@cache
def _projections(dim: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(20).standard_normal((dim, SIGNS))
    return np.rint(drawn * PROJECTION_STEPS).astype(np.float32)


@cache
def _directions() -> NDArray[np.float32]:
    """The directions of each part's hashes, shape (PARTS, PART, hashes of a part * DIRECTIONS)."""
    drawn = np.random.default_rng(21).standard_normal((PARTS, PART, HASHES // PARTS * DIRECTIONS))
    return np.rint(drawn * DIRECTION_STEPS).astype(np.float32)


def tag_of_band(band: int | NDArray[Any]) -> Any:
    """Which part of the signs goes with a band, to tell most far pairs apart that share it."""
    return band * 7 % TAGS


def hashes_of_band(band: int) -> tuple[int, int, int]:
    """The hashes of a band: any two bands differ in two at least, and the first 96 in all. They are of three parts, as hashes
    of one part are equal together too often."""
    third = HASHES // BAND_HASHES
    shift, number = divmod(band, third)
    return number, third + (number + 1 + shift) % third, 2 * third + (number + 11 - shift) % third


def sketch(vectors: NDArray[np.float32]) -> Sketches:
    """Sketches of `vectors`, shape (n, dim); shape (n, WORDS)."""
    out = np.empty((len(vectors), WORDS), np.uint64)
    projections = _projections(vectors.shape[1]), _directions()

    def fill(start: int) -> None:
        part = slice(start, start + SKETCHED_AT_ONCE)
        projected = np.rint(vectors[part] * np.float32(VECTOR_STEPS)) @ projections[0]
        out[part, :SIGN_WORDS] = np.packbits(projected > 0, axis=1).view(np.uint64)
        out[part, SIGN_WORDS:] = _nearest_directions(projected, projections[1]).view(np.uint64)

    in_parallel(fill, range(0, len(vectors), SKETCHED_AT_ONCE))
    return out


def _nearest_directions(projected: NDArray[np.float32], directions: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The hashes, shape (len(projected), HASHES)."""
    rounded = np.rint(projected * np.float32(1 / PROJECTED_STEP))
    found = np.empty((len(rounded), HASHES // PARTS, PARTS), np.uint8)
    first = np.arange(found[:, :, 0].size) * DIRECTIONS
    for number, part in enumerate(directions):
        along = (rounded[:, number * PART : (number + 1) * PART] @ part).reshape(-1, DIRECTIONS)
        longest = np.abs(along).argmax(axis=1)
        opposite = along.ravel().take(first + longest) < 0
        found[:, :, number] = (2 * longest + opposite).reshape(found.shape[:2])
    return found.reshape(len(rounded), HASHES)


def hashes(sketches: Sketches) -> NDArray[np.uint8]:
    """The hashes of each sketch, shape (len(sketches), HASHES)."""
    return np.ascontiguousarray(sketches[:, SIGN_WORDS:]).view(np.uint8)


def band_values(sketches: Sketches, count: int) -> NDArray[np.int32]:
    """The values of each sketch's first `count` bands, shape (count, len(sketches)): two that are equal share the band."""
    columns = np.ascontiguousarray(hashes(sketches).T)
    out = np.empty((count, len(sketches)), np.int32)
    for band in range(count):
        first, *others = hashes_of_band(band)
        out[band] = columns[first]
        for other in others:
            out[band] <<= HASH_BITS
            out[band] |= columns[other]
    return out


def tags(sketches: Sketches) -> NDArray[np.uint32]:
    """The parts of each sketch that `tag_of_band` names, shape (len(sketches), TAGS)."""
    return np.ascontiguousarray(sketches[:, :SIGN_WORDS]).view(np.uint32)


def meet(a: Sketches, b: Sketches, threshold: float) -> NDArray[np.bool_]:
    """Which pairs (a[i], b[i]) can be synonyms, shape (n,); the same for (b[i], a[i])."""
    apart: NDArray[Any] = np.bitwise_count(a[:, :SIGN_WORDS] ^ b[:, :SIGN_WORDS])
    met: NDArray[np.bool_] = apart.sum(axis=1, dtype=np.int32) <= farthest(threshold, SIGNS)
    met &= apart[:, :HEAD_WORDS].sum(axis=1) <= farthest(threshold, 64 * HEAD_WORDS, HEAD_SIGMAS)
    near = np.flatnonzero(met)
    met[near] = share_band(a[near], b[near], threshold)
    return met


def share_band(a: Sketches, b: Sketches, threshold: float) -> NDArray[np.bool_]:
    """Which pairs (a[i], b[i]) have all hashes of a band in common, and are near in its tag, shape (n,)."""
    shared, count = np.ones(len(a), np.bool_), bands(threshold)
    for start in range(0, len(a) if count else 0, COMPARED_AT_ONCE):
        part = slice(start, start + COMPARED_AT_ONCE)
        in_tag = np.bitwise_count(tags(a[part] ^ b[part])) <= farthest(threshold, TAG_BITS, TAG_SIGMAS)
        shared[part] = _share_band(hashes(a[part]) == hashes(b[part]), in_tag, count)
    return shared


def _share_band(equal: NDArray[np.bool_], in_tag: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """The same among `count` bands. `equal`: whether a hash is, shape (n, HASHES); `in_tag`: whether a tag is near, shape (n,
    TAGS)."""
    by_hash, by_tag = np.ascontiguousarray(equal.T), np.ascontiguousarray(in_tag.T)
    found = np.zeros(len(equal), np.bool_)
    for band in range(count):
        first, second, third = hashes_of_band(band)
        found |= by_hash[first] & by_hash[second] & by_hash[third] & by_tag[tag_of_band(band)]
    return found
