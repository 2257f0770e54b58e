"""Decides which pairs of phrases can be synonyms from their vectors alone, without training: locality-sensitive hashing.

The sketch of a vector has two parts. The first part is the signs of 768 random projections: two vectors at an angle t differ in
a share t / pi of their signs (Charikar, "Similarity Estimation Techniques from Rounding Algorithms", 2002, section 3). The
second part is 288 *hashes*. A hash is the number of the direction that is nearest to the vector, among 32 random directions and
their 32 opposites (Andoni et al., "Practical and Optimal LSH for Angular Distance", 2015, section 3: cross-polytope hashing). A
*band* is three hashes. A pair *collides* if its signs differ no more than is expected at the threshold's angle, and if it
shares all hashes of at least one band. Only pairs that collide can be synonyms. Whether a pair collides does not depend on the
size of the memory or on how the search finds pairs, so edges depend only on vectors. Of the pairs with a cosine of exactly 0.8,
one in 60 does not collide; with 0.82, one in 160; with 0.84, one in 570; of nearer pairs, even fewer.

A threshold of 0.8 needs 95 bands, which have no hash in common. A lower threshold needs more bands, which combine the same
hashes in other ways.

Projections are sums of products of integers, and the sums stay below 2²⁴, so float32 computes them exactly: a vector has the
same sketch in every batch and on every machine.
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
"""Number of random directions; a hash is twice the number of a direction, plus one for the opposite direction."""

PART = 64
PARTS = SIGNS // PART
"""Number of projections in the subspace in which the directions of a hash lie; a search in all projections would take longer.
With half as many projections, 50% more of the pairs that are far apart collide."""

WORDS = SIGN_WORDS + HASHES // 8
"""Length of a sketch in 64-bit words."""

PREFIX_WORDS = 2
"""Number of words at the beginning of a sketch (its *prefix*) that must also be near when compared alone."""

MISSED = 1 / 62
"""Maximum share of pairs that share no band, among the pairs with a cosine of exactly the threshold; 95 bands miss this share
at 0.8. With 16 more bands, half as many pairs would be missed; the additional pairs are so far apart that a threshold higher by
0.01 would exclude them."""

MIN_BANDS = 64
"""Minimum number of bands. A high threshold needs fewer, but more bands miss fewer pairs and cost no more than at 0.8."""

MAX_BANDS = 480
"""Maximum number of bands. More bands would need more space than the vectors, and a search would take longer than comparing
with all phrases."""

SIGMAS = 4.0
"""Allowed excess of a pair's distance over its expectation, in standard deviations; 1 in 30,000 pairs at the threshold exceeds
it."""

PREFIX_SIGMAS = 3.5
"""The same limit for prefixes; 1 in 6,000 pairs exceeds it."""

VECTOR_STEPS, PROJECTION_STEPS, DIRECTION_STEPS = 4096, 64, 8
"""Numbers of steps per unit: components of vectors, projections and directions are rounded to multiples of 1 / this number."""

PROJECTED_STEP = 1024
"""Projections are rounded to multiples of this number before the nearest directions are computed. With this rounding, sums stay
below 2²⁴ for up to 4,000 dimensions, because a sum of products is at most the product of both lengths."""

SKETCHED_AT_ONCE = 128
"""Number of vectors sketched at a time, chosen so that intermediate results stay in the processor's cache."""

COMPARED_AT_ONCE = 1024
"""Number of pairs whose hashes are compared at a time."""

VALUES_AT_ONCE = 65536
"""Number of band values computed at a time, chosen so that they stay in the processor's cache."""

Sketches = NDArray[np.uint64]


def farthest(threshold: float, bits: int, sigmas: float = SIGMAS) -> int:
    """Returns the maximum number of differing bits of `bits` for pairs with a cosine at the threshold; rare pairs exceed it."""
    share = _differing_share(threshold)
    return int(np.ceil(bits * share + sigmas * np.sqrt(bits * share * (1 - share))))


def _differing_share(threshold: float) -> float:
    return float(np.arccos(min(threshold, 1.0)) / np.pi)


