"""Some rows of another matrix of vectors, which are copied once somebody needs all of them.

A query reads the codes of all rows, and the vectors of few. So a scope that is asked of takes a fifth of the memory that its
vectors would, and memory that is handed out for the first time is what its first question would wait for most.
"""

import threading
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from store.fixed_point import Fixed

if TYPE_CHECKING:
    from store.index.vectors.codes import CodedBlock
    from store.index.vectors.matrix import VectorsView


class TakenBlock:
    """May be read from any thread."""

    def __init__(self, whole: "VectorsView", rows: NDArray[np.int64]) -> None:
        """`rows`: which of `whole` there are here, in this order."""
        self._whole = whole
        self._rows = rows
        self._copied: Fixed | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def bytes(self) -> int:
        """What is copied."""
        return 0 if self._copied is None else self._copied.nbytes

    def copied(self) -> Fixed:
        """All rows, shape (len(self), dim)."""
        with self._lock:
            if self._copied is None:
                self._copied = self._whole.fixed(self._rows)
            return self._copied

    def take(self, rows: NDArray[np.int64], out: Fixed | None = None) -> Fixed:
        """The vectors of some rows, shape (len(rows), dim), copied; to `out` where it is given."""
        if self._copied is not None:
            return np.take(self._copied, rows, axis=0, out=out, mode="clip")
        return self._whole.fixed(self._rows[rows], out)

    def take_codes(self, begin: int, end: int, to: "CodedBlock") -> None:
        """Copies the codes of rows `begin` to `end`, which are those of the whole, to the same rows of `to`."""
        coded = self._whole.codes_of(self._rows[begin:end])
        to.codes[begin:end], to.units[begin:end] = coded.codes, coded.units
