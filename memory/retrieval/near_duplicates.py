"""Groups passages with nearly the same text.

Two passages are near-duplicates if their vectors and their words nearly agree. A group consists of a leader, which is the
passage that matches the query best, and near-duplicates of the leader itself; a chain of small changes therefore never joins
different passages. Groups are computed among the given passages only: nothing is stored, and passages outside the scope have no
influence.
"""

from collections.abc import Sequence

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


def near_duplicates(snapshot: Snapshot, rows: Sequence[int]) -> dict[int, int]:
    """Map each passage of `rows` that is a near-duplicate of a better one to the leader of its group.

    `rows` are passages in order of their match, best first. The result depends only on the passages and their order.
    """
    vectors = snapshot.passage_vectors.rows(rows)
    known = snapshot.passage_vectors.known[np.asarray(rows, np.int64)]
    near = vectors @ vectors.T >= NEAR_COSINE - ROUNDING
    may_be = np.where(known[:, None], near, ~known)
    later = np.triu(may_be, 1)
    words = _Words(snapshot)
    is_free: NDArray[np.bool_] = np.ones(len(rows), np.bool_)
    leader_of: dict[int, int] = {}
    for place in np.flatnonzero(later.any(axis=1)).tolist():
        others = np.flatnonzero(later[place] & is_free)
        if is_free[place] and len(others):
            # A fixed order of summation gives equal sums for every pair, unlike a product of matrices.
            exact = np.multiply(vectors[others], vectors[place], dtype=np.float64).sum(axis=1)
            for other in others[(exact >= NEAR_COSINE) | ~known[others]].tolist():
                if words.shared(rows[place], rows[other]) >= SHARED_WORDS:
                    leader_of[rows[other]] = rows[place]
                    is_free[other] = False
    return leader_of


class _Words:
    """The words of passages; each passage is split once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._of: dict[int, frozenset[str]] = {}

    def of(self, row: int) -> frozenset[str]:
        if row not in self._of:
            self._of[row] = frozenset(split_words(self._snapshot.passage(row).full))
        return self._of[row]

    def shared(self, one: int, other: int) -> float:
        """Return the Jaccard index of the words of two passages; 1 if neither has words."""
        ours, theirs = self.of(one), self.of(other)
        return len(ours & theirs) / len(ours | theirs) if ours or theirs else 1.0
