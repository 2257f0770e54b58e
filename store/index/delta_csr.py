"""A sparse matrix that can change without being rebuilt: an immutable CSR base, plus later changes.

The value of an entry is its value in the base plus all its changes; adding the negative value removes the entry. Weights are
float32 values stored as float64, so that equal weights cancel to exactly zero. `MatrixView` is the matrix as of one commit. A
view does not change when changes are added or when a folded base replaces the old one.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.index.append_only_arrays import GrowableArray
from store.index.part import Foldable, Part, PartFiles, PartWriter
from store.rows import Rows32

CSR_ARRAYS = ("data", "indices", "indptr")

Values = NDArray[np.float64]

FOLD_SHARE = 0.1
FOLD_MIN_ENTRIES = 50_000
"""Changes are folded once there are more of them than this number and than FOLD_SHARE of the base's entries."""

UNSORTED_ENTRIES = 4096
"""Maximum number of changes that are searched linearly instead of being sorted."""

UNSORTED_SHARE = 1 / 16
"""The same limit, as a share of the sorted changes; the larger limit applies. Sorting takes O(1) amortised time per change."""


SortedChanges = NDArray[np.int64]
"""The oldest changes, sorted by row: (row of a change) * 2³² + (number of the change). The changes of given rows are found
without a search through all changes."""


