"""Groups passages with nearly the same text.

Two passages are near-duplicates if their vectors and their words nearly agree. A group consists of a leader, which is the
passage that matches the query best, and near-duplicates of the leader itself; a chain of small changes therefore never joins
different passages. Groups are computed among the given passages only: nothing is stored, and passages outside the scope have no
influence.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from store.snapshot import Snapshot
from store.text.word_split import split_words

NEAR_COSINE = 0.8
"""Minimum cosine of near-duplicates. Passages that the encoder does not know are compared by words only."""
SHARED_WORDS = 0.8
"""Minimum Jaccard index of the words of near-duplicates: their shared words divided by their distinct words (Broder, "On the
resemblance and containment of documents", 1997)."""
ROUNDING = 1e-5
"""Float32 cosines at most this far below `NEAR_COSINE` are computed again in float64."""

CACHED_TEXTS = 512
"""Number of passages whose words are cached; those with a near-duplicate come up in many queries."""


def near_duplicates(snapshot: Snapshot, rows: Sequence[int]) -> dict[int, int]:
    """Maps each passage of `rows` that is a near-duplicate of a better one to the leader of its group.

    `rows` are passages in order of their match, best first. The result depends only on the passages and their order.
    """
    vectors = snapshot.passage_vectors.rows(rows)
    known = snapshot.passage_vectors.known[np.asarray(rows, np.int64)]
    near = vectors @ vectors.T >= NEAR_COSINE - ROUNDING
    may_be = np.where(known[:, None], near, ~known)
    later = np.triu(may_be, 1)
    words = _Words(snapshot, rows, np.logical_or(later.any(axis=1), later.any(axis=0)))
    is_free: NDArray[np.bool_] = np.ones(len(rows), np.bool_)
    leader_of: dict[int, int] = {}
    for place in np.flatnonzero(later.any(axis=1)).tolist():
        others = np.flatnonzero(later[place] & is_free)
        if is_free[place] and len(others):
            # A fixed order of summation gives equal sums for every pair, unlike a product of matrices.
            exact = np.multiply(vectors[others], vectors[place], dtype=np.float64).sum(axis=1)
            others = others[(exact >= NEAR_COSINE) | ~known[others]]
            found = others[words.shared(place, others) >= SHARED_WORDS]
            leader_of.update((rows[other], rows[place]) for other in found.tolist())
            is_free[found] = False
    return leader_of


class _Words:
    """The words of passages as numbers, so that one passage is compared with many at once."""

    def __init__(self, snapshot: Snapshot, rows: Sequence[int], is_compared: NDArray[np.bool_]) -> None:
        """`is_compared` says which of `rows` will be compared; the others are not split into words."""
        number_of: dict[str, int] = {}
        numbers = [
            [number_of.setdefault(word, len(number_of)) for word in _distinct_words(snapshot.passage(row).full)]
            if compared
            else []
            for row, compared in zip(rows, is_compared.tolist(), strict=True)
        ]
        self._counts = np.array([len(each) for each in numbers], np.int64)
        self._ends = np.cumsum(self._counts)
        self._numbers = np.fromiter(chain.from_iterable(numbers), np.int64, int(self._counts.sum()))
        self._places = np.repeat(np.arange(len(rows)), self._counts)
        self._is_shared: NDArray[np.bool_] = np.zeros(len(number_of), np.bool_)

    def shared(self, place: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the Jaccard indices of the words of a passage and of others, by place; 1 if neither has words."""
        ours = self._numbers[self._ends[place] - self._counts[place] : self._ends[place]]
        self._is_shared[ours] = True
        both = np.bincount(self._places[self._is_shared[self._numbers]], minlength=len(self._counts))[others]
        self._is_shared[ours] = False
        either = self._counts[place] + self._counts[others] - both
        return np.where(either, both / np.maximum(either, 1), 1.0)


@lru_cache(CACHED_TEXTS)
def _distinct_words(text: str) -> frozenset[str]:
    return frozenset(split_words(text))
