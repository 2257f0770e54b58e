"""Maps from keys to rows that look keys up in another index, whose row numbers are also valid here."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from store.index.columns.hashed_rows import HashedRows
from store.index.synonyms.sketch_index import Order, SketchIndex


class LookupDict(dict[Any, int]):
    """A dictionary from keys to rows. Every lookup calls `get`, which subclasses override to search a second map too."""

    def __getitem__(self, key: Any) -> int:
        row = self.get(key)
        if row is None:
            raise KeyError(key)
        return int(row)

    def __contains__(self, key: Any) -> bool:
        return self.get(key) is not None


class SharedRows(LookupDict):
    """Maps keys to the first `n` rows of another index. The dictionary itself contains the later rows."""

    def __init__(self, whole: Mapping[Any, int] | HashedRows[Any], n: int) -> None:
        super().__init__()
        self._whole: Any = whole
        self._n = n

    def get(self, key: Any, default: Any = None) -> Any:
        row = super().get(key)
        if row is None:
            row = self._whole.get(key)
            return row if row is not None and row < self._n else default
        return row

    def discard(self, rows: Sequence[int]) -> None:
        """Keeps the keys of `rows`, because they belong to the other index."""


class SharedSketches(SketchIndex):
    """The present sketches of another index. A search uses that index's bands as they are then sorted."""

    def __init__(self, whole: SketchIndex) -> None:
        super().__init__(whole.threshold, whole._vectors)
        self._whole = whole
        self._signs, self._heads, self.tail = whole._signs.copy(), whole._heads.copy(), whole.tail.copy()

    def order(self) -> Order:
        there = self._whole.order()
        return there if there.n <= self.n else Order(there.runs, self.n, np.arange(self.n, dtype=np.int32))

    @property
    def due(self) -> bool:
        """Always false, because only the other index sorts its sketches."""
        return False
