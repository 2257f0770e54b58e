"""Builds the index of a scope from the index of the whole memory; it equals an index loaded with the scope's documents alone.

Texts, vectors, sketches and postings are shared. Counts and edges are derived from the documents as at a start. Synonym edges
are more complicated. An edge of the whole memory exists in the scope unless one of its ends is crowded in the scope. The scope
can have additional edges in three cases: `cap` removed the edge in the whole memory, one of its ends is crowded there, or one
of its ends is dead there (triples that another document supplied replaced the extracted ones). Edges are therefore copied
between phrases without any of these cases, and the other phrases are searched as if they were new.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.change.synonym_change import synonym_edges
from store.change.synonym_search import searcher
from store.index.columns.passages import Passages
from store.index.columns.row_lists import RowLists
from store.index.columns.texts import TakenTexts
from store.index.live_index import LiveIndex
from store.index.load import connect
from store.index.synonyms.edge_maintenance import plan_edges
from store.index.synonyms.pairs import Rows
from store.scope.frozen_index import FrozenIndex
from store.scope.passage_statements import effective_rows
from store.scope.scoped_names import take_names
from store.scope.scoped_postings import ScopedPostings
from store.scope.scoped_rows import ScopedRows, ScopedTripleRows
from store.scope.scoped_sketches import ScopedSketches
from store.types import Document, SynonymRule

SORTED_FOR_SHARE = 0.05
"""Share of searched phrases above which sorting the sketches pays."""

Rows32 = NDArray[np.int32]


def scoped_index(
    whole: FrozenIndex, documents: dict[str, Document], held: tuple[Rows, Rows], rule: SynonymRule
) -> LiveIndex:
    """Returns the index of `documents` (by URI), a subset of those of `whole`. O(the scope), plus arrays as long as `whole`.

    `held`: the result of `Holders.held_by` for the documents: rows of their passages, and rows of those passages that other
    documents contain too. Raises KeyError if a concurrent purge removed a text: `whole` is then too old.
    """
    index = LiveIndex(whole.snapshot.dim, rule=rule)
    passages, shared = held
    index.documents = documents
    index.holders = whole.holders.take(passages, TakenTexts(whole.index.passages.ids, passages))
    apart = np.searchsorted(passages, shared).tolist()
    for place in apart:
        holders = index.holders[place]
        index.holders[place] = {uri: triples for uri, triples in holders.items() if uri in documents}
    extracted: RowLists[NDArray[np.int32] | None] = RowLists(whole.extracted.arrays().take(passages))
    stated = {place: effective_rows(whole, index.holders[place], extracted[place]) for place in apart}
    effective = whole.effective.arrays().take(passages).replaced(stated, len(passages))
    triples, places = _marked([effective.rows, extracted.arrays().rows], whole)
    ends = whole.snapshot.triple_ends[triples]
    phrases, phrase_places = _marked([ends[:, 0], ends[:, 1]], whole, whole.snapshot.n_phrases)
    _take_passages(index, whole, passages)
    _take_phrases(index, whole, phrases, phrase_places)
    _take_triples(index, whole, triples, places, phrases, phrase_places[ends])
    index.effective = RowLists(effective.renumbered(places))
    index.extracted = RowLists(extracted.arrays().renumbered(places))
    connect(index)
    own = np.full(whole.snapshot.n_passages, -1, np.int32)
    own[passages] = np.arange(len(passages), dtype=np.int32)
    own[shared] = -1
    take_names(index, whole, documents, own, apart)
    # A phrase that lives in the whole memory has at least as many neighbours there as in the scope.
    index.count_crowds(whole.snapshot.phrase_crowded[phrases] | ~whole.snapshot.phrase_alive[phrases])
    can = index.synonym_candidates() & (index.crowding.rows.view().array()[: len(phrases)] == 0)
    searched = _take_synonyms(index, whole, phrases, can)
    _add_synonyms(index, can, searched, rule)
    return index


def _marked(parts: Sequence[NDArray[np.int32]], whole: FrozenIndex, n: int | None = None) -> tuple[Rows, Rows32]:
    """Returns the rows in `parts`, ascending, and the position of each of `n` rows (by default all triples) among them, or
    -1."""
    there = np.zeros(whole.snapshot.n_triples if n is None else n, np.bool_)
    if parts:
        there[np.concatenate(parts)] = True
    rows = np.flatnonzero(there)
    places = np.full(len(there), -1, np.int32)
    places[rows] = np.arange(len(rows), dtype=np.int32)
    return rows, places


def _take_passages(index: LiveIndex, whole: FrozenIndex, rows: NDArray[np.int64]) -> None:
    index.ids["passages"].extend(whole.ids["passages"][rows])
    there = whole.index.passages
    index.passages = Passages(*(TakenTexts(texts, rows) for texts in (there.ids, there.titles, there.texts)))
    index.passage_rows = {id: place for place, id in enumerate(index.passages.ids)}
    states = whole.extraction_states
    index.extraction_states = {place: states[row] for place, row in enumerate(rows.tolist()) if row in states}
    index.postings = ScopedPostings(whole.index.postings, rows, whole.snapshot.n_passages)
    index.passage_vectors.take(whole.snapshot.passage_vectors, rows)


def _take_phrases(index: LiveIndex, whole: FrozenIndex, rows: NDArray[np.int64], places: Rows32) -> None:
    index.ids["phrases"].extend(whole.ids["phrases"][rows])
    index.phrases = TakenTexts(whole.index.phrases, rows)
    index.phrase_rows = ScopedRows(whole.index.phrase_rows, places)
    index.linkable.extend(whole.linkable[rows])
    index.crowding.rows.grow(len(rows))
    index.sketches = ScopedSketches(whole.index.sketches, whole.sketches, rows, places)
    index.phrase_vectors.take(whole.snapshot.phrase_vectors, rows)


def _take_triples(
    index: LiveIndex,
    whole: FrozenIndex,
    rows: NDArray[np.int64],
    places: Rows32,
    phrases: NDArray[np.int64],
    ends: NDArray[np.int32],
) -> None:
    index.ids["triples"].extend(whole.ids["triples"][rows])
    index.triple_ends.extend(ends)
    index.statements.extend(whole.snapshot.is_statement[rows])
    index.predicates = TakenTexts(whole.index.predicates, rows)
    index.triple_rows = ScopedTripleRows(whole.index.triple_rows, places, phrases)
    index.triple_vectors.take(whole.snapshot.triple_vectors, rows)


def _take_synonyms(index: LiveIndex, whole: FrozenIndex, phrases: NDArray[np.int64], can: NDArray[np.bool_]) -> Rows:
    """Takes over the edges between phrases of which the whole memory knows all pairs; returns the others that can have some.

    `can`: mask of the `phrases` that can have synonyms in the scope.
    """
    a, b, weights = whole.snapshot.synonym.entries(phrases)
    place = np.full(whole.snapshot.n_phrases, -1, np.int32)
    place[phrases] = np.arange(len(phrases), dtype=np.int32)
    known = can & whole.snapshot.phrase_alive[phrases] & ~whole.snapshot.phrase_crowded[phrases]
    inside = np.flatnonzero(place[b] >= 0)
    ones, others, weights = place[a[inside]], place[b[inside]], weights[inside]
    taken = known[ones] & known[others]
    edges = sparse.csr_array((weights[taken], (ones[taken], others[taken])), shape=(len(phrases), len(phrases)))
    index.synonym.swap_in(edges, 0)
    return np.flatnonzero(can & ~known)


def _add_synonyms(index: LiveIndex, can: NDArray[np.bool_], searched: Rows, rule: SynonymRule) -> None:
    """Adds the edges of the phrases `searched`, which have none yet. `can`: mask of the phrases that can have synonyms."""
    if not len(searched):
        return
    if index.sketches.due or len(searched) > SORTED_FOR_SHARE * len(can):
        index.sketches.sort(index.phrase_vectors)
    index.change_synonyms(
        plan_edges(
            np.empty(0, np.int64),
            searched,
            len(index.phrases),
            lambda rows: synonym_edges(index, rows),
            searcher(index, can, rule),
        )
    )
