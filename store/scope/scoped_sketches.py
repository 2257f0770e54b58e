"""The sketches of a scope's phrases, found through the bands of the whole memory: sorting them takes longer than all else."""

import numpy as np
from numpy.typing import NDArray

from store.index.synonyms.lsh import Sketches
from store.index.synonyms.sketch_index import Order, SketchIndex


class ScopedSketches(SketchIndex):
    """Searches through the bands as the whole memory has them sorted now; those of phrases that came later one by one."""

    def __init__(
        self, whole: SketchIndex, sketches: Sketches, rows: NDArray[np.int64], places: NDArray[np.int32]
    ) -> None:
        """`sketches` are those of `rows` of the whole memory, which are in order; `places` says the row here of each row there,
        or -1."""
        super().__init__(whole.threshold)
        self._whole, self._rows, self._places = whole, rows, places
        self.append(sketches)

    def order(self) -> Order:
        if self.runs:
            return super().order()
        there = self._whole.order()
        return Order(there.runs, int(np.searchsorted(self._rows, there.n)), self._places)
