"""From a commit's change to the rows that the tables gain."""

import json
import time
from typing import Any

import numpy as np

from store.image import Delta, Image
from store.tables import Tables, vector_column
from store.types import Document, State


def write_rows(tables: Tables, image: Image, delta: Delta, seq: int) -> None:
    """Appends what `delta` brings, as commit `seq`. It is not committed by that: `store.commits`."""
    dim = image.dim
    first = image.next_id
    known = len(image.phrases)
    ids = image.ids["phrases"].view()

    def phrase_id(row: int) -> int:
        return int(ids[row]) if row < known else first["phrases"] + row - known

    def rows(name: str, count: int) -> Any:
        return np.arange(first[name], first[name] + count, dtype=np.int32)

    if delta.passages:
        tables.append(
            "passages",
            {
                "row": rows("passages", len(delta.passages)),
                "id": [passage.id for passage in delta.passages],
                "title": [passage.title for passage in delta.passages],
                "text": [passage.text for passage in delta.passages],
                "vector": vector_column(delta.passage_vectors, dim),
            },
        )
    if delta.phrases:
        tables.append(
            "phrases",
            {
                "row": rows("phrases", len(delta.phrases)),
                "text": delta.phrases,
                "vector": vector_column(delta.phrase_vectors, dim),
            },
        )
    if delta.triples:
        tables.append(
            "triples",
            {
                "row": rows("triples", len(delta.triples)),
                "subject": [phrase_id(key[0]) for key in delta.triples],
                "predicate": [key[1] for key in delta.triples],
                "object": [phrase_id(key[2]) for key in delta.triples],
                "vector": vector_column(delta.triple_vectors, dim),
            },
        )
    if delta.extractions:
        tables.append(
            "extractions",
            {
                "passage": [e.passage for e in delta.extractions],
                "extractor": [e.extractor for e in delta.extractions],
                "entities": [list(e.entities) for e in delta.extractions],
                "triples": [[list(triple) for triple in e.triples] for e in delta.extractions],
                "prompt_tokens": [e.prompt_tokens for e in delta.extractions],
                "completion_tokens": [e.completion_tokens for e in delta.extractions],
                "took_ms": [e.took_ms for e in delta.extractions],
                "commit": [seq] * len(delta.extractions),
            },
        )
    if delta.synonyms.weights:
        pairs = list(delta.synonyms.weights)
        tables.append(
            "synonyms",
            {
                "a": [phrase_id(a) for a, _ in pairs],
                "b": [phrase_id(b) for _, b in pairs],
                "score": [delta.synonyms.weights[pair] for pair in pairs],
                "commit": [seq] * len(pairs),
            },
        )
    _write_documents(tables, delta, seq)


def _write_documents(tables: Tables, delta: Delta, seq: int) -> None:
    gone = [Document(uri, "", state=State.REMOVED, committed_at=time.time()) for uri in delta.removed]
    documents = [*delta.documents, *gone]
    if not documents:
        return
    tables.append(
        "documents",
        {
            "uri": [d.uri for d in documents],
            "source": [d.source for d in documents],
            "state": [d.state.value for d in documents],
            "title": [d.title for d in documents],
            "error": [d.error for d in documents],
            "attempts": [d.attempts for d in documents],
            "next_try": [d.next_try for d in documents],
            "modified_at": [d.modified_at for d in documents],
            "committed_at": [d.committed_at for d in documents],
            "metadata": [json.dumps(dict(d.metadata)) for d in documents],
            "passages": [
                json.dumps([[ref.passage, dict(ref.location), ref.given] for ref in d.passages]) for d in documents
            ],
            "payload": [d.payload for d in documents],
            "commit": [seq] * len(documents),
        },
    )
