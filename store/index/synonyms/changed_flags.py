"""Boolean flags by row. Changing a few flags takes a time that does not depend on the number of rows."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from store.index.synonyms.pairs import Rows


class Flags(Protocol):
    """Flags that can be indexed with row numbers or a slice: an array, or a class of this module."""

    def __getitem__(self, rows: Any, /) -> NDArray[np.bool_]: ...


@dataclass(frozen=True, slots=True)
class ChangedFlags:
    """The flags `before`, except that `rows` (sorted, distinct) have the flags `values`. Other rows after its end are false."""

    before: NDArray[np.bool_]
    rows: Rows
    values: NDArray[np.bool_]

    def __getitem__(self, rows: slice | Rows, /) -> NDArray[np.bool_]:
        if isinstance(rows, slice):
            out = np.zeros(rows.stop - rows.start, np.bool_)
            known = self.before[rows]
            out[: len(known)] = known
            first, end = np.searchsorted(self.rows, [rows.start, rows.stop])
            out[self.rows[first:end] - rows.start] = self.values[first:end]
            return out
        out = np.zeros(len(rows), np.bool_)
        known = rows < len(self.before)
        out[known] = self.before[rows[known]]
        changed = among(rows, self.rows)
        out[changed] = self.values[np.searchsorted(self.rows, rows[changed])]
        return out


def unchanged(flags: NDArray[np.bool_]) -> ChangedFlags:
    """Returns `flags` unchanged; rows after their end are false."""
    return ChangedFlags(flags, np.empty(0, np.int64), np.empty(0, np.bool_))


@dataclass(frozen=True, slots=True)
class OneWithoutOther:
    """Flags that are true for the rows for which `one` is true and `other` is false."""

    one: Flags
    other: Flags

    def __getitem__(self, rows: slice | Rows, /) -> NDArray[np.bool_]:
        return self.one[rows] & ~self.other[rows]


def among(rows: Rows, ordered: Rows) -> NDArray[np.bool_]:
    """Returns the mask of the `rows` that are in `ordered` (sorted), in the shape of `rows`."""
    if not len(ordered):
        return np.zeros(len(rows), np.bool_)
    found: NDArray[np.bool_] = ordered[np.searchsorted(ordered, rows).clip(max=len(ordered) - 1)] == rows
    return found
