"""Plans the exact change that a batch makes, without side effects: a change that cannot be written is not applied at all.

A passage's triples follow from the documents that contain it (`store.index.effective_triples`). Each count and edge changes by
the difference between a passage's triples before and after the batch. The resulting state therefore depends only on the
documents, not on their order.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.change.synonym_change import plan_synonyms
from store.errors import IncompleteBatch
from store.fixed_point import Fixed, Vector, fixed, no_vectors
from store.index.columns.hashed_rows import TripleKey
from store.index.columns.holders import Held
from store.index.columns.row_lists import NO_ROWS, list_arrays
from store.index.effective_triples import SuppliedTriples, supplied_by_passage, supplied_triples
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.triple_change import Entries, joined, triple_change
from store.links.names import names_text
from store.types import MENTION, Batch, Document, PassageText, State, Triple, is_statement


def plan(index: LiveIndex, batch: Batch, now: float) -> IndexDelta:
    """Returns the change that `batch` makes to `index`. Raises IncompleteBatch if the batch lacks a text or a vector."""
    delta = plan_triples(index, batch, now)
    plan_synonyms(index, delta)
    return delta


def holders_after(index: LiveIndex, batch: Batch) -> dict[str, dict[str, SuppliedTriples]]:
    """Returns, for each affected passage, the documents that contain it after the batch, with the triples that they supply."""
    found: dict[str, dict[str, SuppliedTriples]] = {}

    def holders(passage: str) -> dict[str, SuppliedTriples]:
        if passage not in found:
            row = index.passage_rows.get(passage)
            found[passage] = dict(index.holders[row]) if row is not None else {}
        return found[passage]

    last: dict[str, Document] = {document.uri: document for document in batch.documents}
    for uri in [*last, *batch.removed]:
        old = index.documents.get(uri)
        for ref in old.passages if old else ():
            holders(ref.passage).pop(uri, None)
    for uri, document in last.items():
        if document.state is State.INDEXED:
            for passage, triples in supplied_by_passage(document).items():
                holders(passage)[uri] = triples
    return found


def plan_triples(index: LiveIndex, batch: Batch, now: float) -> IndexDelta:
    """Returns the change without synonym edges; `plan_synonyms` adds them.

    Raises IncompleteBatch.
    """
    delta = IndexDelta()
    after = holders_after(index, batch)
    texts = {passage.id: passage for passage in batch.passages}
    rows = _add_passages(index, delta, batch, after, texts)
    numbers = _RowNumbers(index)

    def row_of(passage: str) -> int | None:
        return rows.get(passage, index.passage_rows.get(passage))

    for extraction in batch.extractions:
        row = row_of(extraction.passage)
        if row is not None:
            delta.extractions.append(extraction)
            delta.extracted[row] = numbers.rows(extraction.triples)
    # A new extraction also changes passages that are in no document of this batch.
    for extraction in delta.extractions:
        known = index.passage_rows.get(extraction.passage)
        if extraction.passage not in after and known is not None:
            after[extraction.passage] = index.holders[known]
    _triples(index, delta, numbers, {row: holders for id, holders in after.items() if (row := row_of(id)) is not None})
    _documents(index, delta, batch, now)
    _names(index, delta, row_of)
    _vectors(index, delta, batch, numbers)
    return delta


def plan_removal(index: LiveIndex, documents: Mapping[str, Document]) -> IndexDelta:
    """Returns the change that removes all documents of the index except `documents` (by URI), without synonym edges. Takes
    O(index) time, but does not read the documents of passages that only removed documents contain."""
    held, shared = index.holders.held_by(documents)
    dead = np.setdiff1d(np.flatnonzero(index.counts["passages"].view().positive()), held, assume_unique=True)
    remaining: dict[int, Held] = {row: {} for row in dead.tolist()}
    naming = index.matrices["naming"].view().merged().tocoo()
    names = [_without_passages(naming, dead)]
    for row in shared.tolist():
        holders = index.holders[row]
        remaining[row] = {uri: triples for uri, triples in holders.items() if uri in documents}
        gone = [names_text(index.documents[uri]) for uri in holders if uri not in documents]
        rows = [index.names.rows[text] for text in gone if text]
        names.append((np.array(rows, np.int64), np.full(len(rows), row), np.full(len(rows), -1.0)))
    delta = plan_passages(index, remaining)
    delta.removed = [uri for uri in index.documents if uri not in documents]
    delta.naming = joined(names)
    return delta


def plan_passages(index: LiveIndex, holders: dict[int, Held]) -> IndexDelta:
    """Returns the change of passages, without synonym edges and names. `holders` maps passage rows to the documents that
    contain them afterwards. The passages may also have new extractions. Raises IncompleteBatch if the index lacks a triple."""
    delta, numbers = IndexDelta(), _RowNumbers(index)
    _triples(index, delta, numbers, holders)
    _vectors(index, delta, Batch(), numbers)
    return delta


@dataclass(slots=True)
class _RowNumbers:
    """Assigns row numbers to the phrases and triples of a batch. New rows follow the existing rows, so the caller must prevent
    concurrent commits."""

    index: LiveIndex
    phrases: dict[str, int] = field(default_factory=dict)
    triples: dict[TripleKey, int] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)
    """Rows of the phrases looked up so far, because most triples of a passage share a phrase."""

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
        """Returns the phrase rows of subject and object of each triple in `triples` (rows), shape (len(triples), 2)."""
        new = np.array([(key[0], key[2]) for key in self.triples], np.int64).reshape(-1, 2)
        return self._look_up(self.index.triple_ends.view(), new, triples)

    def are_statements(self, triples: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns the mask of the rows in `triples` that are statements rather than mention edges, shape (len(triples),)."""
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


