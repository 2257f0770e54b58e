"""Arrays that one writer appends to while readers use views of the values present so far.

A view never changes. Appended values lie beyond the view's end. Only `Counts` changes existing values; it copies a chunk before
the first change after a view was taken. The cost of a snapshot therefore depends on the changes, not on the array's length.
"""

from collections.abc import Sequence
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from store.index.file_arrays import IN_MEMORY, ArrayStorage
from store.index.part import Part, PartFiles, PartWriter
from store.index.vectors.rows_in_blocks import by_block

Scalar = TypeVar("Scalar", bound=np.generic)

CHUNK_COUNTS = 4096
"""Number of counts in one chunk of `Counts`. A commit copies 16 kB for each chunk in which it changes a count."""

SPARE_SHARE = 8
"""`set` reserves spare capacity for 1 / SPARE_SHARE of the number of values."""


class GrowableArray(Part, Generic[Scalar]):
    """An append-only array, shape (n,) or (n, width). Capacity doubles, so appending takes O(1) amortised time per value."""

    def __init__(self, dtype: type[Scalar], width: int | None = None, storage: ArrayStorage = IN_MEMORY) -> None:
        """`storage`: allocates large arrays in files or in memory."""
        self._width = width
        self._storage = storage
        self._data: NDArray[Scalar] = np.empty((64,) if width is None else (64, width), dtype)
        self.n = 0

    def extend(self, values: NDArray[Any] | Sequence[Any]) -> None:
        added = np.asarray(values, dtype=self._data.dtype)
        if self._width is not None:
            added = added.reshape(-1, self._width)
        end = self.n + len(added)
        if end > len(self._data):
            # Views keep the old buffer, which is never written again.
            size = max(end, 2 * len(self._data)), *self._data.shape[1:]
            longer = self._storage.empty(size, self._data.dtype)
            longer[: self.n] = self._data[: self.n]
            self._data = longer
        self._data[self.n : end] = added
        self.n = end

    def save(self, files: PartWriter, name: str) -> None:
        files.array(name, self.view())

    def load(self, files: PartFiles, name: str) -> None:
        self.set(files.array(name))

    def set(self, values: NDArray[Any]) -> None:
        """Sets all values and reserves spare capacity, so that the next append does not copy them."""
        size = len(values) + len(values) // SPARE_SHARE + 64, *self._data.shape[1:]
        self._data = self._storage.empty(size, self._data.dtype)
        self._data[: len(values)] = values
        self.n = len(values)

    def put(self, rows: NDArray[Any] | int, values: Any) -> None:
        """Changes existing values. Only allowed for arrays without views."""
        self._data[rows] = values

    def view(self) -> NDArray[Scalar]:
        """Returns the present values, read-only."""
        seen = self._data[: self.n]
        seen.flags.writeable = False
        return seen

    def copy(self) -> "GrowableArray[Scalar]":
        """Returns an array with the present values that shares the buffer until values are appended to the copy."""
        other = GrowableArray(self._data.dtype.type, self._width, self._storage)
        other._data, other.n = self._data[: self.n], self.n
        return other


Chunks = tuple[NDArray[np.int32], ...]


