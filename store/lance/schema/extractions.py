"""The table `extractions`: a row is the local extractor's result for a passage. A later row of the passage replaces it.

Extractions that a document supplies are stored in the document's row. In this table they would apply to every document that
contains the passage.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from store.lance.schema.vectors import Columns
from store.types import Extraction, ExtractionOutcome

_STRINGS = pa.list_(pa.string())
SCHEMA = pa.schema(
    [
        ("passage", pa.string()),
        ("extractor", pa.string()),
        ("entities", _STRINGS),
        ("triples", pa.list_(_STRINGS)),
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("took_ms", pa.float32()),
        ("commit", pa.int64()),
        ("status", pa.string()),
        ("attempts", pa.int32()),
        ("error", pa.string()),
    ]
)


def to_columns(extractions: Sequence[Extraction], commit: int) -> Columns:
    return {
        "passage": [e.passage for e in extractions],
        "extractor": [e.extractor for e in extractions],
        "entities": [list(e.entities) for e in extractions],
        "triples": [[list(triple) for triple in e.triples] for e in extractions],
        "prompt_tokens": [e.prompt_tokens for e in extractions],
        "completion_tokens": [e.completion_tokens for e in extractions],
        "took_ms": [e.took_ms for e in extractions],
        "status": [e.status.value for e in extractions],
        "attempts": [e.attempts for e in extractions],
        "error": [e.error for e in extractions],
        "commit": [commit] * len(extractions),
    }


def from_row(row: Mapping[str, Any]) -> Extraction:
    """Returns the extraction of a row."""
    return Extraction(
        row["passage"],
        row["extractor"],
        tuple(row["entities"] or ()),
        tuple((s, p, o) for s, p, o in row["triples"] or ()),
        row["prompt_tokens"],
        row["completion_tokens"],
        row["took_ms"],
        ExtractionOutcome(row["status"]),
        row["attempts"],
        row["error"],
    )


def without_costs(table: pa.Table) -> Iterator[Extraction]:
    """Yields the extraction of each row without entities, tokens and duration, which the index does not need."""
    names = ("passage", "extractor", "triples", "status", "attempts", "error")
    for passage, extractor, triples, status, attempts, error in zip(
        *(table[name].to_pylist() for name in names), strict=True
    ):
        stated = tuple((s, p, o) for s, p, o in triples or ())
        outcome = ExtractionOutcome(status)
        yield Extraction(passage, extractor, triples=stated, status=outcome, attempts=attempts, error=error)
