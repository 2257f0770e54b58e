"""Builds a scope's index from the index of the whole memory; it equals an index loaded from the scope's documents alone.

Texts, vectors, sketches and postings are shared with the whole memory. Counts and edges are derived from the documents, as when
a store is opened. Synonym edges need more work. An edge of the whole memory exists in the scope unless one of its ends is
crowded in the scope. The scope can have additional edges if one of the ends is crowded or dead in the whole memory. (A phrase
is dead there if another document supplied triples that replaced the extracted ones.) Therefore edges between phrases to which
none of these cases applies are copied, and the edges of other phrases are searched as if the phrases were new.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from store.change.synonym_change import edge_change
from store.index.append_only_arrays import GrowableArray
from store.index.columns.hashed_rows import TripleKey
from store.index.columns.row_lists import NO_ROWS, ListArrays, RowLists
from store.index.columns.texts import SelectedTexts
from store.index.effective_triples import SuppliedTriples, supplied_triples
from store.index.live_index import LiveIndex
from store.index.shared_rows import BorrowedRows
from store.index.synonyms.lsh import PREFIX_WORDS, WORDS
from store.index.synonyms.sketch_index import Order, SketchIndex, Tail
from store.index.triple_change import triple_change
from store.index.vectors.matrix import Vectors
from store.index.words.postings import SelectedPostings
from store.links.names import names_text
from store.rows import Rows32, Rows64
from store.types import Document

SORTED_FOR_SHARE = 0.05
"""Share of searched phrases above which sorting the sketches first is faster."""


def scoped_index(whole: LiveIndex, documents: dict[str, Document], held: tuple[Rows64, Rows64]) -> LiveIndex:
    """Returns the index of `documents` (by URI), a subset of the documents of `whole`. Takes O(scope) time, plus arrays as long
    as `whole`.

    `whole` must not change during the call, except that a purge may remove a text; this then raises KeyError. `held`: the
    result of `Holders.held_by` for the documents, (rows of their passages, rows of those passages that other documents also
    contain).
    """
    index = LiveIndex(whole.dim, rule=whole.rule)
    index.purged_rows = whole.purged_rows
    passages, shared = held
    index.documents.update(documents)
    index.holders = whole.holders.select(passages, SelectedTexts(whole.passages.ids, passages))
    apart = np.searchsorted(passages, shared).tolist()
    for place in apart:
        holders = index.holders[place]
        index.holders[place] = {uri: triples for uri, triples in holders.items() if uri in documents}
    extracted: RowLists[NDArray[np.int32] | None] = RowLists(whole.extracted.arrays().select(passages), None)
    stated = {place: _effective_rows(whole, index.holders[place], extracted[place]) for place in apart}
    effective = whole.triples_of(passages).replaced(stated, len(passages))
    triples, places = _distinct_rows([effective.rows, extracted.arrays().rows], whole.size("triples"))
    ends = whole.triple_ends.view()[triples]
    phrases, phrase_places = _distinct_rows([ends[:, 0], ends[:, 1]], whole.size("phrases"))
    _fill_passages(index, whole, passages)
    _fill_phrases(index, whole, phrases, phrase_places)
    _fill_triples(index, whole, triples, places, phrases, phrase_places[ends])
    index.extracted = RowLists(extracted.arrays().renumbered(places), None)
    index.grow()
    derive_counts(index, effective.renumbered(places))
    own = np.full(len(whole.passages), -1, np.int32)
    own[passages] = np.arange(len(passages), dtype=np.int32)
    own[shared] = -1
    _fill_names(index, whole, documents, own, apart)
    crowded = whole.crowding.mask(whole.size("phrases"))[phrases]
    known = whole.counts["phrases"].view().positive()[phrases] & ~crowded
    # A phrase that is living in the whole memory has at least as many neighbours there as in the scope.
    index.count_crowds(~known)
    can = index.synonym_candidates() & ~index.crowding.mask(len(phrases))
    _copy_synonyms(index, whole, phrases, can & known)
    _add_synonyms(index, can, np.flatnonzero(can & ~known))
    return index


def derive_counts(index: LiveIndex, lists: ListArrays) -> None:
    """Derives all counts and edges, except synonym edges and names, from the passages' documents and triples."""
    nothing = ListArrays(np.zeros(lists.n + 1, np.int64), NO_ROWS, np.zeros(lists.n, np.bool_))
    ends, statements = index.triple_ends.view(), index.statements.view()
    change = triple_change(np.arange(lists.n), nothing, lists, ends.__getitem__, statements.__getitem__)
    for name, entries in change.edges.items():
        index.matrices[name].set(*entries)
    index.counts["passages"].set(index.holders.sizes())
    index.counts["phrases"].change(*change.phrases)
    index.counts["triples"].change(*change.triples)
    index.recount()


