"""Row numbers for the phrases and triples of a batch: existing rows, and the next rows for new ones."""

from collections.abc import Iterable
from dataclasses import dataclass, field

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
    _new_keys: dict[int, TripleKey] = field(default_factory=dict)
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
            self._new_keys[row] = key
        return row

    def ends(self, triple: int) -> tuple[int, int]:
        """Returns the subject's and the object's phrase row of a triple."""
        if (key := self._new_keys.get(triple)) is not None:
            return key[0], key[2]
        subject, object_ = self.index.triple_ends.view()[triple]
        return int(subject), int(object_)

    def is_statement(self, triple: int) -> bool:
        """Whether the triple in a row is a statement rather than a mention edge."""
        if (key := self._new_keys.get(triple)) is not None:
            return key[1] != MENTION
        return bool(self.index.statements.view()[triple])

    def rows(self, triples: Iterable[Triple]) -> NDArray[np.int32]:
        return np.array(sorted({self.triple(triple) for triple in sorted(triples)}), np.int32)
