"""Flags by row of which a commit changes a few: what a commit costs does not grow with the rows that there are."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from store.index.synonyms.pairs import Rows


class Flags(Protocol):
    """Flags by row: an array, or what gives those of some rows and of a slice of them."""

    def __getitem__(self, rows: Any, /) -> NDArray[np.bool_]: ...


@dataclass(frozen=True, slots=True)
class ChangedFlags:
    """`before` but for `rows`, which are in order, each once, and have `values`; false for other rows behind its end."""

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
    """`flags`, and false behind their end."""
    return ChangedFlags(flags, np.empty(0, np.int64), np.empty(0, np.bool_))


@dataclass(frozen=True, slots=True)
class OneWithoutOther:
    """Flags of rows that have the one and lack the other."""

    one: Flags
    other: Flags

    def __getitem__(self, rows: slice | Rows, /) -> NDArray[np.bool_]:
        return self.one[rows] & ~self.other[rows]


def among(rows: Rows, ordered: Rows) -> NDArray[np.bool_]:
    """Which of `rows` are among `ordered`, shape of `rows`."""
    if not len(ordered):
        return np.zeros(len(rows), np.bool_)
    found: NDArray[np.bool_] = ordered[np.searchsorted(ordered, rows).clip(max=len(ordered) - 1)] == rows
    return found
