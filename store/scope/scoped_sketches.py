"""The sketches of a scope's phrases, searched through the bands of the whole memory, because sorting them would be slow."""

import numpy as np
from numpy.typing import NDArray

from store.index.append_only_arrays import GrowableArray
from store.index.synonyms.lsh import HEAD_WORDS, WORDS
from store.index.synonyms.sketch_index import Order, SketchIndex, Tail
from store.index.vectors.matrix import Vectors


class ScopedSketches(SketchIndex):
    """Searches through the bands as the whole memory has them sorted now; sketches of later phrases are compared one by one."""

    def __init__(
        self, whole: SketchIndex, vectors: Vectors, rows: NDArray[np.int64], places: NDArray[np.int32]
    ) -> None:
        """The sketches of `rows` (ascending) of `whole`. `places`: by row of the whole memory, the row in the scope, or -1."""
        super().__init__(whole.threshold, vectors)
        self._whole, self._rows, self._places = whole, rows, places
        signs, sorted_rows = whole.signs()[rows], int(np.searchsorted(rows, whole.tail.first))
        self._signs.extend(signs)
        self._heads.extend(signs[:, :HEAD_WORDS])
        self.tail = Tail(sorted_rows, GrowableArray(np.uint64, WORDS))
        self.tail.rows.extend(whole.tail.rows.view()[rows[sorted_rows:] - whole.tail.first])

    def order(self) -> Order:
        if self.runs:
            return super().order()
        there = self._whole.order()
        return Order(there.runs, int(np.searchsorted(self._rows, there.n)), self._places)
