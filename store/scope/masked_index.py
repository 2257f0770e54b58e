"""The index of a scope that excludes few documents: it shares the rows of the whole memory; excluded rows are dead.

Texts, vectors, sketches and postings belong to the whole memory, so such a scope takes little memory. Counts and edges are
derived from its documents as at a start. Synonym edges change as if a commit removed the documents outside.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from store.change.synonym_change import synonym_edges
from store.change.synonym_search import searcher
from store.index.columns.hashed_rows import HashedRows
from store.index.columns.row_lists import NO_ROWS
from store.index.index_delta import TripleKey
from store.index.live_index import LiveIndex
from store.index.load import connect
from store.index.synonyms.edge_maintenance import plan_edges
from store.index.synonyms.lsh import WORDS
from store.index.synonyms.sketch_index import Order, SketchIndex
from store.scope.frozen_index import FrozenIndex
from store.scope.passage_statements import effective_rows
from store.scope.scoped_names import take_names
from store.scope.scoped_rows import LookupDict
from store.types import Document, SynonymRule


class SharedRows(LookupDict):
    """The first `n` rows of texts in the whole memory. The dictionary itself stays empty."""

    def __init__(self, whole: Mapping[Any, int] | HashedRows[Any], n: int) -> None:
        super().__init__()
        self._whole: Any = whole
        self.n = n

    def get(self, key: str | TripleKey, default: Any = None) -> Any:
        row = self._whole.get(key)
        return row if row is not None and row < self.n else default


class SharedSketches(SketchIndex):
    """The present sketches of the whole memory, searched through its bands as sorted at the time of a search."""

    def __init__(self, whole: SketchIndex) -> None:
        super().__init__(whole.threshold)
        self._whole = whole
        self._share(whole)

    def order(self) -> Order:
        there = self._whole.order()
        return there if there.n <= self.n else Order(there.runs, self.n, np.arange(self.n, dtype=np.int32))

    @property
    def due(self) -> bool:
        """Always false: only the whole memory sorts its sketches."""
        return False


class MaskedIndex(LiveIndex):
    """An index that shares the present rows of `whole`; no row is alive yet.

    The caller prevents commits from being applied.
    """

    def __init__(self, whole: LiveIndex) -> None:
        super().__init__(whole.dim, rule=whole.rule)
        self.crowding = whole.crowding.copy()
        self.passage_rows = SharedRows(whole.passage_rows, 0)
        self.phrase_rows = SharedRows(whole.phrase_rows, 0)
        self.triple_rows = SharedRows(whole.triple_rows, 0)
        self.grow(whole)

    def grow(self, whole: LiveIndex) -> None:
        """Adds the new rows of `whole`, as dead rows. The caller prevents commits from being applied."""
        new = len(whole.passages) - len(self.holders)
        self.passages = whole.passages.frozen()
        self.phrases, self.predicates = whole.phrases.frozen(), whole.predicates.frozen()
        for rows, n in (
            (self.passage_rows, len(self.passages)),
            (self.phrase_rows, len(self.phrases)),
            (self.triple_rows, len(self.predicates)),
        ):
            if isinstance(rows, SharedRows):
                rows.n = n
        self.ids = {name: ids.frozen() for name, ids in whole.ids.items()}
        self.next_id = dict(whole.next_id)
        for name in ("passage_vectors", "phrase_vectors", "triple_vectors"):
            setattr(self, name, getattr(whole, name).frozen())
        for name in ("triple_ends", "statements", "linkable"):
            setattr(self, name, getattr(whole, name).frozen())
        self.sketches = SharedSketches(whole.sketches)
        self.postings = whole.postings
        self.holders.extend({} for _ in range(new))
        self.extracted.extend([None] * new)
        self.effective.extend([NO_ROWS] * new)
        self.crowding.rows.grow(len(self.phrases))
        self.passage_counts.grow(len(self.passages))
        self.phrase_counts.grow(len(self.phrases))
        self.counts_loaded()
        self.triple_counts.grow(len(self.predicates))

    @property
    def own_bytes(self) -> int:
        """Estimates the bytes that the index takes in addition to the whole memory."""
        rows = 60 * len(self.passages) + 40 * len(self.phrases) + 20 * len(self.predicates)
        return self.crowding.bytes + rows


def fill_masked_index(
    index: MaskedIndex, whole: FrozenIndex, documents: dict[str, Document], rule: SynonymRule
) -> None:
    """Fills `index`, made from `whole`, with `documents` (by URI), which are nearly all documents of `whole`.

    Raises KeyError if a concurrent purge removed a text: `whole` is then too old.
    """
    index.documents = documents
    index.holders, index.effective = whole.holders.copy(), whole.effective.copy()
    index.extracted, index.extraction_states = whole.extracted.copy(), dict(whole.extraction_states)
    outside = {uri: document for uri, document in whole.documents.items() if uri not in documents}
    changed = whole.holders.held_by(outside)[0]
    for row in changed.tolist():
        kept = {uri: triples for uri, triples in whole.holders[row].items() if uri in documents}
        index.holders[row] = kept
        index.effective[row] = effective_rows(whole, kept, whole.extracted[row]) if kept else NO_ROWS
    connect(index)
    own = np.arange(whole.snapshot.n_passages, dtype=np.int32)
    own[changed] = -1
    take_names(index, whole, documents, own, changed.tolist())
    _change_synonyms(index, whole, rule)


def _change_synonyms(index: MaskedIndex, whole: FrozenIndex, rule: SynonymRule) -> None:
    """Changes the synonym edges of the whole memory to those of the scope."""
    known = index.linkable.view() & index.phrase_vectors.view().known
    before, crowded = known & whole.snapshot.phrase_alive, whole.snapshot.phrase_crowded.copy()
    could = before & ~crowded
    present = index.synonym_candidates()
    came, went = np.flatnonzero(present & ~before), np.flatnonzero(before & ~present)
    nothing = np.empty((0, WORDS), np.uint64)
    index.crowding.apply(index.crowding.plan(index.sketches.signs(), nothing, present, crowded, came, went))
    can = present & ~index.crowding.rows.view().positive()[: len(present)]
    index.synonym.swap_in(whole.snapshot.synonym.merged(), 0)
    index.change_synonyms(
        plan_edges(
            np.flatnonzero(could & ~can),
            np.flatnonzero(can & ~could),
            len(index.phrases),
            lambda rows: synonym_edges(index, rows),
            searcher(index, can, rule),
        )
    )
    changed = index.synonym.view(index.shape("synonym"))
    index.synonym.swap_in(changed.merged(), changed.log_length)
