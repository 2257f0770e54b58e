"""Crowded phrases: phrases with so many other phrases near their vector that cosines do not distinguish them.

Crowded phrases get no synonym edges.

An encoder that does not know a language gives nearly the same vector to thousands of its phrases. All pairs of these phrases
are near. Edges between these phrases would carry no information, and their number would grow quadratically. The number of
phrases near a vector is estimated as in Luo and Shrivastava, "Arrays of (Locality-Sensitive) Count Estimators" (2018). The
signs of a sketch (`lsh`) are divided into 32 cells of 24 bits. For each cell and each value of its bits, the living phrases
with this value are counted. A phrase is crowded while at least four of its cells (an eighth) are full, that is, have a count
above `CELL_PHRASES`.

The counts are sums over the living phrases, and a phrase's sketch depends only on its vector. Which phrases are crowded
therefore depends only on the set of living phrases, not on the order of arrival or on former phrases. Adding or removing a
phrase changes 32 counts. If one of them crosses `CELL_PHRASES`, the phrases with that value in that cell are checked again.

Measured with 384 dimensions: phrases are crowded if they number more than 200 with equal vectors, about 1,200 with pairwise
cosines of 0.95, 4,000 with 0.9, or 15,000 with 0.82. Among 60,000 English phrases, the most crowded one had a count of 8 in its
fourth fullest cell.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.part import Part, PartFiles, PartWriter
from store.index.synonyms.lsh import SIGN_WORDS, Sketches

CELL_PHRASES = 200
"""Count above which a cell is full."""

FULL_CELLS = 4
"""Minimum number of full cells of a crowded phrase. One cell alone may be full by chance in a large memory, because some values
of a cell are more frequent than others."""

CELL_BYTES = 3
CELLS = 8 * SIGN_WORDS // CELL_BYTES
SLOT_BITS = 17
"""The values of a cell are hashed to 2¹⁷ slots, which have a count each: 17 MB for all cells. With a million phrases, eight
phrases share a slot by chance."""

SLOT_MULTIPLIER = np.uint32(0x9E3779B1)
"""Odd: multiplying by it and dropping bits spreads values over slots (Knuth, "Sorting and Searching", section 6.4)."""

SCANNED_ROWS = 1 << 16
"""Number of sketches processed at a time: 8 MB of slots."""

FEW_ROWS = 1_000
"""Up to this number of phrases, most counts stay zero, and their pages take no memory."""

MANY_ROWS = 10_000
"""If more phrases than this are added or removed, an array over all slots is faster than sorting the changed slots."""

Slots = NDArray[np.int32]

_FIRST = np.arange(CELLS, dtype=np.int32) << SLOT_BITS
"""The first slot of each cell."""


def _moves(
    slots: Callable[[NDArray[np.int64]], Slots], came: NDArray[np.int64], went: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the slots whose counts change (ascending) and the changes. `slots` returns the slots of phrase rows."""
    if len(came) + len(went) > MANY_ROWS:
        sums = np.zeros(CELLS << SLOT_BITS, np.int64)
        for rows, sign in ((came, 1), (went, -1)):
            for start in range(0, len(rows), SCANNED_ROWS):
                part = slots(rows[start : start + SCANNED_ROWS]).ravel()
                sums += sign * np.bincount(part, minlength=len(sums))
        touched = np.flatnonzero(sums)
        return touched, sums[touched]
    arriving, leaving = slots(came).ravel(), slots(went).ravel()
    touched, places = np.unique(np.concatenate([arriving, leaving]), return_inverse=True)
    signs = np.repeat(np.array([1, -1]), [len(arriving), len(leaving)])
    changes = np.bincount(places, weights=signs, minlength=len(touched)).astype(np.int64)
    moved = changes != 0
    return touched[moved].astype(np.int64), changes[moved]


def slots_of(sketches: Sketches) -> Slots:
    """Returns the slots of each sketch, one per cell, shape (len(sketches), CELLS). Slot numbers are distinct across cells.
    Reads only the signs of the sketches."""
    return _slots(_octets(sketches), _FIRST)


