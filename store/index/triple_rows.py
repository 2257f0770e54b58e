"""From a triple to its row, without an object for each of millions of triples."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from store.index.append_only_arrays import GrowableArray
from store.index.file_arrays import Room
from store.index.index_delta import TripleKey

FOLD_SHARE = 0.1
FOLD_MIN_KEYS = 20_000
"""Keys in the dict are folded into the arrays once they are more than both."""

_MASK = (1 << 64) - 1
_SUBJECT, _PREDICATE, _OBJECT, _LAST = 0x9E3779B97F4A7C15, 0x165667B19E3779F9, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9
"""Odd numbers without a pattern, by which the parts of a key are multiplied."""


class TripleRows:
    """Most rows are found by the hash of their key, and told by the key that stands in the row; those that came lately are in a
    dict. 12 bytes a key, where a dict alone takes some 190.

    One writer. A reader in another thread sees each change whole. Hashes are the interpreter's: of this process alone.
    """

    def __init__(self, ends: GrowableArray[np.int32], predicates: list[str], room: Room) -> None:
        """`ends` and `predicates` of all rows are looked up here and never changed; the arrays are made in `room`."""
        self._ends = ends
        self._predicates = predicates
        self._room = room
        self._sorted: tuple[NDArray[np.uint64], NDArray[np.int32], frozenset[int]] = (
            np.empty(0, np.uint64),
            np.empty(0, np.int32),
            frozenset(),
        )
        """Hashes in order, the row of each, and which of these rows were removed."""
        self._removed: set[int] = set()
        """All rows that were removed since the last fold began."""
        self._later: dict[TripleKey, int] = {}

    @overload
    def get(self, key: TripleKey) -> int | None: ...

    @overload
    def get(self, key: TripleKey, default: int) -> int: ...

    def get(self, key: TripleKey, default: int | None = None) -> int | None:
        # In this order: `adopt` fills the arrays before it empties the dict.
        later = self._later.get(key)
        if later is not None:
            return later
        hashes, rows, gone = self._sorted
        wanted = np.uint64(_hash(key))
        place = int(np.searchsorted(hashes, wanted))
        while place < len(hashes) and hashes[place] == wanted:
            row = int(rows[place])
            if row not in gone and self._key(row) == key:
                return row
            place += 1
        return default

    def _key(self, row: int) -> TripleKey:
        subject, object_ = self._ends.view()[row].tolist()
        return subject, self._predicates[row], object_

    def __getitem__(self, key: TripleKey) -> int:
        row = self.get(key)
        if row is None:
            raise KeyError(key)
        return row

    def __contains__(self, key: TripleKey) -> bool:
        return self.get(key) is not None

    def __setitem__(self, key: TripleKey, row: int) -> None:
        """Adds a key that is not there."""
        self._later[key] = row

    def discard(self, rows: Sequence[int]) -> None:
        """Removes the keys of `rows`, as far as they still mean these: a triple may have come again with a row of its own."""
        found = {row for row in rows if self.get(self._key(row)) == row}
        later = {row for row in found if self._later.pop(self._key(row), None) is not None}
        hashes, known, gone = self._sorted
        self._sorted = hashes, known, gone | (found - later)
        self._removed |= found

    def values(self) -> list[int]:
        """The row of each key."""
        _, rows, gone = self._sorted
        there = rows[~np.isin(rows, np.fromiter(gone, np.int32, len(gone)))] if gone else rows
        return [*there.tolist(), *self._later.copy().values()]

    def __len__(self) -> int:
        return len(self._sorted[1]) - len(self._sorted[2]) + len(self._later)

    @property
    def due(self) -> bool:
        """Whether it is time to fold the dict into the arrays."""
        return len(self._later) > max(FOLD_MIN_KEYS, FOLD_SHARE * len(self._sorted[1]))

    def begin_fold(self) -> tuple[NDArray[np.int64], int]:
        """The rows of all keys for `folded`, and how many rows there are."""
        self._removed = set()
        return np.array(self.values(), np.int64), len(self._predicates)

    def folded(self, rows: NDArray[np.integer[Any]]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """The arrays of the keys in `rows`, for `adopt`. Touches nothing else, so it may run beside all."""
        ends = self._ends.view()[rows].astype(np.int64).view(np.uint64)
        words = np.fromiter((hash(self._predicates[row]) for row in rows.tolist()), np.int64, len(rows)).view(np.uint64)
        # Unsigned numbers wrap around, as the mask has it for one.
        mixed = ends[:, 0] * np.uint64(_SUBJECT) + words * np.uint64(_PREDICATE) + ends[:, 1] * np.uint64(_OBJECT)
        hashes = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(_LAST)
        order = np.argsort(hashes, kind="stable")
        out = self._room.empty((len(rows),), np.uint64), self._room.empty((len(rows),), np.int32)
        out[0][:], out[1][:] = hashes[order], rows[order]
        return out

    def adopt(self, folded: tuple[NDArray[np.uint64], NDArray[np.int32]], known: int) -> None:
        """Takes over arrays that were begun when there were `known` rows; what changed since stays changed."""
        gone = frozenset(row for row in self._removed if row < known)
        later = {key: row for key, row in self._later.items() if row >= known}
        self._sorted = *folded, gone
        self._later = later

    def fold(self) -> None:
        """Folds the dict at once: for opening."""
        rows, known = self.begin_fold()
        self.adopt(self.folded(rows), known)

    def load(self, rows: NDArray[np.integer[Any]]) -> None:
        """Takes over the keys of `rows`, of which no two are one key: there are no others."""
        self._removed = set()
        self.adopt(self.folded(rows), len(self._predicates))


def _hash(key: TripleKey) -> int:
    """64 bits, without a sign."""
    subject, predicate, object_ = key
    mixed = (subject * _SUBJECT + hash(predicate) * _PREDICATE + object_ * _OBJECT) & _MASK
    return ((mixed ^ (mixed >> 29)) * _LAST) & _MASK
