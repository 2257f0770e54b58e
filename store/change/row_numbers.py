"""Row numbers for the phrases and triples of a batch: existing rows, and the next rows for new ones."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.index_delta import TripleKey
from store.index.live_index import LiveIndex
from store.types import MENTION, Triple


@dataclass(slots=True)
class RowNumbers:
    """Row numbers for the phrases and triples of a batch. New rows follow the existing ones, so the caller prevents commits."""

    index: LiveIndex
    phrases: dict[str, int] = field(default_factory=dict)
    triples: dict[TripleKey, int] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)
    """The row of every phrase so far: most triples of a passage share a phrase."""

    def phrase(self, text: str) -> int:
        row = self._seen.get(text)
        if row is None:
            row = self.index.phrase_rows.get(text)
            if row is None:
                row = self.phrases[text] = len(self.index.phrases) + len(self.phrases)
            self._seen[text] = row
        return row

    def triple(self, triple: Triple) -> int:
        key = (self.phrase(triple[0]), triple[1], self.phrase(triple[2]))
        row = self.index.triple_rows.get(key)
        if row is None:
            row = self.triples.setdefault(key, len(self.index.predicates) + len(self.triples))
        return row

    def ends(self, triples: NDArray[Any]) -> NDArray[np.int64]:
        """Returns the subject's and the object's phrase row of each of `triples` (rows), shape (len(triples), 2)."""
        new = np.array([(key[0], key[2]) for key in self.triples], np.int64).reshape(-1, 2)
        return self._look_up(self.index.triple_ends.view(), new, triples)

    def are_statements(self, triples: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns which of `triples` (rows) are statements rather than mention edges."""
        new = np.array([key[1] != MENTION for key in self.triples], np.bool_)
        return self._look_up(self.index.statements.view(), new, triples)

    @staticmethod
    def _look_up(known: NDArray[Any], new: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
        out = np.empty((len(rows), *new.shape[1:]), new.dtype)
        old = rows < len(known)
        out[old], out[~old] = known[rows[old]], new[rows[~old] - len(known)]
        return out

    def rows(self, triples: Iterable[Triple]) -> NDArray[np.int32]:
        return np.array(sorted({self.triple(triple) for triple in sorted(triples)}), np.int32)
