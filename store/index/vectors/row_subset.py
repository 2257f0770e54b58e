"""A selection of rows of another matrix of vectors, which is copied only if all of its rows are needed.

A query reads the codes of all rows, but the vectors of only a few. A scope therefore needs a fifth of the memory that its
vectors would take, and its first query does not wait for their allocation.
"""

import threading
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from store.fixed_point import Fixed

if TYPE_CHECKING:
    from store.index.vectors.codes import CodedBlock
    from store.index.vectors.matrix import VectorsView


class RowSubset:
    """A selection of rows of `whole`. Thread-safe."""

    def __init__(self, whole: "VectorsView", rows: NDArray[np.int64]) -> None:
        """`rows`: the selected rows of `whole`, in this order."""
        self._whole = whole
        self._rows = rows
        self._copied: Fixed | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def bytes(self) -> int:
        """Number of bytes of the copied vectors."""
        return 0 if self._copied is None else self._copied.nbytes

    def copied(self) -> Fixed:
        """Copies all rows, keeps the copy and returns it, shape (len(self), dim + 1)."""
        with self._lock:
            if self._copied is None:
                self._copied = self._whole.fixed(self._rows)
            return self._copied

    def copy_rows(self, rows: NDArray[np.int64], out: Fixed | None = None) -> Fixed:
        """Returns a copy of the vectors of `rows`, shape (len(rows), dim + 1), written to `out` if given."""
        if self._copied is not None:
            return np.take(self._copied, rows, axis=0, out=out, mode="clip")
        return self._whole.fixed(self._rows[rows], out)

    def copy_codes(self, begin: int, end: int, to: "CodedBlock") -> None:
        """Copies the codes of rows `begin` to `end` of this selection to the same rows of `to`."""
        coded = self._whole.codes_of(self._rows[begin:end])
        to.codes[begin:end], to.units[begin:end] = coded.codes, coded.units