@cache
def bands(threshold: float) -> int:
    """Returns the smallest number of bands with which at most the share `MISSED` of the pairs at the threshold share no band:
    95 for 0.8, 311 for 0.7.

    Returns 0 if more than `MAX_BANDS` bands would be needed (threshold below 0.66). Comparing with all phrases then costs less,
    and only the signs decide whether pairs collide.
    """
    third, equal = HASHES // BAND_HASHES, _equal_hashes(threshold)
    apart = int(np.ceil(np.log(MISSED) / np.log(1 - equal**BAND_HASHES)))
    if apart <= third:
        return max(apart, MIN_BANDS)
    # Further bands share hashes with the first ones. `numbers`: how many hashes of the second or last third may be equal. Each
    # hash of the first third is in the same number of bands, and these bands collide with equal probability.
    chance, numbers = _binomial(third, equal), np.arange(third + 1)
    in_both = np.outer(numbers, numbers) / third**2

    def missed(count: int) -> float:
        of_one = (1 - in_both) ** (count / third)
        return float(chance @ (1 - equal + equal * of_one) ** third @ chance)

    count = bisect_left(range(MAX_BANDS + 1), True, lo=third, key=lambda count: missed(count) <= MISSED)
    return count if count <= MAX_BANDS else 0


def _binomial(n: int, share: float) -> NDArray[np.float64]:
    """Returns the probabilities of 0 to `n` successes in `n` trials with success probability `share`, shape (n + 1,)."""
    return np.array([comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)])


def _equal_hashes(cosine: float) -> float:
    """Returns the share of hashes that are equal for two vectors with this cosine.

    The components of the two vectors along one direction, u and v, are correlated normal variables. Two vectors have the hash
    of this direction if their components along all other directions are shorter. The share is the integral over u, v > 0 of the
    density times the probability of a shorter component to the power of the number of other directions.
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
    """Returns the directions of the hashes of each part, shape (PARTS, PART, hashes of a part * DIRECTIONS)."""
    drawn = np.random.default_rng(21).standard_normal((PARTS, PART, HASHES // PARTS * DIRECTIONS))
    return np.rint(drawn * DIRECTION_STEPS).astype(np.float32)


def hashes_of_band(band: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Returns the numbers of the first, second and third hash of each band. Any two bands differ in at least two hashes; any
    two of the first 96 bands differ in all three. The three hashes of a band belong to different parts, because hashes of one
    part are too often equal together."""
    third = HASHES // BAND_HASHES
    shift, number = divmod(band, third)
    return number, third + (number + 1 + shift) % third, 2 * third + (number + 11 - shift) % third


def sketch(vectors: NDArray[np.float32]) -> Sketches:
    """Returns the sketches of `vectors`, shape (n, dim); the result has shape (n, WORDS)."""
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
    """Returns the hashes of projected vectors, shape (len(projected), HASHES)."""
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
    """Returns the hashes of each sketch, shape (len(sketches), HASHES)."""
    return np.ascontiguousarray(sketches[:, SIGN_WORDS:]).view(np.uint8)


def band_values(sketches: Sketches, count: int) -> NDArray[np.int32]:
    """Returns the values of each sketch's first `count` bands, shape (count, len(sketches)). Equal values share the band."""
    columns, every = np.ascontiguousarray(hashes(sketches).T), np.arange(count)
    out = np.empty((count, len(sketches)), np.int32)
    together = max(1, VALUES_AT_ONCE // max(len(sketches), 1))
    for start in range(0, count, together):
        part = slice(start, start + together)
        first, *others = hashes_of_band(every[part])
        out[part] = columns[first]
        for other in others:
            out[part] <<= HASH_BITS
            out[part] |= columns[other]
    return out


def collides(a: Sketches, b: Sketches, threshold: float) -> NDArray[np.bool_]:
    """Returns the mask of the pairs (a[i], b[i]) that can be synonyms, shape (n,). Symmetric in `a` and `b`."""
    apart: NDArray[Any] = np.bitwise_count(a[:, :SIGN_WORDS] ^ b[:, :SIGN_WORDS])
    met: NDArray[np.bool_] = apart.sum(axis=1, dtype=np.int32) <= farthest(threshold, SIGNS)
    met &= apart[:, :PREFIX_WORDS].sum(axis=1) <= farthest(threshold, 64 * PREFIX_WORDS, PREFIX_SIGMAS)
    near = np.flatnonzero(met)
    met[near] = share_band(a[near], b[near], threshold)
    return met


def share_band(a: Sketches, b: Sketches, threshold: float) -> NDArray[np.bool_]:
    """Returns the mask of the pairs (a[i], b[i]) that share all hashes of at least one band, shape (n,)."""
    shared, every = np.ones(len(a), np.bool_), np.arange(bands(threshold))
    first, *others = hashes_of_band(every)
    for start in range(0, len(a) if len(every) else 0, COMPARED_AT_ONCE):
        part = slice(start, start + COMPARED_AT_ONCE)
        equal = np.ascontiguousarray((hashes(a[part]) == hashes(b[part])).T)
        met = equal[first]
        for other in others:
            met &= equal[other]
        shared[part] = met.any(axis=0)
    return shared
