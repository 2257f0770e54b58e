"""A list of rows for each of many rows: mapped from a checkpoint's files, with changed lists in memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]
Item = TypeVar("Item", bound=Rows | None)
"""`Rows`, or also None for rows that may have no list."""

NO_ROWS = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class ListArrays:
    """List `i` is `rows[starts[i]:starts[i + 1]]`, or None if `none[i]`."""

    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    rows: Rows = field(default_factory=lambda: NO_ROWS)
    none: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))

    @property
    def n(self) -> int:
        return len(self.starts) - 1

    def take(self, rows: NDArray[np.int64]) -> "ListArrays":
        """Returns the lists of `rows`, in this order."""
        sizes = self.starts[rows + 1] - self.starts[rows]
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        places = np.arange(int(starts[-1])) + np.repeat(self.starts[rows] - starts[:-1], sizes)
        return ListArrays(starts, self.rows[places], self.none[rows])

    def renumbered(self, numbers: Rows) -> "ListArrays":
        """Returns the lists with `numbers[row]` in place of each row."""
        return ListArrays(self.starts, numbers[self.rows], self.none)

    def replaced(self, changed: Mapping[int, Rows | None], n: int) -> "ListArrays":
        """Returns `n` lists, with the lists in `changed` replaced by row. Adds empty lists, or drops the last ones, to have
        `n`."""
        if not self.n and len(changed) == n:
            return list_arrays([changed[row] for row in range(n)])
        known = min(n, self.n)
        sizes, none = np.zeros(n, np.int64), np.zeros(n, np.bool_)
        sizes[:known], none[:known] = np.diff(self.starts[: known + 1]), self.none[:known]
        moved = sorted(row for row in changed if row < n)
        for row in moved:
            rows = changed[row]
            sizes[row], none[row] = 0 if rows is None else len(rows), rows is None
        starts = np.zeros(n + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        out = np.empty(int(starts[-1]), np.int32)
        # Lists between two changed lists are copied in one piece.
        for first, end in zip([0, *(row + 1 for row in moved)], [*moved, known], strict=True):
            end = min(end, known)
            if first < end:
                out[starts[first] : starts[end]] = self.rows[self.starts[first] : self.starts[end]]
        for row in moved:
            rows = changed[row]
            if rows is not None:
                out[starts[row] : starts[row + 1]] = rows
        return ListArrays(starts, out, none)


def list_arrays(lists: Sequence[Rows | None]) -> ListArrays:
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([0 if rows is None else len(rows) for rows in lists], out=starts[1:])
    none = np.array([rows is None for rows in lists], np.bool_)
    return ListArrays(starts, np.concatenate([NO_ROWS, *(rows for rows in lists if rows is not None)]), none)


class RowLists(Sequence[Item], Generic[Item]):
    """A sequence of lists of rows.

    One writer replaces and appends whole lists. A reader in another thread sees each change completely or not at all.
    """

    def __init__(self, saved: ListArrays | None = None) -> None:
        self._saved = saved or ListArrays()
        self._changed: dict[int, Any] = {}
        self._n = self._saved.n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, row: int) -> Item: ...

    @overload
    def __getitem__(self, row: slice) -> list[Item]: ...

    def __getitem__(self, row: int | slice) -> Any:
        if isinstance(row, slice):
            return [self[at] for at in range(*row.indices(len(self)))]
        # `_changed` first: `swap_in` replaces the arrays before it empties the dict.
        changed, saved = self._changed, self._saved
        if row in changed:
            return changed[row]
        if not 0 <= row < saved.n:
            raise IndexError(row)
        return None if saved.none[row] else saved.rows[saved.starts[row] : saved.starts[row + 1]]

    def __setitem__(self, row: int, rows: Item) -> None:
        self._changed[row] = rows

    def __iter__(self) -> Iterator[Item]:
        return map(self.__getitem__, range(self._n))

    def append(self, rows: Item) -> None:
        self._changed[self._n] = rows
        self._n += 1

    def extend(self, lists: Iterable[Item]) -> None:
        for rows in lists:
            self.append(rows)

    def copy(self) -> "RowLists[Item]":
        """Returns an independent copy. O(changes since the checkpoint)."""
        other: RowLists[Item] = RowLists(self._saved)
        other._changed, other._n = self._changed.copy(), self._n
        return other

    def arrays(self) -> ListArrays:
        """Returns all lists as arrays."""
        if not self._changed and self._n == self._saved.n:
            return self._saved
        return self._saved.replaced(self._changed, self._n)

    def swap_in(self, saved: ListArrays, captured: "RowLists[Item]") -> None:
        """Replaces the lists in `captured`, an earlier `copy`, with those in `saved`, the files written from it."""
        then, missing = captured._changed, object()
        later = {row: rows for row, rows in self._changed.items() if then.get(row, missing) is not rows}
        self._saved = saved
        self._changed = later
