"""Converts a change to the rows of its commit in the tables, except the row in `commits` (`store.log.commits`)."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.lance.schema import documents, extractions, passages, phrases, synonyms, triples
from store.types import LABELS, Document, State

TableRows = dict[str, Mapping[str, Any]]
"""Columns by table name."""


def table_rows(index: LiveIndex, delta: IndexDelta, seq: int) -> TableRows:
    """Returns the rows that record `delta` as commit `seq`. `index` must be in the state before the change."""
    first = index.next_id

    def rows(name: str, count: int) -> NDArray[np.int32]:
        return np.arange(first[name], first[name] + count, dtype=np.int32)

    added: TableRows = {}
    if delta.passages:
        numbers = rows("passages", len(delta.passages))
        added["passages"] = passages.to_columns(numbers, delta.passages, delta.passage_vectors)
    if delta.phrases:
        numbers = rows("phrases", len(delta.phrases))
        added["phrases"] = phrases.to_columns(numbers, delta.phrases, delta.phrase_vectors)
    if delta.triples:
        numbers = rows("triples", len(delta.triples))
        ends = np.array([(subject, object_) for subject, _, object_ in delta.triples], np.int64)
        subjects, objects = _phrase_ids(index, ends.T).tolist()
        predicates = [predicate for _, predicate, _ in delta.triples]
        keys = list(zip(subjects, predicates, objects, strict=True))
        added["triples"] = triples.to_columns(numbers, keys, delta.triple_vectors)
    if delta.extractions:
        added["extractions"] = extractions.to_columns(delta.extractions, seq)
    gone = [_removal(index.documents[uri]) for uri in delta.removed]
    if changed := [*delta.documents, *gone]:
        added["documents"] = documents.to_columns(changed, seq)
    edges = delta.synonyms
    if len(edges.a):
        a, b = _phrase_ids(index, edges.a), _phrase_ids(index, edges.b)
        added["synonyms"] = synonyms.to_columns(a, b, edges.weights, seq)
    return added


def _removal(last: Document) -> Document:
    """Returns the row that removes a document. The row keeps source and labels, which decide who may see it in earlier
    commits."""
    labels = {LABELS: last.metadata[LABELS]} if LABELS in last.metadata else {}
    return Document(last.uri, last.source, state=State.REMOVED, committed_at=time.time(), metadata=labels)


def _phrase_ids(index: LiveIndex, rows: NDArray[np.int64]) -> NDArray[np.int32]:
    """Returns the values of the column `row` for phrase rows of the index, in the shape of `rows`. Rows after the end of the
    index belong to new phrases."""
    known = len(index.phrases)
    ids = index.next_id["phrases"] + rows - known
    old = rows < known
    ids[old] = index.ids["phrases"].view()[rows[old]]
    return ids.astype(np.int32)
