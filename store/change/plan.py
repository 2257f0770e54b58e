"""Plans the exact change that a batch makes, without side effects: a change that cannot be written is never half applied.

A passage's *effective* triples follow from the documents that contain it (`store.index.effective_triples`); every count and
edge follows from the effective triples before and after. The end state therefore depends on the documents alone, not on their
order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from store.change.passage_documents import holders_after
from store.change.row_numbers import RowNumbers
from store.change.synonym_change import plan_crowding, plan_synonyms
from store.errors import IncompleteBatch
from store.fixed_point import Fixed, fixed, no_vectors
from store.index.columns.row_lists import NO_ROWS
from store.index.effective_triples import UpstreamTriples, supplied_triples
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.links.names import names_text
from store.types import Batch, Document, PassageText, State, SynonymRule, Vector, is_statement


def plan(index: LiveIndex, batch: Batch, rule: SynonymRule, now: float) -> IndexDelta:
    """Returns the change that `batch` makes to `index`. Raises IncompleteBatch if the batch lacks a text or a vector."""
    delta, numbers = plan_statements(index, batch, now)
    plan_synonyms(index, delta, numbers, rule)
    return delta


def plan_without_synonyms(index: LiveIndex, batch: Batch, now: float) -> IndexDelta:
    """Returns the change without its synonym edges, for a batch whose synonym edges are known."""
    delta, _ = plan_statements(index, batch, now)
    plan_crowding(index, delta)
    return delta


def plan_statements(index: LiveIndex, batch: Batch, now: float) -> tuple[IndexDelta, RowNumbers]:
    """Returns the change without synonyms, and the rows of its phrases and triples; `plan_synonyms` completes it.

    Raises IncompleteBatch.
    """
    delta = IndexDelta()
    after = holders_after(index, batch)
    texts = {passage.id: passage for passage in batch.passages}
    rows = _add_passages(index, delta, batch, after, texts)
    numbers = RowNumbers(index)
    for extraction in batch.extractions:
        row = rows.get(extraction.passage, index.passage_rows.get(extraction.passage))
        if row is not None:
            delta.extractions.append(extraction)
            delta.extracted[row] = numbers.rows(extraction.triples)
    # A new extraction also changes passages without a document in this batch.
    for extraction in delta.extractions:
        known = index.passage_rows.get(extraction.passage)
        if extraction.passage not in after and known is not None:
            after[extraction.passage] = index.holders[known]
    for passage, holders in after.items():
        row = rows.get(passage, index.passage_rows.get(passage, -1))
        if row >= 0:
            _change_passage(index, delta, numbers, row, holders)
    _documents(index, delta, batch, now)
    _names(index, delta, rows)
    _vectors(index, delta, batch, numbers)
    return delta, numbers


def _add_passages(
    index: LiveIndex,
    delta: IndexDelta,
    batch: Batch,
    after: Mapping[str, Mapping[str, UpstreamTriples]],
    texts: Mapping[str, PassageText],
) -> dict[str, int]:
    rows: dict[str, int] = {}
    vectors = []
    for passage, holders in after.items():
        if passage in index.passage_rows or not holders:
            continue
        text, vector = texts.get(passage), batch.passage_vectors.get(passage)
        if text is None or vector is None:
            raise IncompleteBatch(f"passage {passage} of {next(iter(holders))} came without its text or vector")
        rows[passage] = len(index.passages) + len(rows)
        delta.passages.append(text)
        vectors.append(vector)
    delta.passage_vectors = _fixed_rows(vectors, index.dim)
    return rows


def _fixed_rows(vectors: Sequence[Vector], dim: int) -> Fixed:
    """Returns the vectors in fixed point, shape (len(vectors), dim + 1)."""
    return fixed(np.stack(vectors)) if vectors else no_vectors(dim)


def _change_passage(
    index: LiveIndex, delta: IndexDelta, numbers: RowNumbers, row: int, holders: dict[str, UpstreamTriples]
) -> None:
    known = row < len(index.passages)
    before = index.effective[row] if known else NO_ROWS
    holders_before = len(index.holders[row]) if known else 0
    if (supplied := supplied_triples(holders)) is not None:
        after = numbers.rows(supplied)
    else:
        found = delta.extracted.get(row)
        if found is None and known:
            found = index.extracted[row]
        after = found if found is not None else NO_ROWS
    delta.holders[row] = holders
    if len(holders) != holders_before:
        delta.passage_changes[row] = len(holders) - holders_before
    if np.array_equal(before, after):
        return
    delta.effective[row] = after
    old, new = set(before.tolist()), set(after.tolist())
    for triples, sign in ((sorted(old - new), -1), (sorted(new - old), 1)):
        for triple in triples:
            delta.triple_changes[triple] = delta.triple_changes.get(triple, 0) + sign
            delta.incidence.append((row, triple, float(sign)))
            subject, object_ = numbers.ends(triple)
            if subject != object_:
                edges = delta.relation if numbers.is_statement(triple) else delta.mention
                edges += [(subject, object_, float(sign)), (object_, subject, float(sign))]
    phrases_before = {phrase for triple in old for phrase in numbers.ends(triple)}
    phrases_after = {phrase for triple in new for phrase in numbers.ends(triple)}
    for phrases, sign in ((phrases_before - phrases_after, -1), (phrases_after - phrases_before, 1)):
        for phrase in sorted(phrases):
            delta.phrase_changes[phrase] = delta.phrase_changes.get(phrase, 0) + sign
            delta.context.append((row, phrase, float(sign)))


def _documents(index: LiveIndex, delta: IndexDelta, batch: Batch, now: float) -> None:
    last = {document.uri: document for document in batch.documents}
    for document in last.values():
        refs = document.passages if document.state is State.INDEXED else ()
        delta.documents.append(replace(document, committed_at=now, passages=refs))
    delta.removed = [uri for uri in dict.fromkeys(batch.removed) if uri not in last and uri in index.documents]


def _names(index: LiveIndex, delta: IndexDelta, new_rows: Mapping[str, int]) -> None:
    """Adds new names to the delta, and the changed names of passages."""
    added: dict[str, int] = {}
    entries: dict[tuple[int, int], float] = {}

    def count(document: Document | None, sign: float) -> None:
        text = names_text(document) if document is not None and document.passages else ""
        if not text or document is None:
            return
        row = index.name_rows.get(text)
        if row is None:
            row = added.setdefault(text, len(index.names) + len(added))
        for passage in {ref.passage for ref in document.passages}:
            known = index.passage_rows.get(passage)
            key = row, new_rows[passage] if known is None else known
            entries[key] = entries.get(key, 0.0) + sign

    for document in delta.documents:
        count(index.documents.get(document.uri), -1.0)
        count(document, 1.0)
    for uri in delta.removed:
        count(index.documents.get(uri), -1.0)
    delta.names = list(added)
    delta.naming = [(row, passage, value) for (row, passage), value in entries.items() if value]


def _vectors(index: LiveIndex, delta: IndexDelta, batch: Batch, numbers: RowNumbers) -> None:
    delta.phrases = list(numbers.phrases)
    delta.triples = list(numbers.triples)
    text_of = {row: text for text, row in numbers.phrases.items()}

    def text(row: int) -> str:
        return text_of[row] if row in text_of else index.phrases[row]

    for phrase in delta.phrases:
        if phrase not in batch.phrase_vectors:
            raise IncompleteBatch(f"the phrase {phrase!r} came without its vector")
    delta.phrase_vectors = _fixed_rows([batch.phrase_vectors[phrase] for phrase in delta.phrases], index.dim)
    vectors = []
    no_vector = np.zeros(index.dim, np.float32)
    for subject, predicate, object_ in delta.triples:
        triple = (text(subject), predicate, text(object_))
        if not is_statement(triple):
            vectors.append(no_vector)
            continue
        if triple not in batch.triple_vectors:
            raise IncompleteBatch(f"the triple {triple!r} came without its vector")
        vectors.append(batch.triple_vectors[triple])
    delta.triple_vectors = _fixed_rows(vectors, index.dim)