def _effective_rows(whole: LiveIndex, holders: Mapping[str, SuppliedTriples], extracted: Rows32 | None) -> Rows32:
    """Returns the rows in `whole` of a passage's triples if only the documents `holders` contain the passage."""
    if (supplied := supplied_triples(holders)) is not None:
        rows = [row for triple in supplied if (row := whole.triple_row(triple)) is not None]
        if len(rows) < len(supplied):
            raise KeyError("a purge removed a triple")
        return np.array(sorted(rows), np.int32)
    return extracted if extracted is not None else NO_ROWS


def _distinct_rows(parts: Sequence[Rows32], n: int) -> tuple[Rows64, Rows32]:
    """Returns the distinct rows in `parts`, ascending, and for each of `n` rows its position among them, or -1."""
    there = np.zeros(n, np.bool_)
    there[np.concatenate(parts)] = True
    rows = np.flatnonzero(there)
    places = np.full(n, -1, np.int32)
    places[rows] = np.arange(len(rows), dtype=np.int32)
    return rows, places


def _fill_passages(index: LiveIndex, whole: LiveIndex, rows: Rows64) -> None:
    index.ids["passages"].extend(whole.ids["passages"].view()[rows])
    index.passages = whole.passages.select(rows)
    index.passage_rows = {id: place for place, id in enumerate(index.passages.ids)}
    states = whole.extraction_states
    index.extraction_states.update((place, states[row]) for place, row in enumerate(rows.tolist()) if row in states)
    index.postings = SelectedPostings(whole.postings, rows, len(whole.passages))
    index.passage_vectors.fill_from(whole.passage_vectors.view(), rows)


def _fill_phrases(index: LiveIndex, whole: LiveIndex, rows: Rows64, places: Rows32) -> None:
    index.ids["phrases"].extend(whole.ids["phrases"].view()[rows])
    index.phrases = SelectedTexts(whole.phrases, rows)
    index.phrase_rows = BorrowedRows(whole.phrase_rows, places)
    index.can_have_synonyms.extend(whole.can_have_synonyms.view()[rows])
    index.phrase_vectors.fill_from(whole.phrase_vectors.view(), rows)
    index.sketches = ScopedSketches(whole.sketches, index.phrase_vectors, rows, places)


def _fill_triples(
    index: LiveIndex, whole: LiveIndex, rows: Rows64, places: Rows32, phrases: Rows64, ends: NDArray[np.int32]
) -> None:
    index.ids["triples"].extend(whole.ids["triples"].view()[rows])
    index.triple_ends.extend(ends)
    index.statements.extend(whole.statements.view()[rows])
    index.predicates = SelectedTexts(whole.predicates, rows)

    def key_in_whole(key: TripleKey) -> TripleKey | None:
        subject, predicate, object_ = key
        if max(subject, object_) >= len(phrases):
            return None  # a phrase that was added later is in no earlier triple
        return int(phrases[subject]), predicate, int(phrases[object_])

    index.triple_rows = BorrowedRows(whole.triple_rows, places, key_in_whole)
    index.triple_vectors.fill_from(whole.triple_vectors.view(), rows)