def _without_passages(naming: Any, passages: NDArray[np.int64]) -> Entries:
    """Returns the changes that empty the columns of `passages` in the matrix `naming`."""
    removed = np.zeros(naming.shape[1], np.bool_)
    removed[passages] = True
    there = removed[naming.col]
    return naming.row[there], naming.col[there], -naming.data[there]


def _add_passages(
    index: LiveIndex,
    delta: IndexDelta,
    batch: Batch,
    after: Mapping[str, Mapping[str, SuppliedTriples]],
    texts: Mapping[str, PassageText],
) -> dict[str, int]:
    rows: dict[str, int] = {}
    vectors = []
    for passage, holders in after.items():
        if passage in index.passage_rows or not holders:
            continue
        text, vector = texts.get(passage), batch.passage_vectors.get(passage)
        if text is None or vector is None:
            raise IncompleteBatch(
                f"the batch lacks the text or vector of the passage {passage} of {next(iter(holders))}"
            )
        rows[passage] = len(index.passages) + len(rows)
        delta.passages.append(text)
        vectors.append(vector)
    delta.passage_vectors = _fixed_rows(vectors, index.dim)
    return rows


def _fixed_rows(vectors: Sequence[Vector], dim: int) -> Fixed:
    """Returns the vectors in fixed point, shape (len(vectors), dim + 1)."""
    return fixed(np.stack(vectors)) if vectors else no_vectors(dim)


def _triples(index: LiveIndex, delta: IndexDelta, numbers: _RowNumbers, holders: dict[int, Held]) -> None:
    """Adds to `delta` the changes of passages: `holders` maps their rows to their new documents, and their extractions may be
    new."""
    known = len(index.passages)

    def triples(row: int) -> NDArray[np.int32]:
        if (supplied := supplied_triples(holders[row])) is not None:
            return numbers.rows(supplied)
        found = delta.extracted.get(row)
        if found is None and row < known:
            found = index.extracted[row]
        return found if found is not None else NO_ROWS

    delta.holders = holders
    rows = np.array(sorted(holders), np.int64)
    sizes = np.array([len(holders[row]) for row in rows.tolist()], np.int64) - index.counts["passages"].at(rows)
    delta.passage_counts = rows[sizes != 0], sizes[sizes != 0]
    after = list_arrays([triples(row) if holders[row] else NO_ROWS for row in rows.tolist()])
    delta.triple_change = triple_change(rows, index.triples_of(rows), after, numbers.ends, numbers.are_statements)


def _documents(index: LiveIndex, delta: IndexDelta, batch: Batch, now: float) -> None:
    last = {document.uri: document for document in batch.documents}
    for document in last.values():
        refs = document.passages if document.state is State.INDEXED else ()
        delta.documents.append(replace(document, committed_at=now, passages=refs))
    delta.removed = [uri for uri in dict.fromkeys(batch.removed) if uri not in last and uri in index.documents]


def _names(index: LiveIndex, delta: IndexDelta, row_of: Callable[[str], int | None]) -> None:
    """Adds new names, and the changes of the passages' names, to the delta. `row_of` returns the row of a passage."""
    added: dict[str, int] = {}
    entries: dict[tuple[int, int], float] = {}

    def count(document: Document | None, sign: float) -> None:
        text = names_text(document) if document is not None and document.passages else ""
        if not text or document is None:
            return
        row = index.names.rows.get(text)
        if row is None:
            row = added.setdefault(text, len(index.names) + len(added))
        for passage in {row_of(ref.passage) for ref in document.passages}:
            if passage is not None:
                entries[row, passage] = entries.get((row, passage), 0.0) + sign

    for document in delta.documents:
        count(index.documents.get(document.uri), -1.0)
        count(document, 1.0)
    for uri in delta.removed:
        count(index.documents.get(uri), -1.0)
    delta.names = list(added)
    if changed := [(*key, value) for key, value in entries.items() if value]:
        names, passages, values = np.array(changed).T
        delta.naming = names.astype(np.int64), passages.astype(np.int64), values


def _vectors(index: LiveIndex, delta: IndexDelta, batch: Batch, numbers: _RowNumbers) -> None:
    delta.phrases = list(numbers.phrases)
    delta.triples = list(numbers.triples)
    text_of = {row: text for text, row in numbers.phrases.items()}

    def text(row: int) -> str:
        return text_of[row] if row in text_of else index.phrases[row]

    for phrase in delta.phrases:
        if phrase not in batch.phrase_vectors:
            raise IncompleteBatch(f"the batch lacks the vector of the phrase {phrase!r}")
    delta.phrase_vectors = _fixed_rows([batch.phrase_vectors[phrase] for phrase in delta.phrases], index.dim)
    vectors = []
    no_vector = np.zeros(index.dim, np.float32)
    for subject, predicate, object_ in delta.triples:
        triple = (text(subject), predicate, text(object_))
        if not is_statement(triple):
            vectors.append(no_vector)
            continue
        if triple not in batch.triple_vectors:
            raise IncompleteBatch(f"the batch lacks the vector of the triple {triple!r}")
        vectors.append(batch.triple_vectors[triple])
    delta.triple_vectors = _fixed_rows(vectors, index.dim)