def _changes_in(changes: SortedChanges, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the indices of the changes in `rows`."""
    first, end = np.searchsorted(changes, rows << 32), np.searchsorted(changes, (rows + 1) << 32)
    counts = end - first
    before = np.cumsum(counts) - counts
    found: NDArray[np.int64] = changes[np.repeat(first - before, counts) + np.arange(counts.sum())] & 0xFFFF_FFFF
    return found


class MatrixView:
    """The matrix as of one commit. The base may have fewer rows and columns than `shape`, if some were added later."""

    def __init__(
        self,
        base: Any,
        rows: Rows32,
        cols: Rows32,
        values: Values,
        shape: tuple[int, int],
        identity: object,
        order: SortedChanges,
    ) -> None:
        self.base = base
        self.shape = shape
        self._changes = (rows, cols, values)
        self.identity = identity
        """Two views have the same `identity` object if the changes of one view are the first changes of the other view."""
        self._order = order
        self._delta: Any = None
        self._lock = Lock()

    @property
    def delta(self) -> Any:
        """The changes as a CSR of the full shape, with changes at equal positions summed. Built on first use."""
        with self._lock:
            if self._delta is None:
                rows, cols, values = self._changes
                self._delta = sparse.csr_array((values, (rows, cols)), shape=self.shape)
                self._delta.sum_duplicates()
            return self._delta

    def matvec(self, x: Values) -> Values:
        """Returns A @ x: `x` has shape (columns,), the result shape (rows,)."""
        rows, cols = self.base.shape
        if not self.change_count and self.base.shape == self.shape:
            whole: Values = self.base @ x
            return whole
        y: Values = self.delta @ x
        y[:rows] += self.base @ x[:cols]
        return y

    def row(self, index: int) -> tuple[Rows32, Values]:
        """Returns the columns and the values of the non-zero entries in a row, sorted by column."""
        _, cols, values = self.entries(np.array([index]))
        return cols, values

    def entries(self, rows: NDArray[Any]) -> tuple[Rows32, Rows32, Values]:
        """Returns (row, column, value) of every non-zero entry in `rows`, sorted by row and column.

        Takes O(entries in `rows` + unsorted changes) time.
        """
        changed_rows, changed_cols, added = self._changes
        if not len(rows):
            return changed_rows[:0], changed_cols[:0], added[:0]
        wanted = np.unique(rows).astype(np.int64)
        inside = wanted[wanted < self.base.shape[0]]
        # Indexing scipy's matrix with arrays would take several times as long.
        first, end = self.base.indptr[inside].astype(np.int64), self.base.indptr[inside + 1].astype(np.int64)
        counts = end - first
        places = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        found_rows, found_cols = np.repeat(inside, counts).astype(np.int32), self.base.indices[places]
        found_values, here = self.base.data[places], self._changes_of(wanted)
        if not len(here) and found_values.all():
            return found_rows, found_cols, found_values  # the base is sorted and has no repeated entries
        found_rows = np.concatenate([found_rows, changed_rows[here]])
        found_cols = np.concatenate([found_cols, changed_cols[here]])
        found_values = np.concatenate([found_values, added[here]])
        keys = found_rows.astype(np.int64) * max(self.shape[1], 1) + found_cols
        unique, inverse = np.unique(keys, return_inverse=True)
        sums = np.bincount(inverse, weights=found_values, minlength=len(unique))
        nonzero = sums != 0
        unique = unique[nonzero]
        width = max(self.shape[1], 1)
        return (unique // width).astype(np.int32), (unique % width).astype(np.int32), sums[nonzero]

    def _changes_of(self, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the indices of the changes in the rows `wanted`."""
        if not self.change_count:
            return wanted[:0]
        unsorted = np.flatnonzero(np.isin(self._changes[0][len(self._order) :], wanted)) + len(self._order)
        return np.concatenate([_changes_in(self._order, wanted), unsorted])

    @property
    def entry_count(self) -> int:
        """Number of non-zero entries: the number in the base, corrected by the changes. Takes O(changes) time."""
        delta = self.delta.tocoo()
        inside = (delta.row < self.base.shape[0]) & (delta.col < self.base.shape[1])
        before = np.zeros(delta.nnz)
        if inside.any():
            before[inside] = np.asarray(self.base[delta.row[inside], delta.col[inside]]).ravel()
        after = before + delta.data
        return int(self.base.nnz + ((before == 0) & (after != 0)).sum() - ((before != 0) & (after == 0)).sum())

    def column_entries(self, columns: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Returns (column, row) of every non-zero entry in `columns`, by column and row. Takes O(entries of the matrix)
        time."""
        base = self.base.tocoo()
        delta = self.delta.tocoo()
        parts = []
        for matrix in (base, delta):
            here = np.isin(matrix.col, columns)
            parts.append((matrix.col[here], matrix.row[here], matrix.data[here]))
        cols, rows, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((rows, cols))
        cols, rows, values = cols[order], rows[order], values[order]
        if not len(cols):
            return cols, rows
        starts = np.flatnonzero(np.concatenate([[True], (cols[1:] != cols[:-1]) | (rows[1:] != rows[:-1])]))
        nonzero = np.add.reduceat(values, starts) != 0
        return cols[starts][nonzero], rows[starts][nonzero]

    def merged(self) -> Any:
        """Returns the whole matrix as one CSR of the full shape, without zeros. Takes O(entries) time; for folding and
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
    def changes(self) -> tuple[Rows32, Rows32, Values]:
        """Returns (row, column, added value) of every change since the base, oldest first."""
        return self._changes

    @property
    def change_count(self) -> int:
        return len(self._changes[0])


class LiveMatrix(Part, Foldable):
    """The writer's matrix: `add` changes it, `view` returns a view for readers, `swap_in` replaces its base by a folded one."""

    def __init__(self, shape: Callable[[], tuple[int, int]]) -> None:
        """`shape` returns the present shape, which may only grow."""
        self.shape = shape
        self.folded_changes = 0
        """Number of changes that the last `fold` merged."""
        self._base: Any = sparse.csr_array((0, 0), dtype=np.float64)
        self._begin_changes()

    def _begin_changes(self) -> None:
        self._rows, self._cols = GrowableArray(np.int32), GrowableArray(np.int32)
        self._values = GrowableArray(np.float64)
        self._order: SortedChanges = np.empty(0, np.int64)

    def add(self, rows: NDArray[Any], cols: NDArray[Any], values: NDArray[Any]) -> None:
        """Adds `values` to the entries at (rows, cols); all three have shape (k,)."""
        self._rows.extend(rows)
        self._cols.extend(cols)
        self._values.extend(values)

    def set(self, rows: NDArray[Any], cols: NDArray[Any], values: NDArray[Any]) -> None:
        """Replaces all entries; `values` at equal positions are summed."""
        base = sparse.csr_array((values.astype(np.float64), (rows, cols)), shape=self.shape())
        base.sum_duplicates()
        self.swap_in(base, self.change_count)

    def view(self) -> MatrixView:
        sorted_count = len(self._order)
        if self._rows.n - sorted_count > max(UNSORTED_ENTRIES, UNSORTED_SHARE * sorted_count):
            self._order = np.sort((self._rows.view().astype(np.int64) << 32) | np.arange(self._rows.n))
        return self._view()

    def _view(self) -> MatrixView:
        changes = self._rows.view(), self._cols.view(), self._values.view()
        return MatrixView(self._base, *changes, self.shape(), identity=self._rows, order=self._order)

    def swap_in(self, folded: Any, count: int) -> None:
        """Replaces the base by `folded`, which is the base merged with the first `count` changes."""
        rows, cols, values = self._rows.view()[count:], self._cols.view()[count:], self._values.view()[count:]
        self._base = folded
        self._begin_changes()
        self.add(rows, cols, values)

    @property
    def due(self) -> bool:
        return self.change_count >= max(FOLD_MIN_ENTRIES, FOLD_SHARE * self.base_entries)

    def fold(self) -> None:
        self.folded_changes = self.change_count
        if self.change_count:
            self.swap_in(self._view().merged(), self.change_count)

    def swap_in_fold(self, folded: "LiveMatrix") -> None:
        self.swap_in(folded._base, folded.folded_changes)

    @property
    def base_entries(self) -> int:
        return int(self._base.nnz)

    @property
    def change_count(self) -> int:
        return self._rows.n

    def copy(self) -> "LiveMatrix":
        now = self.shape()
        other = LiveMatrix(lambda: now)
        other.share(self)
        return other

    def share(self, other: "LiveMatrix") -> None:
        """Sets this matrix to the entries of `other`. Later changes of either matrix do not affect the other."""
        self._base, self._order = other._base, other._order
        self._rows, self._cols, self._values = other._rows.copy(), other._cols.copy(), other._values.copy()

    def save(self, files: PartWriter, name: str) -> None:
        """Writes the matrix as one CSR; `map_saved` then makes this CSR the base of the live matrix."""
        self.fold()
        for part in CSR_ARRAYS:
            files.array(f"{name}-{part}", getattr(self._base, part))
        files.values[f"{name}-shape"] = list(self._base.shape)

    def load(self, files: PartFiles, name: str) -> None:
        parts = tuple(files.array(f"{name}-{part}") for part in CSR_ARRAYS)
        self.swap_in(sparse.csr_array(parts, shape=tuple(files.values[f"{name}-shape"])), 0)

    def map_saved(self, _files: PartFiles, _name: str, saved: "LiveMatrix", /) -> None:
        self.swap_in_fold(saved)
