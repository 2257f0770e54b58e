"""Builds the index of a scope from the index of the whole memory: the same as one that was loaded with its documents alone.

Texts, vectors, sketches and postings are taken over; counts and edges are derived from the documents as at a start. Only the
synonym edges need thought. What is an edge there is one here, unless one of its ends is crowded here. What is none there can be
one here in three cases: the `cap` cut it off, one of its ends is crowded there, or one of its ends does not live there (triples
that another document brought along took the place of those that were extracted). So edges are taken over between phrases to
which none of this applies, and the others are searched for as if they had just come.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.change.synonym_change import synonym_edges
from store.index.append_only_arrays import BLOCK_VECTORS, Vectors, VectorsView
from store.index.live_index import NO_ROWS, LiveIndex
from store.index.load import derive_graph
from store.index.synonyms.edge_maintenance import SynonymPlanner
from store.index.synonyms.lsh import sort
from store.index.synonyms.nearest_pairs import Rows, Scored
from store.index.synonyms.search import Wanted, similar
from store.scope.frozen_index import FrozenIndex
from store.scope.scoped_postings import ScopedPostings
from store.types import Document, SynonymRule


def scoped_index(whole: FrozenIndex, documents: Mapping[str, Document], rule: SynonymRule) -> LiveIndex:
    """The index of `documents`, by URI, which are among those of `whole`. O(the scope), but for arrays as long as `whole`.

    Raises KeyError where a purge beside this took a text away: `whole` is too old then.
    """
    index = LiveIndex(whole.snapshot.dim)
    passages = _passage_rows(whole, documents)
    triples = _triple_rows(whole, passages)
    phrases = np.unique(whole.snapshot.triple_ends[triples]).astype(np.int64)
    _take_passages(index, whole, passages)
    _take_phrases(index, whole, phrases)
    _take_triples(index, whole, triples, phrases)
    for place, row in enumerate(passages.tolist()):
        found = whole.extracted[row]
        if found is not None:
            index.extracted[place] = np.searchsorted(triples, found).astype(np.int32)
        if row in whole.extraction_states:
            index.extraction_states[place] = whole.extraction_states[row]
    index.documents = dict(documents)
    derive_graph(index)
    index.count_crowds()
    can = index.synonym_candidates() & (index.crowding.rows.view().array()[: len(phrases)] == 0)
    searched = _take_synonyms(index, whole, phrases, can, rule)
    index.find_needs(rule.cap)
    _add_synonyms(index, can, searched, rule)
    return index


def _passage_rows(whole: FrozenIndex, documents: Mapping[str, Document]) -> NDArray[np.int64]:
    rows = whole.index.passage_rows
    found = {rows[ref.passage] for document in documents.values() for ref in document.passages}
    return np.array(sorted(found), np.int64)


def _triple_rows(whole: FrozenIndex, passages: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those that the passages state there, and those that they may state where fewer documents hold them."""
    parts = [NO_ROWS]
    for row in passages.tolist():
        parts.append(whole.effective[row])
        found = whole.extracted[row]
        if found is not None:
            parts.append(found)
    return np.unique(np.concatenate(parts)).astype(np.int64)


def _take_passages(index: LiveIndex, whole: FrozenIndex, rows: NDArray[np.int64]) -> None:
    index.ids["passages"].extend(whole.ids["passages"][rows])
    index.passages = [whole.index.passages[row] for row in rows.tolist()]
    index.passage_rows = {passage.id: place for place, passage in enumerate(index.passages)}
    index.holders = [{} for _ in index.passages]
    index.extracted = [None] * len(index.passages)
    index.effective = [NO_ROWS] * len(index.passages)
    index.postings = ScopedPostings(whole.index.postings, rows, whole.snapshot.n_passages)
    _take_vectors(index.passage_vectors, whole.snapshot.passage_vectors, rows)


def _take_phrases(index: LiveIndex, whole: FrozenIndex, rows: NDArray[np.int64]) -> None:
    index.ids["phrases"].extend(whole.ids["phrases"][rows])
    index.phrases = [whole.index.phrases[row] for row in rows.tolist()]
    index.phrase_rows = {phrase: place for place, phrase in enumerate(index.phrases)}
    index.linkable.extend(whole.linkable[rows])
    index.wordings.extend(whole.wordings[rows])
    index.synonym_needs.extend(np.zeros(len(rows)))
    index.crowding.rows.grow(len(rows))
    index.sketches.append(whole.sketches[rows])
    _take_vectors(index.phrase_vectors, whole.snapshot.phrase_vectors, rows)


def _take_triples(index: LiveIndex, whole: FrozenIndex, rows: NDArray[np.int64], phrases: NDArray[np.int64]) -> None:
    index.ids["triples"].extend(whole.ids["triples"][rows])
    ends = np.searchsorted(phrases, whole.snapshot.triple_ends[rows])
    index.triple_ends.extend(ends)
    index.predicates.extend(whole.index.predicates[row] for row in rows.tolist())
    index.triple_rows.load(np.arange(len(rows)))
    _take_vectors(index.triple_vectors, whole.snapshot.triple_vectors, rows)


def _take_vectors(mine: Vectors, theirs: VectorsView, rows: NDArray[np.int64]) -> None:
    for start in range(0, len(rows), BLOCK_VECTORS):
        mine.extend(theirs.rows(rows[start : start + BLOCK_VECTORS]))


def _take_synonyms(
    index: LiveIndex, whole: FrozenIndex, phrases: NDArray[np.int64], can: NDArray[np.bool_], rule: SynonymRule
) -> Rows:
    """Takes over the edges between phrases of which the whole memory knows all pairs; returns the others that can have some.

    `can`: which of `phrases` can have synonyms here.
    """
    a, b, weights = whole.snapshot.synonym.entries(phrases)
    place = np.full(whole.snapshot.n_phrases, -1, np.int64)
    place[phrases] = np.arange(len(phrases))
    known = can & whole.snapshot.phrase_alive[phrases] & ~whole.snapshot.phrase_crowded[phrases]
    known &= np.bincount(place[a], minlength=len(phrases)) < rule.cap
    inside = np.flatnonzero(place[b] >= 0)
    ones, others, weights = place[a[inside]], place[b[inside]], weights[inside]
    taken = known[ones] & known[others]
    edges = sparse.csr_array((weights[taken], (ones[taken], others[taken])), shape=(len(phrases), len(phrases)))
    index.synonym.adopt(edges, 0)
    return np.flatnonzero(can & ~known)


def _add_synonyms(index: LiveIndex, can: NDArray[np.bool_], searched: Rows, rule: SynonymRule) -> None:
    """Adds the edges of the phrases `searched`, which have none yet. `can`: which phrases can have some."""
    if not len(searched):
        return
    index.sketches.adopt(sort(index.sketches.view()))
    wordings = index.wordings.view()

    def search(rows: Rows, wanted: Wanted) -> Iterator[Scored]:
        nothing = np.empty((0, index.dim), np.float32)
        return similar(
            index.phrase_vectors.view(),
            nothing,
            can,
            rows,
            rule.threshold,
            index.sketches,
            wanted=wanted,
            through_bands=index.uses_bands,
            wording=wordings.__getitem__,
        )

    planner = SynonymPlanner(
        rule.cap,
        len(index.phrases),
        index.phrases.__getitem__,
        lambda rows: synonym_edges(index, rows),
        search,
        index.synonym_needs.view(),
    )
    index.change_synonyms(planner.plan(np.empty(0, np.int64), searched))
