"""Products of a large sparse matrix and a vector, on up to four processors.

scipy releases the GIL during a multiplication, so blocks of rows with about equal numbers of entries are multiplied in
parallel. Each row is summed by one thread in column order, so the result is bit-identical for any number of threads.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.index.parallel import processors, threads

BLOCK_MIN_ENTRIES = 500_000
"""Minimum number of entries of a block: about 0.5 ms of work, compared with 0.1 ms for handing a block to a thread."""


class RowBlocks:
    """A CSR divided into blocks of rows. The blocks are views that copy nothing."""

    def __init__(self, matrix: Any, max_blocks: int | None = None) -> None:
        count = min(max_blocks or processors(), max(matrix.nnz // BLOCK_MIN_ENTRIES, 1))
        cuts = np.searchsorted(matrix.indptr, np.linspace(0, matrix.nnz, count + 1)[1:-1])
        bounds = [0, *cuts.tolist(), matrix.shape[0]]
        self._blocks = [matrix] if count == 1 else [_rows(matrix, *pair) for pair in pairwise(bounds)]

    def __matmul__(self, x: NDArray[Any]) -> NDArray[Any]:
        """Returns the product of the matrix and `x`, shape (columns,); the result has shape (rows,)."""
        first, *others = self._blocks
        if not others:
            whole: NDArray[Any] = first @ x
            return whole
        later = [threads().submit(block.__matmul__, x) for block in others]
        return np.concatenate([first @ x, *(part.result() for part in later)])


def _rows(matrix: Any, start: int, stop: int) -> Any:
    first, last = matrix.indptr[start], matrix.indptr[stop]
    block = sparse.csr_array((stop - start, matrix.shape[1]), dtype=matrix.dtype)
    # Attributes are set one by one, because the constructor copies arrays that are views of less than half of another array.
    block.data, block.indices = matrix.data[first:last], matrix.indices[first:last]
    block.indptr = matrix.indptr[start : stop + 1] - first
    return block
