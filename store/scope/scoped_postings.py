"""BM25's postings of a scope: rows taken from those of the whole memory, and those of passages that came later."""

from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from store.index.bm25 import Entries, Postings

KEPT_TERMS = 4_096
"""Terms whose postings are kept once they were taken: questions share words, and the commonest take longest."""


class ScopedPostings(Postings):
    """Splitting a passage into terms takes as long as all else that a scope needs of it, so it is not done twice."""

    def __init__(self, whole: Postings, rows: NDArray[np.int64], n: int) -> None:
        """`rows`: which of the first `n` passages of `whole` there are here, in this order; shape (m,)."""
        super().__init__()
        self._whole = whole
        self._languages = whole.languages  # More than the scope's change no score.
        here = np.full(n, -1, np.int32)
        here[rows] = np.arange(len(rows), dtype=np.int32)
        self._taken = lru_cache(KEPT_TERMS)(partial(_taken, whole, here))
        self._lengths.extend(whole.lengths(n)[rows])

    def _names(self) -> list[str]:
        return list(dict.fromkeys([*self._whole._names(), *super()._names()]))

    def _parts(self, term: str) -> list[Entries]:
        taken = self._taken(term)
        return [*([taken] if len(taken[0]) else []), *super()._parts(term)]


def _taken(whole: Postings, here: NDArray[np.int32], term: str) -> Entries:
    """Those of the rows that `here` gives a number, by row of `whole`; the others have -1."""
    rows, counts = whole._of(term)
    # They are in order, those that came later behind all others.
    end = len(rows) if not len(rows) or rows[-1] < len(here) else int(np.searchsorted(rows, len(here)))
    places = here[rows[:end]]
    inside = np.flatnonzero(places >= 0)
    return places[inside], counts[:end][inside]
