"""The `hash` encoder: feature hashing of words and character n-grams, without a model.

Weinberger et al., "Feature Hashing for Large Scale Multitask Learning" (2009), section 2: a feature's hash determines its
bucket and its sign. Everything before the last square root is integer arithmetic, so a text has the same vector in any batch,
process and machine.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from memory.types import Encoder, Matrix
from store.types import EncoderIdentity

HASH_ENCODER_NAME = "hash/words+chars-1"
"""Identifies the vectors in a store. The number must be increased if the vector of any text changes."""
DEFAULT_DIM = 256
TEXT_LIMIT = 200_000
"""Maximum number of characters of a text that are encoded."""

_CHUNK_CHARS = 500_000
_CHUNK_TEXTS = 4096
_WORD = re.compile(r"\w+")
_SPACE = ord(" ")
_HEAVIEST_WORD = 6
"""Maximum weight of a word. A word weighs its length, because long words say more; an n-gram weighs 1."""
_STEP = np.uint64(0x9E3779B97F4A7C15)

Hashes = NDArray[np.uint64]


class HashEncoder(Encoder):
    """For tests and small machines. Its vectors are float32 and L2-normalised."""

    def __init__(self, dim: int = DEFAULT_DIM) -> None:
        if dim < 1:
            raise ValueError(f"The hash encoder needs a dimension of at least 1, not {dim}.")
        self.identity = EncoderIdentity(HASH_ENCODER_NAME, dim)

    def encode(self, texts: Sequence[str]) -> Matrix:
        dim = self.identity.dim
        vectors = np.empty((len(texts), dim), dtype=np.float32)
        row = 0
        for chunk in _chunks(texts):
            vectors[row : row + len(chunk)] = _vectors(chunk, dim)
            row += len(chunk)
        return vectors

    def encode_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.encode([text])[0]
        return vector


def _chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yields the texts as lower-case words with spaces around them, in groups that need little memory."""
    chunk: list[str] = []
    size = 0
    for text in texts:
        spaced = f" {' '.join(_WORD.findall(text[:TEXT_LIMIT].casefold()))} "
        chunk.append(spaced)
        size += len(spaced)
        if size >= _CHUNK_CHARS or len(chunk) >= _CHUNK_TEXTS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _vectors(spaced: list[str], dim: int) -> Matrix:
    codes = np.frombuffer("".join(spaced).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    rows = np.repeat(np.arange(len(spaced)), [len(text) for text in spaced])
    inside = codes != _SPACE
    characters = _mix(codes)

    words, word_at, lengths = _words(characters, inside)
    hashes = [words]
    row_of = [rows[word_at]]
    weights = [np.minimum(lengths, _HEAVIEST_WORD)]
    for size in (3, 4):
        grams, at = _grams(characters, inside, size)
        hashes.append(grams)
        row_of.append(rows[at])
        weights.append(np.ones(len(at), dtype=np.int64))

    feature = np.concatenate(hashes)
    signed = np.concatenate(weights) * np.where(feature >> np.uint64(63), 1, -1)
    cell = np.concatenate(row_of) * dim + (feature % np.uint64(dim)).astype(np.int64)
    sums = np.bincount(cell, weights=signed, minlength=len(spaced) * dim).reshape(len(spaced), dim)
    # The square root keeps a word that occurs ten times from dominating, and makes the squared norm a sum of integers.
    squared_norm = np.abs(sums).sum(axis=1)
    empty = squared_norm == 0
    sums[empty, 0] = 1.0
    squared_norm[empty] = 1.0
    vectors: Matrix = (np.sign(sums) * np.sqrt(np.abs(sums) / squared_norm[:, None])).astype(np.float32)
    return vectors


def _words(characters: Hashes, inside: NDArray[np.bool_]) -> tuple[Hashes, NDArray[np.int64], NDArray[np.int64]]:
    """Returns each word's hash, the position of its first character, and its length."""
    starts = np.flatnonzero(inside[1:] & ~inside[:-1]) + 1
    ends = np.flatnonzero(~inside[1:] & inside[:-1]) + 1
    lengths = ends - starts
    if not len(starts):
        return np.empty(0, dtype=np.uint64), starts, lengths
    place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    powers = np.multiply.accumulate(np.full(int(lengths.max()), _STEP, dtype=np.uint64))
    terms = characters[inside] * powers[place]
    return _mix(np.add.reduceat(terms, np.cumsum(lengths) - lengths)), starts, lengths


def _grams(characters: Hashes, inside: NDArray[np.bool_], size: int) -> tuple[Hashes, NDArray[np.int64]]:
    """Returns hash and position of every run of `size` characters within a word, including the spaces at its ends."""
    count = len(characters) - size + 1
    if count <= 0:
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    valid = np.ones(count, dtype=np.bool_)
    for i in range(1, size - 1):
        valid &= inside[i : i + count]
    at = np.flatnonzero(valid)
    total = np.full(len(at), size, dtype=np.uint64)
    for i in range(size):
        total = _mix(total + characters[at + i])
    return total, at


def _mix(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every input bit affects every output bit."""
    z = values + _STEP
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