class _PositiveMask:
    """Computes the mask of the counts above zero from the previous mask, reading only changed chunks."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._chunks: Chunks = ()
        self._mask: NDArray[np.bool_] = np.empty(0, np.bool_)

    def of(self, chunks: Chunks, n: int) -> NDArray[np.bool_]:
        """Returns the mask, shape (n,), read-only."""
        with self._lock:
            before, known = self._mask, self._chunks
        whole: NDArray[np.bool_] = np.zeros(len(chunks) * CHUNK_COUNTS, np.bool_)
        whole[: len(before)] = before[: len(whole)]
        for at, chunk in enumerate(chunks):
            if at >= len(known) or known[at] is not chunk:
                np.greater(chunk, 0, out=whole[at * CHUNK_COUNTS : (at + 1) * CHUNK_COUNTS])
        whole.flags.writeable = False
        with self._lock:
            self._chunks, self._mask = chunks, whole
        return whole[:n]


class CountsView:
    """Integer counts as of one commit. Arrays derived from all counts are computed on first use and kept."""

    __slots__ = ("_array", "_chunks", "_mask", "_positive", "n")

    def __init__(self, chunks: Chunks, n: int, positive: _PositiveMask) -> None:
        self._chunks = chunks
        self.n = n
        self._array: NDArray[np.int32] | None = None
        self._mask: NDArray[np.bool_] | None = None
        self._positive = positive

    def array(self) -> NDArray[np.int32]:
        """Returns all counts, shape (n,), int32, read-only."""
        if self._array is None:
            whole = np.concatenate(self._chunks)[: self.n] if self._chunks else np.empty(0, np.int32)
            whole.flags.writeable = False
            self._array = whole
        return self._array

    def positive(self) -> NDArray[np.bool_]:
        """Returns the mask of the counts above zero, shape (n,), read-only.

        Reads only the chunks that changed since the previous call, and copies one byte per count.
        """
        if self._mask is None:
            self._mask = self._positive.of(self._chunks, self.n)
        return self._mask

    def __getitem__(self, index: int) -> int:
        return int(self._chunks[index // CHUNK_COUNTS][index % CHUNK_COUNTS])


class Counts(Part):
    """Integer counts that can grow and change; a chunk shared with a view or copy is copied before it changes."""

    def __init__(self) -> None:
        self._chunks: list[NDArray[np.int32]] = []
        self._shared: list[bool] = []
        self._positive = _PositiveMask()
        self.n = 0

    def grow(self, n: int) -> None:
        """Extends the array to `n` counts. New counts are zero."""
        while len(self._chunks) * CHUNK_COUNTS < n:
            self._chunks.append(np.zeros(CHUNK_COUNTS, np.int32))
            self._shared.append(False)
        self.n = max(self.n, n)

    def _own(self, number: int) -> NDArray[np.int32]:
        """Returns a chunk shared with no view and no copy."""
        if self._shared[number]:
            self._chunks[number] = self._chunks[number].copy()
            self._shared[number] = False
        return self._chunks[number]

    def change(self, rows: NDArray[Any], changes: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Adds `changes` to the counts of `rows` (ascending, distinct). Returns two masks over `rows`: counts above zero before
        the change, and after it."""
        before = np.empty(len(rows), np.int32)
        for number, part, places in by_block(rows, CHUNK_COUNTS):
            chunk = self._own(number)
            before[part] = chunk[places]
            chunk[places] = before[part] + changes[part]
        return before > 0, before + changes > 0

    def at(self, rows: NDArray[Any]) -> NDArray[np.int32]:
        """Returns the counts of `rows` (ascending); 0 for rows after the end."""
        found = np.zeros(len(rows), np.int32)
        for number, part, places in by_block(rows[: np.searchsorted(rows, self.n)], CHUNK_COUNTS):
            found[part] = self._chunks[number][places]
        return found

    def copy(self) -> "Counts":
        other = Counts()
        self._shared = [True] * len(self._chunks)
        other._chunks, other._shared, other.n = list(self._chunks), list(self._shared), self.n
        return other

    def save(self, files: PartWriter, name: str) -> None:
        files.array(name, self.view().array())

    def load(self, files: PartFiles, name: str) -> None:
        self.set(files.array(name))

    def set(self, values: NDArray[np.int32]) -> None:
        """Sets all counts."""
        self._chunks, self._shared, self.n = [], [], 0
        self.grow(len(values))
        for chunk, start in enumerate(range(0, len(values), CHUNK_COUNTS)):
            part = values[start : start + CHUNK_COUNTS]
            self._chunks[chunk][: len(part)] = part

    def __getitem__(self, index: int) -> int:
        return int(self._chunks[index // CHUNK_COUNTS][index % CHUNK_COUNTS])

    def view(self) -> CountsView:
        self._shared = [True] * len(self._chunks)
        return CountsView(tuple(self._chunks), self.n, self._positive)
