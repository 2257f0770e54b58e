"""Maps from keys to rows that do not need a Python object for each of millions of keys.

Hashes are the same in every process and on every machine, so a checkpoint stores the sorted hashes and a start maps them.
"""

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from copy import copy
from hashlib import blake2b
from typing import Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from store.index.append_only_arrays import GrowableArray
from store.index.file_arrays import ArrayStorage
from store.index.part import Foldable, PartFiles, PartWriter

FOLD_SHARE = 0.1
FOLD_MIN_KEYS = 20_000
"""The dictionary is merged into the arrays once it has more than FOLD_MIN_KEYS keys and more than FOLD_SHARE of the arrays'
keys."""

Key = TypeVar("Key", bound=Hashable)

TripleKey = tuple[int, str, int]
"""(phrase row of the subject, predicate, phrase row of the object)."""

_MASK = (1 << 64) - 1
_SUBJECT, _PREDICATE, _OBJECT, _LAST = 0x9E3779B97F4A7C15, 0x165667B19E3779F9, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9
"""Random odd multipliers for the parts of a key."""

SortedHashes = tuple[NDArray[np.uint64], NDArray[np.int32]]
"""Hashes in ascending order, and the row of each hash."""


def save_hashes(files: PartWriter, name: str, hashes: SortedHashes) -> None:
    files.array(f"{name}-hashes", hashes[0])
    files.array(f"{name}-hashed", hashes[1])


def map_hashes(files: PartFiles, name: str) -> SortedHashes:
    return files.array(f"{name}-hashes"), files.array(f"{name}-hashed")