def _octets(sketches: Sketches) -> NDArray[np.uint8]:
    """Returns the bytes of the cells, shape (len(sketches), CELLS, CELL_BYTES)."""
    return np.ascontiguousarray(sketches[:, :SIGN_WORDS]).view(np.uint8).reshape(len(sketches), CELLS, CELL_BYTES)


def _slots(octets: NDArray[np.uint8], first: NDArray[np.int32] | np.int32) -> Slots:
    """Returns the slots of cells, whose bytes are the last axis of `octets`. `first`: the first slot of the cell."""
    value = np.zeros(octets.shape[:-1], np.uint32)
    for place in range(CELL_BYTES):
        value |= octets[..., place].astype(np.uint32) << np.uint32(8 * place)
    bits = 8 * CELL_BYTES
    spread = (value * SLOT_MULTIPLIER) & np.uint32((1 << bits) - 1)
    slots: Slots = (spread >> np.uint32(bits - SLOT_BITS)).astype(np.int32) + first
    return slots


@dataclass(slots=True)
class CrowdingChange:
    """The changes that a commit makes to the counts. `rows`: for each phrase that changes, whether it becomes crowded (true) or
    ceases to be crowded (false)."""

    slots: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))
    changes: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))
    """The value to add to the count of each of `slots`."""
    rows: dict[int, bool] = field(default_factory=dict)


