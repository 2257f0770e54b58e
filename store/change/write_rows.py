"""Appends what a commit changes to the tables. It is committed by its row in the log alone: `store.log.commits`."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.lance.schema import documents, extractions, passages, phrases, synonyms, triples
from store.lance.tables import Tables
from store.types import Document, State


def write_rows(tables: Tables, index: LiveIndex, delta: IndexDelta, seq: int) -> None:
    """Appends what `delta` brings to `index`, as commit `seq`."""
    first = index.next_id
    known = len(index.phrases)
    ids = index.ids["phrases"].view()

    def phrase_id(row: int) -> int:
        return int(ids[row]) if row < known else first["phrases"] + row - known

    def phrase_ids(rows: NDArray[np.int64]) -> NDArray[np.int32]:
        numbers = np.where(rows < known, 0, first["phrases"] + rows - known)
        numbers[rows < known] = ids[rows[rows < known]]
        return numbers.astype(np.int32)

    def rows(name: str, count: int) -> NDArray[np.int32]:
        return np.arange(first[name], first[name] + count, dtype=np.int32)

    added: dict[str, Mapping[str, Any]] = {}
    if delta.passages:
        numbers = rows("passages", len(delta.passages))
        added["passages"] = passages.to_columns(numbers, delta.passages, delta.passage_vectors)
    if delta.phrases:
        numbers = rows("phrases", len(delta.phrases))
        added["phrases"] = phrases.to_columns(numbers, delta.phrases, delta.phrase_vectors)
    if delta.triples:
        numbers = rows("triples", len(delta.triples))
        stated = [(phrase_id(subject), predicate, phrase_id(object_)) for subject, predicate, object_ in delta.triples]
        added["triples"] = triples.to_columns(numbers, stated, delta.triple_vectors)
    if delta.extractions:
        added["extractions"] = extractions.to_columns(delta.extractions, seq)
    if len(delta.synonyms.a):
        edges = delta.synonyms
        added["synonyms"] = synonyms.to_columns(phrase_ids(edges.a), phrase_ids(edges.b), edges.weights, seq)
    gone = [Document(uri, "", state=State.REMOVED, committed_at=time.time()) for uri in delta.removed]
    if changed := [*delta.documents, *gone]:
        added["documents"] = documents.to_columns(changed, seq)
    tables.append_to(added)
