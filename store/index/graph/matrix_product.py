"""Products of a large sparse matrix with a vector, on up to four processors.

scipy lets go of the GIL while it multiplies, so blocks of rows that hold about as many entries each are multiplied side by
side. Every row is added up by one thread in the order of its columns: the answer is the same to the last bit, however many
threads there are.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.index.parallel import processors, threads

BLOCK_MIN_ENTRIES = 500_000
"""Entries of a block that are worth a thread: some half a millisecond of work, against a tenth for handing it over."""


class RowBlocks:
    """A CSR as blocks of rows. The blocks are views: nothing is held twice."""

    def __init__(self, matrix: Any, most: int | None = None) -> None:
        count = min(most or processors(), max(matrix.nnz // BLOCK_MIN_ENTRIES, 1))
        cuts = np.searchsorted(matrix.indptr, np.linspace(0, matrix.nnz, count + 1)[1:-1])
        bounds = [0, *cuts.tolist(), matrix.shape[0]]
        self._blocks = [matrix] if count == 1 else [_rows(matrix, *pair) for pair in pairwise(bounds)]

    def __matmul__(self, x: NDArray[Any]) -> NDArray[Any]:
        """The product with `x`, shape (columns,); shape (rows,)."""
        first, *others = self._blocks
        if not others:
            whole: NDArray[Any] = first @ x
            return whole
        beside = [threads().submit(block.__matmul__, x) for block in others]
        return np.concatenate([first @ x, *(part.result() for part in beside)])


def _rows(matrix: Any, start: int, stop: int) -> Any:
    first, last = matrix.indptr[start], matrix.indptr[stop]
    block = sparse.csr_array((stop - start, matrix.shape[1]), dtype=matrix.dtype)
    # Set one by one: given to the constructor, parts of less than half an array are copied.
    block.data, block.indices = matrix.data[first:last], matrix.indices[first:last]
    block.indptr = matrix.indptr[start : stop + 1] - first
    return block
