"""Converts a `ParsedDocument` to the JSON that processes exchange, and back.

pydantic is not used, because importing it would double the start time of the parsing processes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.omissions import KIND_OF, Omission
from consumers.types import Link, ParsedDocument, Passage


def document_to_json(document: ParsedDocument) -> dict[str, Any]:
    """Returns values that `json.dumps` accepts. `passages` is a list, so that a long document can be sent in parts."""
    return {
        "uri": document.uri,
        "title": document.title,
        "passages": [_passage_values(passage) for passage in document.passages],
        "metadata": dict(document.metadata),
        "modified_at": document.modified_at,
        "error": document.error,
        "code": document.code,
        "skipped": document.skipped,
        "deleted": document.deleted,
        "left_out": [[each.kind, each.count, each.text] for each in document.left_out],
    }


def document_from_json(value: Mapping[str, Any]) -> ParsedDocument:
    code = value["code"]
    return ParsedDocument(
        uri=value["uri"],
        title=value["title"],
        passages=tuple(map(_passage, value["passages"])),
        metadata=value["metadata"],
        modified_at=value["modified_at"],
        error=value["error"],
        skipped=value["skipped"],
        deleted=value["deleted"],
        code=None if code is None else FailureCode(code),
        left_out=tuple(Omission(KIND_OF[kind], count, text) for kind, count, text in value["left_out"]),
    )


def _passage_values(passage: Passage) -> list[Any]:
    links = [[link.target, link.heading, link.text] for link in passage.links]
    return [passage.title, passage.text, dict(passage.location), passage.triples, links]


def _passage(value: Sequence[Any]) -> Passage:
    title, text, location, given, links = value
    triples = None if given is None else tuple((s, p, o) for s, p, o in given)
    return Passage(title, text, location, triples, tuple(Link(*link) for link in links))
