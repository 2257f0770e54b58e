"""Map from a triple to its row."""

from collections.abc import Sequence

import numpy as np

from store.index.append_only_arrays import GrowableArray
from store.index.columns.hashed_rows import HashedRows, text_hash
from store.index.file_arrays import ArrayStorage
from store.index.index_delta import TripleKey

_MASK = (1 << 64) - 1
_SUBJECT, _PREDICATE, _OBJECT, _LAST = 0x9E3779B97F4A7C15, 0x165667B19E3779F9, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9
"""Random odd multipliers for the parts of a key."""


class TripleRows(HashedRows[TripleKey]):
    """Rows of triples by predicate and the rows of their ends."""

    def __init__(self, ends: GrowableArray[np.int32], predicates: Sequence[str], storage: ArrayStorage) -> None:
        """`ends` and `predicates` hold all rows; this map reads them and never changes them."""
        super().__init__(storage)
        self._ends = ends
        self._predicates = predicates

    def key(self, row: int) -> TripleKey:
        subject, object_ = self._ends.view()[row].tolist()
        return subject, self._predicates[row], object_

    def hash(self, key: TripleKey) -> int:
        return _hash(key)


def _hash(key: TripleKey) -> int:
    subject, predicate, object_ = key
    mixed = (subject * _SUBJECT + text_hash(predicate) * _PREDICATE + object_ * _OBJECT) & _MASK
    return ((mixed ^ (mixed >> 29)) * _LAST) & _MASK
