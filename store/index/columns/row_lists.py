"""A value for each row: values of a checkpoint are mapped from its files, and changed values are in memory. All such columns
use these classes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import astuple, dataclass, field
from typing import Any, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from store.index.part import Part, PartFiles, PartWriter
from store.rows import Rows32
from store.types import ExtractionState, extraction_state

Item = TypeVar("Item")
NO_ROWS = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class ListArrays:
    """List number `i` is `rows[starts[i]:starts[i + 1]]`, or None if `none[i]`."""

    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    rows: Rows32 = field(default_factory=lambda: NO_ROWS)
    none: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))

    @property
    def n(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> Rows32 | None:
        return None if self.none[row] else self.rows[self.starts[row] : self.starts[row + 1]]

    def owners(self) -> Rows32:
        """Returns the number of the list to which each element of `rows` belongs."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.starts))

    def select(self, rows: NDArray[np.int64]) -> "ListArrays":
        """Returns the lists numbered `rows`, in this order."""
        sizes = self.starts[rows + 1] - self.starts[rows]
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        places = np.arange(int(starts[-1])) + np.repeat(self.starts[rows] - starts[:-1], sizes)
        return ListArrays(starts, self.rows[places], self.none[rows])

    def renumbered(self, numbers: Rows32) -> "ListArrays":
        """Returns the lists with each row replaced by `numbers[row]`."""
        return ListArrays(self.starts, numbers[self.rows], self.none)

    def replaced(self, changed: Mapping[int, Rows32 | None], n: int) -> "ListArrays":
        """Returns `n` lists, some of which are replaced: `changed` maps numbers of lists to new lists. If there are fewer than
        `n` lists, adds empty lists; if there are more, drops the last ones."""
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
        # The lists between two changed lists are copied in one piece.
        for first, end in zip([0, *(row + 1 for row in moved)], [*moved, known], strict=True):
            end = min(end, known)
            if first < end:
                out[starts[first] : starts[end]] = self.rows[self.starts[first] : self.starts[end]]
        for row in moved:
            rows = changed[row]
            if rows is not None:
                out[starts[row] : starts[row + 1]] = rows
        return ListArrays(starts, out, none)

    def save(self, files: PartWriter, name: str) -> None:
        for part in ("starts", "rows", "none"):
            files.array(f"{name}-{part}", getattr(self, part))


def map_lists(files: PartFiles, name: str) -> ListArrays:
    return ListArrays(*(files.array(f"{name}-{part}") for part in ("starts", "rows", "none")))


def list_arrays(lists: Sequence[Rows32 | None]) -> ListArrays:
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([0 if rows is None else len(rows) for rows in lists], out=starts[1:])
    none = np.array([rows is None for rows in lists], np.bool_)
    return ListArrays(starts, np.concatenate([NO_ROWS, *(rows for rows in lists if rows is not None)]), none)


class ChangedRows(Generic[Item]):
    """A sequence of values. The first rows' values are in `saved`, which never changes; changed and new values are in a
    dictionary.

    One writer replaces and appends whole values. A reader in another thread sees each change completely or not at all.
    """

    def __init__(self, saved: Any, empty: Item) -> None:
        """`saved` has `n` values. `empty`: the value of an appended row until it changes."""
        self._saved, self._empty = saved, empty
        self._changed: dict[int, Item] = {}
        self._n: int = saved.n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, row: int) -> Item:
        # The dictionary is searched first, because `swap_in` replaces `_saved` before it empties the dictionary.
        changed, saved = self._changed, self._saved
        if row in changed:
            return changed[row]
        if not 0 <= row < self._n:
            raise IndexError(row)
        value: Item = saved[row] if row < saved.n else self._empty
        return value

    def __setitem__(self, row: int, value: Item) -> None:
        self._changed[row] = value

    def __iter__(self) -> Iterator[Item]:
        return map(self.__getitem__, range(self._n))

    def grow(self, n: int) -> None:
        """Appends empty values until there are `n` values."""
        self._n = max(self._n, n)

    def fill(self, saved: Any) -> None:
        """Sets the values of a sequence that is still empty."""
        self._saved, self._n = saved, saved.n

    def copy(self) -> Self:
        """Returns an independent copy. Takes O(changes since the checkpoint) time."""
        changed = self._changed.copy()  # first, as in `__getitem__`
        other = copy(self)
        other._changed = changed
        return other

    def swap_in(self, saved: Any, captured: Self) -> None:
        """Replaces the values of `captured`, an earlier copy, by the equal values in `saved`."""
        then, missing = captured._changed, object()
        later = {row: value for row, value in self._changed.items() if then.get(row, missing) is not value}
        self._saved = saved
        self._changed = later


class RowLists(ChangedRows[Item], Part):
    """A list of row numbers for each row; a list can be None if `Item` allows that."""

    def __init__(self, saved: ListArrays | None = None, empty: Any = NO_ROWS) -> None:
        super().__init__(saved or ListArrays(), empty)

    def arrays(self) -> ListArrays:
        """Returns all lists as arrays."""
        saved: ListArrays = self._saved
        if not self._changed and self._n == saved.n:
            return saved
        changed: dict[int, Any] = self._changed
        if not saved.n:
            return list_arrays([changed.get(row, self._empty) for row in range(self._n)])
        if self._empty is None:
            changed = dict.fromkeys(range(saved.n, self._n)) | changed
        return saved.replaced(changed, self._n)

    def compact(self) -> None:
        """Converts all lists to arrays, which need less memory."""
        self._saved, self._changed = self.arrays(), {}

    def save(self, files: PartWriter, name: str) -> None:
        self.arrays().save(files, name)

    def load(self, files: PartFiles, name: str) -> None:
        self.fill(map_lists(files, name))

    def map_saved(self, files: PartFiles, name: str, saved: Self, /) -> None:
        self.swap_in(map_lists(files, name), saved)


class ExtractionStates(dict[int, ExtractionState], Part):
    """Maps the row of each passage that has an extraction to the extraction's state."""

    def copy(self) -> "ExtractionStates":
        return ExtractionStates(self)

    def save(self, files: PartWriter, name: str) -> None:
        number = {state: n for n, state in enumerate(dict.fromkeys(self.values()))}
        files.table(name, pa.table({"state": [json.dumps(astuple(state)) for state in number]}))
        files.array(f"{name}-rows", np.array(list(self), np.int32))
        files.array(f"{name}-numbers", np.array([number[state] for state in self.values()], np.int32))

    def load(self, files: PartFiles, name: str) -> None:
        """Loads the states; equal states become one shared object."""
        states = [extraction_state(*json.loads(text)) for text in files.table(name)["state"].to_pylist()]
        rows, numbers = files.array(f"{name}-rows").tolist(), files.array(f"{name}-numbers").tolist()
        self.update((row, states[number]) for row, number in zip(rows, numbers, strict=True))
