"""Maps from keys to rows, and sketches, that look up another index."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from store.index.columns.hashed_rows import HashedRows
from store.index.synonyms.sketch_index import Order, SketchIndex


class BorrowedRows(dict[Any, int]):
    """Maps keys to rows by looking them up in another index, because filling a separate map would take longer than all lookups.
    Keys added after the construction are in the dictionary itself. Every lookup calls `get`."""

    def __init__(
        self,
        whole: Mapping[Any, int] | HashedRows[Any],
        places: Sequence[int] | Any,
        key_in_whole: Callable[[Any], Any | None] = lambda key: key,
    ) -> None:
        """`places`: for each row of the other index, the row in this one, or -1. `key_in_whole` returns the equivalent key in
        the other index; None if there is none."""
        super().__init__()
        self._whole: Any = whole
        self._places, self._key_in_whole = places, key_in_whole

    def get(self, key: Any, default: Any = None) -> Any:
        row = super().get(key)
        if row is None and (wanted := self._key_in_whole(key)) is not None:
            there = self._whole.get(wanted)
            # The other index may have added the key again under a new row, which this index does not contain.
            if there is not None and there < len(self._places) and self._places[there] >= 0:
                return int(self._places[there])
        return default if row is None else row

    def __getitem__(self, key: Any) -> int:
        row = self.get(key)
        if row is None:
            raise KeyError(key)
        return int(row)

    def __contains__(self, key: Any) -> bool:
        return self.get(key) is not None


class SharedSketches(SketchIndex):
    """The present sketches of another index. A search uses the bands that the other index has at that moment."""

    def __init__(self, whole: SketchIndex) -> None:
        super().__init__(whole.threshold, whole._vectors)
        self._whole = whole
        self._signs, self._prefixes, self.tail = whole._signs.copy(), whole._prefixes.copy(), whole.tail.copy()

    def order(self) -> Order:
        there = self._whole.order()
        return there if there.n <= self.n else Order(there.runs, self.n, np.arange(self.n, dtype=np.int32))

    @property
    def due(self) -> bool:
        """Always false, because only the other index sorts its sketches."""
        return False
