"""The sketches of a scope's phrases, found through the bands of the whole memory: sorting them takes longer than all else."""

import numpy as np
from numpy.typing import NDArray

from store.index.synonyms.lsh import Sketches, SketchIndex, Sorted


class ScopedSketches(SketchIndex):
    """Searches through the bands as the whole memory has them sorted now; those of phrases that came later one by one."""

    def __init__(
        self, whole: SketchIndex, sketches: Sketches, rows: NDArray[np.int64], places: NDArray[np.int32]
    ) -> None:
        """`sketches` are those of `rows` of the whole memory, which are in order; `places` says the row here of each row there,
        or -1."""
        super().__init__()
        self._whole, self._rows, self._places = whole, rows, places
        self.append(sketches)

    def _bands(self) -> Sorted:
        if self._sorted.n:
            return self._sorted
        there = self._whole._sorted
        return Sorted(int(np.searchsorted(self._rows, there.n)), there.buckets, self._places)

    @property
    def due(self) -> bool:
        """Whether so much came later that it is time to sort what is here."""
        return self._is_due(self._bands().n)
