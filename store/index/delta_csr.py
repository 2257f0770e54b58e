"""A sparse matrix that changes without a rebuild: an immutable CSR base plus a log of additions.

The value of an entry is its base value plus all its log entries; adding the negative removes it. Weights are float32 values
stored as float64, so that equal weights cancel to exactly zero. `MatrixView` is the matrix at one commit. It stays the same
while the log grows and after a folded base replaces the old one.
"""

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.index.append_only_arrays import GrowableArray

Rows = NDArray[np.int32]
Values = NDArray[np.float64]

UNSORTED_ENTRIES = 4096
"""Number of log entries that are searched linearly, without sorting."""

UNSORTED_SHARE = 1 / 16
"""The limit as a share of the sorted entries, if that is larger. Sorting then costs O(1) amortised for each new entry."""


@dataclass(frozen=True, slots=True)
class LogOrder:
    """The first entries of a log sorted by row, to find the entries of given rows without a full search.

    `keys`, ascending: an entry's row * 2³² + its position in the log.
    """

    keys: NDArray[np.int64]

    @property
    def n(self) -> int:
        return len(self.keys)

    def places(self, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the log positions of the entries in the rows `wanted`."""
        first, end = np.searchsorted(self.keys, wanted << 32), np.searchsorted(self.keys, (wanted + 1) << 32)
        counts = end - first
        before = np.cumsum(counts) - counts
        found: NDArray[np.int64] = self.keys[np.repeat(first - before, counts) + np.arange(counts.sum())] & 0xFFFF_FFFF
        return found


UNSORTED = LogOrder(np.empty(0, np.int64))


def _ordered(rows: Rows) -> LogOrder:
    return LogOrder(np.sort((rows.astype(np.int64) << 32) | np.arange(len(rows))))


class MatrixView:
    """The matrix as of one commit, shape `shape`. The base may have fewer rows and columns, if some were added since."""

    def __init__(
        self,
        base: Any,
        rows: Rows,
        cols: Rows,
        values: Values,
        shape: tuple[int, int],
        log_identity: object,
        order: LogOrder = UNSORTED,
    ) -> None:
        """`order`: the sorted first part of the log."""
        self.base = base
        self.shape = shape
        self._log = (rows, cols, values)
        self.log_identity = log_identity
        """Equal for two views if the log of one is a prefix of the log of the other."""
        self._order = order
        self._delta: Any = None
        self._lock = Lock()

    @property
    def delta(self) -> Any:
        """Returns the log as a CSR of the full shape, with entries at equal positions summed. Built at first use."""
        with self._lock:
            if self._delta is None:
                rows, cols, values = self._log
                self._delta = sparse.csr_array((values, (rows, cols)), shape=self.shape)
                self._delta.sum_duplicates()
            return self._delta

    def matvec(self, x: Values) -> Values:
        """Returns A @ x; x has shape (columns,), the result (rows,)."""
        rows, cols = self.base.shape
        if not self.log_length and self.base.shape == self.shape:
            whole: Values = self.base @ x
            return whole
        y: Values = self.delta @ x
        y[:rows] += self.base @ x[:cols]
        return y

    def row(self, index: int) -> tuple[Rows, Values]:
        """Returns the columns and values of one row's non-zero entries, by column."""
        _, cols, values = self.entries(np.array([index]))
        return cols, values

    def entries(self, rows: NDArray[Any]) -> tuple[Rows, Rows, Values]:
        """Returns (row, column, value) of every non-zero entry of `rows`, by row and column.

        O(their entries + the unsorted end of the log).
        """
        wanted = np.unique(rows).astype(np.int64)
        inside = wanted[wanted < self.base.shape[0]]
        part = sparse.coo_array(self.base[inside]) if len(inside) else None
        log_rows, log_cols, log_values = self._log
        behind = np.flatnonzero(np.isin(log_rows[self._order.n :], wanted)) + self._order.n
        here = np.concatenate([self._order.places(wanted), behind])
        found_rows = np.concatenate([inside[part.row] if part is not None else inside[:0], log_rows[here]])
        found_cols = np.concatenate([part.col if part is not None else log_cols[:0], log_cols[here]])
        found_values = np.concatenate([part.data if part is not None else log_values[:0], log_values[here]])
        keys = found_rows.astype(np.int64) * max(self.shape[1], 1) + found_cols
        unique, inverse = np.unique(keys, return_inverse=True)
        sums = np.bincount(inverse, weights=found_values, minlength=len(unique))
        nonzero = sums != 0
        unique = unique[nonzero]
        width = max(self.shape[1], 1)
        return (unique // width).astype(np.int32), (unique % width).astype(np.int32), sums[nonzero]

    def merged(self) -> Any:
        """Returns the whole matrix as one CSR of shape `shape`, without explicit zeros. O(everything), for folding and
        export."""
        base = sparse.csr_array(self.base, copy=False)
        if base.shape != self.shape:
            indptr = np.concatenate([base.indptr, np.full(self.shape[0] - base.shape[0], base.indptr[-1])])
            base = sparse.csr_array((base.data, base.indices, indptr.astype(base.indptr.dtype)), shape=self.shape)
        whole = sparse.csr_array(base + self.delta)
        whole.eliminate_zeros()
        whole.sort_indices()
        return whole

    @property
    def log(self) -> tuple[Rows, Rows, Values]:
        """Returns (row, column, weight added) of every change since the base, oldest first."""
        return self._log

    @property
    def log_length(self) -> int:
        return len(self._log[0])


class LiveMatrix:
    """The writer's matrix: `add` changes it, `view` returns a reader's view, `swap_in` swaps in a folded base."""

    def __init__(self, base: Any | None = None) -> None:
        self._base = base if base is not None else sparse.csr_array((0, 0), dtype=np.float64)
        self._begin_log()

    def _begin_log(self) -> None:
        self._rows, self._cols = GrowableArray(np.int32), GrowableArray(np.int32)
        self._values = GrowableArray(np.float64)
        self._order = UNSORTED

    def add(self, rows: NDArray[Any], cols: NDArray[Any], values: NDArray[Any]) -> None:
        """Adds `values` to the entries at (rows, cols). Each argument has shape (k,)."""
        self._rows.extend(rows)
        self._cols.extend(cols)
        self._values.extend(values)
        if self._rows.n - self._order.n > max(UNSORTED_ENTRIES, UNSORTED_SHARE * self._order.n):
            self._order = _ordered(self._rows.view())

    def view(self, shape: tuple[int, int]) -> MatrixView:
        log = self._rows.view(), self._cols.view(), self._values.view()
        return MatrixView(self._base, *log, shape, log_identity=self._rows, order=self._order)

    def swap_in(self, folded: Any, length: int) -> None:
        """Swaps in `folded`, the base merged with the first `length` log entries, as the new base."""
        rows, cols, values = self._rows.view()[length:], self._cols.view()[length:], self._values.view()[length:]
        self._base = folded
        self._begin_log()
        self.add(rows, cols, values)

    @property
    def base_entries(self) -> int:
        return int(self._base.nnz)

    @property
    def log_length(self) -> int:
        return self._rows.n