def _copy_synonyms(index: LiveIndex, whole: LiveIndex, phrases: Rows64, known: NDArray[np.bool_]) -> None:
    """Copies the synonym edges between the `phrases` in the mask `known`, which are the same in the scope and in the whole
    memory."""
    a, b, weights = whole.matrices["synonym"].view().entries(phrases)
    place = np.full(whole.size("phrases"), -1, np.int32)
    place[phrases[known]] = np.flatnonzero(known)
    taken = (place[a] >= 0) & (place[b] >= 0)
    index.matrices["synonym"].set(place[a[taken]], place[b[taken]], weights[taken])


def _add_synonyms(index: LiveIndex, can: NDArray[np.bool_], searched: Rows64) -> None:
    """Adds synonym edges of the phrases `searched`, which have none yet. `can`: mask of the phrases that can have synonyms."""
    if not len(searched):
        return
    if index.sketches.due or len(searched) > SORTED_FOR_SHARE * len(can):
        index.sketches.fold()
    index.change_synonyms(edge_change(index, can, np.empty(0, np.int64), searched))


def _fill_names(
    index: LiveIndex,
    whole: LiveIndex,
    documents: Mapping[str, Document],
    places: NDArray[np.int32],
    shared: Iterable[int],
) -> None:
    """Fills the names of `index`, which must already contain its documents' passages. Copies the names of passages that only
    the scope's documents contain, and computes the names of passages that other documents also contain.

    `places`: for each passage row of `whole`, the row in the scope if only `documents` contain the passage, or -1. `shared`:
    the scope's rows of passages that other documents also contain.
    """
    there = whole.matrices["naming"].view().merged().tocoo()
    columns = places[there.col]
    inside = columns >= 0
    rows, names = np.unique(there.row[inside], return_inverse=True)
    index.names.fill_from(whole.names, rows, there.shape[0])
    index.change_names((names, columns[inside], there.data[inside]))
    index.matrices["naming"].fold()
    named: list[tuple[int, int]] = []
    found: dict[str, int] = {}
    for place in shared:
        for uri in index.holders[place]:
            if uri not in found:
                found[uri] = _row_of_names(index, names_text(documents[uri]))
            if found[uri] >= 0:
                named.append((found[uri], place))
    rows, passages = np.array(named, np.int64).reshape(-1, 2).T
    index.change_names((rows, passages, np.ones(len(rows))))


def _row_of_names(index: LiveIndex, text: str) -> int:
    """Returns the row of some names, adding a row if necessary; -1 if `text` is empty."""
    if text and text not in index.names.rows:
        index.names.add([text])
    return index.names.rows[text] if text else -1


class ScopedSketches(SketchIndex):
    """The sketches of a scope's phrases. Searches use the present bands of the whole memory, because sorting the scope's own
    sketches would be slow. Sketches of phrases added later are compared one by one."""

    def __init__(self, whole: SketchIndex, vectors: Vectors, rows: Rows64, places: Rows32) -> None:
        """Copies the sketches of `rows` (ascending) from `whole`. `places`: for each row of the whole memory, the row in the
        scope, or -1."""
        super().__init__(whole.threshold, vectors)
        self._whole, self._rows, self._places = whole, rows, places
        signs, sorted_rows = whole.signs()[rows], int(np.searchsorted(rows, whole.tail.first))
        self._signs.extend(signs)
        self._prefixes.extend(signs[:, :PREFIX_WORDS])
        self.tail = Tail(sorted_rows, GrowableArray(np.uint64, WORDS))
        self.tail.rows.extend(whole.tail.rows.view()[rows[sorted_rows:] - whole.tail.first])

    def order(self) -> Order:
        if self.runs:
            return super().order()
        there = self._whole.order()
        return Order(there.runs, int(np.searchsorted(self._rows, there.n)), self._places)
