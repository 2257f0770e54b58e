"""A selection of another index's BM25 postings, followed by the postings of passages that were added later."""

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from store.index.words.bm25 import TermEntries
from store.index.words.postings import Postings

KEPT_TERMS = 4_096
"""Number of terms whose postings are cached, because queries have words in common, and common words take longest."""


class SelectedPostings(Postings):
    """The postings of selected passages. The postings are selected from `whole`, because splitting the passages into terms
    again would be slow."""

    def __init__(self, whole: Postings, rows: NDArray[np.int64], n: int) -> None:
        """`rows`: the selected passages among the first `n` of `whole`, in this order, shape (m,)."""
        super().__init__()
        self._whole = whole
        self._languages = whole.languages  # Additional languages change no score.
        here = np.full(n, -1, np.int32)
        here[rows] = np.arange(len(rows), dtype=np.int32)
        self._selected = lru_cache(KEPT_TERMS)(partial(_selected, whole, here))
        self._lengths.extend(whole.lengths(n)[rows])

    def _names(self) -> list[str]:
        return list(dict.fromkeys([*self._whole._names(), *super()._names()]))

    def _among(self, terms: Sequence[str]) -> Sequence[str]:
        return terms

    def _parts(self, term: str) -> list[TermEntries]:
        selected = self._selected(term)
        return [*([selected] if len(selected[0]) else []), *super()._parts(term)]


def _selected(whole: Postings, here: NDArray[np.int32], term: str) -> TermEntries:
    """Returns the postings of a term in the selected passages; `here` maps rows of `whole` to rows of the scope, or to -1."""
    rows, counts = whole._of(term)
    # Rows are ascending, so later passages come last.
    end = len(rows) if not len(rows) or rows[-1] < len(here) else int(np.searchsorted(rows, len(here)))
    places = here[rows[:end]]
    inside = np.flatnonzero(places >= 0)
    return places[inside], counts[:end][inside]
