"""BM25's postings of a scope: rows taken from those of the whole memory, and those of passages that came later."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.bm25 import Postings


class ScopedPostings(Postings):
    """Splitting a passage into terms takes as long as all else that a scope needs of it, so it is not done twice."""

    def __init__(self, whole: Postings, rows: NDArray[np.int64], n: int) -> None:
        """`rows`: which of the first `n` passages of `whole` there are here, in this order; shape (m,)."""
        super().__init__()
        self._whole = whole
        self._languages = whole.languages  # More than the scope's change no score.
        self._here = np.full(n, -1, np.int32)
        self._here[rows] = np.arange(len(rows), dtype=np.int32)
        self._lengths.extend(whole.lengths(n)[rows])

    def _names(self) -> list[str]:
        return list(dict.fromkeys([*self._whole._names(), *super()._names()]))

    def _of(self, term: str) -> tuple[NDArray[Any], NDArray[Any]]:
        rows, counts = self._whole._of(term)
        known = rows < len(self._here)
        rows, counts = self._here[rows[known]], counts[known]
        inside = rows >= 0
        later, later_counts = super()._of(term)
        return np.concatenate([rows[inside], later]), np.concatenate([counts[inside], later_counts])