def text_hash(text: str) -> int:
    """Returns an unsigned 64-bit hash of a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class HashedRows(Foldable, Generic[Key]):
    """A map from keys to rows: sorted arrays of hashes contain most keys, a dictionary contains the recent ones.

    A key is located by its hash and then compared with the key stored in the row. The arrays need 12 bytes per key, a
    dictionary about 190. Only one thread may write. A reader in another thread sees each change completely or not at all.
    """

    def __init__(self, storage: ArrayStorage) -> None:
        """`storage`: allocates the arrays."""
        self._storage = storage
        self._set((np.empty(0, np.uint64), np.empty(0, np.int32)), frozenset())
        self._removed: set[int] = set()
        """Removed rows that the base of an earlier copy may still contain."""
        self._later: dict[Key, int] = {}

    def _set(self, hashes: SortedHashes, gone: frozenset[int]) -> None:
        # Searching a memory view is several times as fast as searching an array.
        self._sorted = hashes[0].data, hashes[1].data, gone, hashes

    @abstractmethod
    def key(self, row: int) -> Key:
        """Returns the key stored in a row."""

    @abstractmethod
    def hash(self, key: Key) -> int:
        """Returns an unsigned 64-bit hash of a key."""

    @overload
    def get(self, key: Key) -> int | None: ...

    @overload
    def get(self, key: Key, default: int) -> int: ...

    def get(self, key: Key, default: int | None = None) -> int | None:
        # The dictionary is searched first, because `swap_in_fold` fills the arrays before it empties the dictionary.
        later = self._later.get(key)
        if later is not None:
            return later
        hashes, rows, gone, _ = self._sorted
        if not len(hashes):
            return default
        wanted = self.hash(key)
        place = bisect_left(hashes, wanted)
        while place < len(hashes) and hashes[place] == wanted:
            row = rows[place]
            if row not in gone and self.key(row) == key:
                return row
            place += 1
        return default

    def __getitem__(self, key: Key) -> int:
        row = self.get(key)
        if row is None:
            raise KeyError(key)
        return row

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    def __setitem__(self, key: Key, row: int) -> None:
        """Adds a new key."""
        self._later[key] = row

    def discard(self, rows: Sequence[int]) -> None:
        """Removes the keys of `rows` from the map. Keeps a key that was added again under another row."""
        found = {row for row in rows if self.get(self.key(row)) == row}
        later = {row for row in found if self._later.pop(self.key(row), None) is not None}
        *_, gone, arrays = self._sorted
        self._removed |= found
        if found - later:
            self._set(arrays, gone | (found - later))

    def values(self) -> list[int]:
        """Returns the row of each key."""
        *_, gone, (_, rows) = self._sorted
        there = rows[~np.isin(rows, np.fromiter(gone, np.int32, len(gone)))] if gone else rows
        return [*there.tolist(), *self._later.copy().values()]

    def __len__(self) -> int:
        hashes, _, gone, _ = self._sorted
        return len(hashes) - len(gone) + len(self._later)

    @property
    def due(self) -> bool:
        return len(self._later) > max(FOLD_MIN_KEYS, FOLD_SHARE * len(self._sorted[0]))

    @property
    def arrays(self) -> SortedHashes:
        """Returns the base: hashes and rows, including removed rows."""
        return self._sorted[3]

    def copy(self) -> Self:
        other = copy(self)
        other._later, other._removed = self._later.copy(), self._removed.copy()
        return other

    def fold(self) -> None:
        *_, gone, (hashes, rows) = self._sorted
        if gone:
            there = ~np.isin(rows, np.fromiter(gone, np.int32, len(gone)))
            hashes, rows = hashes[there], rows[there]
        added = np.fromiter(map(self.hash, self._later), np.uint64, len(self._later))
        numbers = np.fromiter(self._later.values(), np.int32, len(self._later))
        order = np.argsort(added, kind="stable")
        added, numbers = added[order], numbers[order]
        # The hashes of the base and the new hashes are sorted, so the entries can be placed in one pass.
        places = np.searchsorted(hashes, added, "right") + np.arange(len(added))
        total = len(hashes) + len(added)
        out = self._storage.empty((total,), np.uint64), self._storage.empty((total,), np.int32)
        old = np.ones(total, np.bool_)
        old[places] = False
        for whole, before, new in ((out[0], hashes, added), (out[1], rows, numbers)):
            whole[old], whole[places] = before, new
        self._set(out, frozenset())
        self._later = {}

    def swap_in_fold(self, folded: Self) -> None:
        # Row numbers ascend in the order of addition.
        known = int(folded.arrays[1].max(initial=-1))
        later = {key: row for key, row in self._later.items() if row > known}
        self._removed -= folded._removed
        self._set(folded.arrays, frozenset(row for row in self._removed if row <= known))
        self._later = later

    def remove_rows(self, rows: NDArray[np.bool_]) -> list[int]:
        """Removes the keys of the rows in the mask `rows` from the base; returns the removed rows."""
        *_, gone, hashes = self._sorted
        removed: list[int] = hashes[1][rows[hashes[1]]].tolist()
        self._set(hashes, gone.union(removed))
        return removed

    def load(self, hashes: SortedHashes) -> None:
        """Sets a saved base. The present base must be empty or have the same keys."""
        self._set(hashes, frozenset())


class TextRows(HashedRows[str]):
    """A map from texts to rows."""

    def __init__(self, texts: Sequence[str], storage: ArrayStorage) -> None:
        """`texts`: the text of each row. The map reads the texts and never changes them."""
        super().__init__(storage)
        self._texts = texts

    def copy_for(self, texts: Sequence[str]) -> "TextRows":
        """Returns a copy that reads texts from `texts`, which must begin with the present texts and may be longer."""
        other = self.copy()
        other._texts = texts
        return other

    def key(self, row: int) -> str:
        return self._texts[row]

    def hash(self, key: str) -> int:
        return text_hash(key)


class TripleRows(HashedRows[TripleKey]):
    """A map to the rows of triples, keyed by predicate and phrase rows."""

    def __init__(self, ends: GrowableArray[np.int32], predicates: Sequence[str], storage: ArrayStorage) -> None:
        """`ends`: the phrase rows of each triple; `predicates`: the predicate of each triple. The map never changes them."""
        super().__init__(storage)
        self._ends = ends
        self._predicates = predicates

    def key(self, row: int) -> TripleKey:
        subject, object_ = self._ends.view()[row].tolist()
        return subject, self._predicates[row], object_

    def hash(self, key: TripleKey) -> int:
        subject, predicate, object_ = key
        mixed = (subject * _SUBJECT + text_hash(predicate) * _PREDICATE + object_ * _OBJECT) & _MASK
        return ((mixed ^ (mixed >> 29)) * _LAST) & _MASK
