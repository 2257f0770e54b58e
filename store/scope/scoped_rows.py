"""Maps from text to row in a scope, looked up in the whole memory: filling a map would cost more than all lookups."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.columns.hashed_rows import HashedRows
from store.index.index_delta import TripleKey
from store.index.shared_rows import LookupDict


class ScopedRows(LookupDict):
    """Rows of phrases by text. The dictionary itself holds phrases added after the scope was built."""

    def __init__(self, whole: HashedRows[str] | dict[str, int], places: NDArray[np.int32]) -> None:
        """`places`: by row of the whole memory, the row in the scope, or -1."""
        super().__init__()
        self._whole, self._places = whole, places

    def get(self, key: str, default: Any = None) -> Any:
        row = super().get(key)
        if row is None:
            row = _place(self._places, self._whole.get(key))
        return default if row is None else row


class ScopedTripleRows(LookupDict):
    """Rows of triples by predicate and phrase rows of the scope. The dictionary itself holds triples added later."""

    def __init__(
        self, whole: HashedRows[TripleKey] | dict[TripleKey, int], places: NDArray[np.int32], phrases: NDArray[np.int64]
    ) -> None:
        """`phrases`: by phrase row of the scope, the phrase row of the whole memory."""
        super().__init__()
        self._whole, self._places, self._phrases = whole, places, phrases

    def get(self, key: TripleKey, default: Any = None) -> Any:
        row = super().get(key)
        # A phrase that was added later is in no earlier triple.
        if row is None and max(key[0], key[2]) < len(self._phrases):
            there = self._whole.get((int(self._phrases[key[0]]), key[1], int(self._phrases[key[2]])))
            row = _place(self._places, there)
        return default if row is None else row


def _place(places: NDArray[np.int32], row: int | None) -> int | None:
    """Returns the scope's row of a row of the whole memory, or None.

    The whole memory may have added the same text again under a new row, which the scope does not contain.
    """
    return int(places[row]) if row is not None and row < len(places) and places[row] >= 0 else None
