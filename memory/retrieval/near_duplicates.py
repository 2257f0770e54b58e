"""Groups of passages that say nearly the same.

Two passages are near-duplicates if their vectors and their words nearly agree. A group has a leader, which matches the query
best, and passages that are near-duplicates of the leader itself, so a chain of small changes never joins passages that differ.
Groups are found among passages that are given: nothing is stored, and passages outside the scope have no influence.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from store.snapshot import Snapshot
from store.text.word_split import split_words

NEAR_COSINE = 0.8
"""Least cosine of the vectors of near-duplicates. Passages that the encoder does not know are compared by words alone."""
SHARED_WORDS = 0.8
"""Least Jaccard index of the words of near-duplicates: the share of their different words that both have (Broder, "On the
resemblance and containment of documents", 1997)."""
ROUNDING = 1e-5
"""Cosines in float32 that are this much below `NEAR_COSINE` are computed again in float64."""


def near_duplicates(snapshot: Snapshot, rows: Sequence[int]) -> dict[int, int]:
    """Maps each passage of `rows` that is a near-duplicate of a better one to the leader of its group.

    `rows` are passages in order of their match, best first. The result depends on the passages and their order alone.
    """
    vectors = snapshot.passage_vectors.rows(rows)
    known = snapshot.passage_vectors.known[np.asarray(rows, np.int64)]
    near = vectors @ vectors.T >= NEAR_COSINE - ROUNDING
    words = _Words(snapshot)
    is_free: NDArray[np.bool_] = np.ones(len(rows), np.bool_)
    leader_of: dict[int, int] = {}
    # Most passages have no other near them: nothing is looked up for these.
    beside = near.sum(axis=1) > 1
    for place in np.flatnonzero(beside | ~known).tolist():
        leader = rows[place]
        others = place + 1 + np.flatnonzero((near[place] if known[place] else ~known)[place + 1 :])
        if is_free[place] and len(others := others[is_free[others]]):
            # Summed in the same order for every pair, unlike in a product of matrices.
            exact = np.multiply(vectors[others], vectors[place], dtype=np.float64).sum(axis=1)
            for other in others[(exact >= NEAR_COSINE) | ~known[others]].tolist():
                if words.shared(leader, rows[other]) >= SHARED_WORDS:
                    leader_of[rows[other]] = leader
                    is_free[other] = False
    return leader_of


class _Words:
    """The words of passages, each passage split once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._of: dict[int, frozenset[str]] = {}

    def of(self, row: int) -> frozenset[str]:
        if row not in self._of:
            self._of[row] = frozenset(split_words(self._snapshot.passage(row).full))
        return self._of[row]

    def shared(self, one: int, other: int) -> float:
        """The Jaccard index of the words of two passages; 1 if neither has any."""
        ours, theirs = self.of(one), self.of(other)
        return len(ours & theirs) / len(ours | theirs) if ours or theirs else 1.0
