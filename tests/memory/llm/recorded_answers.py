"""The answers that GPT-3.5 gave for MuSiQue, without the triples that hippod drops because neither end is in the passage."""

from collections.abc import Iterable
from typing import Any

from memory.openie.llm.extractor import is_grounded
from memory.phrase_normalisation import normalise_phrase, normalise_triple


def grounded_documents(docs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the documents of a HippoRAG file without ungrounded triples. Malformed triples stay."""
    return [doc | {"extracted_triples": _grounded(doc)} for doc in docs]


def _grounded(doc: dict[str, Any]) -> list[Any]:
    text = f" {normalise_phrase(doc['passage'])} "
    triples = [(raw, normalise_triple(raw)) for raw in doc["extracted_triples"]]
    return [raw for raw, triple in triples if triple is None or is_grounded(triple, text)]