class Crowding(Part):
    """The counts over all living phrases that can have synonyms (`store.index.synonyms.search.can_have_synonyms`)."""

    def __init__(self) -> None:
        self._counts = np.zeros(CELLS << SLOT_BITS, np.int32)
        """The number of phrases in each slot."""
        self.flags: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Mask of the crowded phrases; rows after its end are not crowded. A change replaces the array."""
        self.n = 0
        """Number of crowded phrases."""

    def copy(self) -> "Crowding":
        """Returns an independent copy. Takes O(slots) time: about 5 ms."""
        other = Crowding()
        other._counts, other.flags, other.n = self._counts.copy(), self.flags, self.n
        return other

    def save(self, files: PartWriter, name: str) -> None:
        files.array(f"{name}-counts", self._counts)
        files.array(f"{name}-flags", self.flags)

    def load(self, files: PartFiles, name: str) -> None:
        self._counts = np.array(files.array(f"{name}-counts"))
        self._set_flags(np.array(files.array(f"{name}-flags")))

    def mask(self, n: int) -> NDArray[np.bool_]:
        """Returns the mask of the crowded phrases among the first `n`, shape (n,)."""
        out = np.zeros(n, np.bool_)
        out[: len(self.flags)] = self.flags[:n]
        return out

    def _set_flags(self, flags: NDArray[np.bool_]) -> None:
        self.flags, self.n = flags, int(np.count_nonzero(flags))

    def count(self, sketches: Sketches, present: NDArray[np.bool_], maybe: NDArray[np.bool_] | None = None) -> None:
        """Counts all phrases anew. `present`: mask of the rows that can have synonyms, shape (len(sketches),). `maybe`: mask of
        the rows that may be crowded, in the same shape; None if unknown."""
        # Allocates a zeroed array instead of clearing the old one, because its pages take no memory until a count is written.
        self._counts = np.zeros(CELLS << SLOT_BITS, np.int32)
        pieces = range(0, len(sketches), SCANNED_ROWS)
        for start in pieces:
            there = np.flatnonzero(present[start : start + SCANNED_ROWS]) + start
            self._count(slots_of(sketches[there]))
        crowded = np.zeros(len(sketches), np.bool_)
        candidates = np.flatnonzero(present if maybe is None else present & maybe)
        for start in range(0, len(candidates), SCANNED_ROWS):
            part = candidates[start : start + SCANNED_ROWS]
            crowded[part] = self._crowded(slots_of(sketches[part]), CrowdingChange())
        self._set_flags(crowded)

    def _count(self, slots: Slots) -> None:
        """Counts phrases; `slots`: their slots, shape (n, CELLS)."""
        if len(slots) < FEW_ROWS:
            np.add.at(self._counts, slots, 1)
            return
        # Counts one cell at a time, so that its counts fit into the processor's cache.
        for cell, first in enumerate(_FIRST.tolist()):
            self._counts[first : first + (1 << SLOT_BITS)] += np.bincount(
                slots[:, cell] - first, minlength=1 << SLOT_BITS
            ).astype(np.int32)

    @property
    def bytes(self) -> int:
        """Upper bound of the memory for the counts in bytes."""
        return self._counts.nbytes

    def _crowded(self, slots: Slots, change: CrowdingChange) -> NDArray[np.bool_]:
        """Returns the mask of the phrases that are crowded after `change`; `slots`: the phrases' slots, shape (n, CELLS)."""
        counts = self._counts[slots]
        if len(change.slots):
            places = np.searchsorted(change.slots, slots).clip(max=len(change.slots) - 1)
            counts = counts + np.where(change.slots[places] == slots, change.changes[places], 0)
        crowded: NDArray[np.bool_] = (counts > CELL_PHRASES).sum(axis=1) >= FULL_CELLS
        return crowded

    def plan(
        self,
        sketches: Sketches,
        extra: Sketches,
        present: NDArray[np.bool_],
        crowded: NDArray[np.bool_],
        came: NDArray[np.int64],
        went: NDArray[np.int64],
    ) -> CrowdingChange:
        """Returns the changes that the added phrases (`came`) and the removed phrases (`went`) cause, without applying them.

        `sketches`: the sketches of the known rows; `extra`: the sketches of the new rows after them. For all these rows,
        `present` says whether they can have synonyms after the change, and `crowded` whether they are crowded before it. `went`
        contains only known rows. Takes O(change) time, plus O(known rows) for each cell with a count that crosses
        `CELL_PHRASES`.
        """
        known = len(sketches)

        def slots(rows: NDArray[np.int64]) -> Slots:
            out = np.empty((len(rows), CELLS), np.int32)
            old = rows < known
            out[old], out[~old] = slots_of(sketches[rows[old]]), slots_of(extra[rows[~old] - known])
            return out

        change = CrowdingChange(*_moves(slots, came, went))
        before = self._counts[change.slots]
        passed = change.slots[(before > CELL_PHRASES) != (before + change.changes > CELL_PHRASES)]
        rows = np.union1d(came, self._inside(sketches, passed, present))
        for start in range(0, len(rows), SCANNED_ROWS):
            part = rows[start : start + SCANNED_ROWS]
            now = self._crowded(slots(part), change)
            moved = now != crowded[part]
            change.rows.update(zip(part[moved].tolist(), now[moved].tolist(), strict=True))
        change.rows.update(dict.fromkeys(went[crowded[went]].tolist(), False))
        return change

    @staticmethod
    def _inside(sketches: Sketches, slots: NDArray[np.int64], present: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Returns the known rows that can have synonyms and that have one of `slots`."""
        found = [np.empty(0, np.int64)]
        for cell in np.unique(slots >> SLOT_BITS).tolist():
            wanted = slots[slots >> SLOT_BITS == cell]
            for start in range(0, len(sketches), SCANNED_ROWS):
                octets = _octets(sketches[start : start + SCANNED_ROWS])[:, cell]
                here = np.isin(_slots(octets, _FIRST[cell]), wanted)
                here &= present[start : start + len(here)]
                found.append(np.flatnonzero(here) + start)
        return np.unique(np.concatenate(found))

    def apply(self, change: CrowdingChange) -> None:
        """Applies a planned change."""
        self._counts[change.slots] += change.changes.astype(np.int32)
        if change.rows:
            flags = np.zeros(max(len(self.flags), max(change.rows) + 1), np.bool_)
            flags[: len(self.flags)] = self.flags
            flags[list(change.rows)] = list(change.rows.values())
            self._set_flags(flags)
