"""`/v1/documents` and `/v1/retry`: adding, listing, showing, removing and retrying documents.

`GET /v1/documents/{key}` looks a key up as a document's URI, a passage's id, a triple (its JSON array `["subject", "predicate",
"object"]`), and a phrase, in that order. Lists are cut at `limit` items; `counts` contains their full lengths.
"""

import operator
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, StringConstraints, WithJsonSchema

from daemon.contract.base import JsonBoolean, Request, Response, Timestamp, is_empty
from daemon.contract.choices import DocumentState
from daemon.contract.scope import ScopeParameter

Uri = Annotated[str, StringConstraints(min_length=1)]


Schema = dict[str, Any]

_ID: Schema = {"anyOf": [{"type": "string", "minLength": 1, "maxLength": 1024}, {"type": "integer"}]}
_BY_ID: Schema = {"properties": {"id": _ID}, "required": ["id"]}
_BY_IDX: Schema = {"properties": {"id": {"type": "null"}, "idx": _ID}, "required": ["idx"]}
_BY_CONTENT: Schema = {"properties": {"id": {"type": "null"}, "idx": {"type": "null"}}, "required": []}
_NOT_DELETED: Schema = {"not": {"const": True}}
_TEXT: Schema = {
    "properties": {"text": {"type": "string"}, "deleted": _NOT_DELETED, "content_base64": False},
    "required": ["text"],
}
_FILE: Schema = {
    "properties": {
        "content_base64": {"type": "string"},
        "filename": {"type": "string"},
        "deleted": _NOT_DELETED,
    },
    "required": ["content_base64", "filename"],
}
_DELETION: Schema = {"properties": {"deleted": {"const": True}}, "required": ["deleted"]}
DOCUMENT_KEYS = frozenset(
    ("id", "idx", "title", "text", "url", "published_at", "triples", "labels", "deleted", "content_base64", "filename")
)
"""Keys of an added document that hippod interprets, so metadata cannot have these keys."""
INTERNAL_KEYS = frozenset(("kafka", "record", "left_out"))
"""Metadata keys that only hippod writes. If an added document contains these keys, hippod renames them to `kafka_`, `record_`
and `left_out_`."""


def _object(content: Schema, identity: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {**identity["properties"], **content["properties"]},
        "required": [*identity["required"], *content["required"]],
    }


DOCUMENT_SCHEMA: Schema = {
    "title": "A document",
    "description": (
        "A document: `text`; or a file's bytes in base64 (`content_base64`) under its name (`filename`); or "
        "`deleted`, which removes the document of that `id`. `title` (a string), `url`, `published_at` and `triples` (lists "
        "of subject, predicate and object) have a meaning, every other key is kept as metadata (`kafka`, `record` and "
        "`left_out` as `kafka_`, `record_` and `left_out_`). Without `id` (or `idx`) the content names the document; "
        'the ids 1 and "1" are equal. A document of this form that cannot be indexed is listed as failed, with the reason.'
    ),
    "anyOf": [
        *(_object(content, identity) for content in (_TEXT, _FILE) for identity in (_BY_ID, _BY_IDX, _BY_CONTENT)),
        *(_object(_DELETION, identity) for identity in (_BY_ID, _BY_IDX)),
    ],
    "example": {"id": "lamp", "title": "Quill lamp", "text": "The Quill lamp was built by Sabine Rell."},
}
"""JSON Schema of an added document. `daemon.services.documents.added_documents` validates it."""


DocumentJson = Annotated[dict[str, Any], WithJsonSchema(DOCUMENT_SCHEMA)]


class AddRequest(Request):
    """JSON documents: `text` is required; `id`, `title`, `url`, `published_at` and `triples` have a meaning; every other key
    is stored as metadata. An entry of a HippoRAG corpus (with `idx` instead of `id`) is also a document.
    """

    documents: list[DocumentJson] = Field(min_length=1)


class AddResponse(Response):
    """The accepted documents. A crash after this response loses no document. `replaced`: number of accepted documents that
    existed before and were not deleted by this request.
    """

    accepted: int
    documents: list[str]
    replaced: int = Field(default=0, exclude_if=operator.not_)
    position: dict[str, int] = Field(default_factory=dict, exclude_if=is_empty)
    """Usable as a query's `after`, to wait until the memory contains these documents."""


class RemoveRequest(Request):
    uris: Sequence[Uri] = Field(min_length=1)


class RemoveResponse(Response):
    """Counts. `missing_uris`: URIs without a document."""

    removed: int
    missing: int
    missing_uris: list[str] = Field(default_factory=list, exclude_if=is_empty)


class RemoveSourceRequest(Request):
    """Removes all documents that a source has committed since `committed_since`, or ever, including documents that it has
    replaced since. `source`: the source's name in `status`. With `dry_run` nothing is removed.
    """

    source: Annotated[str, StringConstraints(min_length=1)]
    committed_since: Timestamp | None = None
    dry_run: JsonBoolean = False


class RemoveSourceResponse(Response):
    """`documents`: the URIs, in order. `removed`: number of removed documents, 0 after a dry run."""

    source: str
    documents: list[str]
    removed: int


class RetryRequest(Request):
    """The documents to try again; without `uris`, every failed document."""

    uris: Sequence[Uri] | None = None


class RetryResponse(Response):
    """`requeued`: number of documents that will be tried again. Of the named documents, `missing_uris` do not exist and
    `not_failed_uris` have not failed.
    """

    requeued: int
    missing_uris: list[str] = Field(default_factory=list, exclude_if=is_empty)
    not_failed_uris: list[str] = Field(default_factory=list, exclude_if=is_empty)


class ConfirmRequest(Request):
    """`source`: the folder's name in `status`."""

    source: Annotated[str, StringConstraints(min_length=1)]


class ConfirmResponse(Response):
    """The number of documents that are being removed."""

    source: str
    documents: int


class ListRequest(Request):
    """The query string of `GET /v1/documents`: documents in `state` whose URI begins with `prefix` and follows `after`."""

    state: DocumentState | None = None
    prefix: str = ""
    limit: int = Field(default=1_000, ge=1, le=10_000)
    after: str | None = None
    scope: ScopeParameter | None = None


class LeftOut(Response):
    """Content of a document that its passages do not contain. `kind` is one of a few fixed words; `text` is a sentence such as
    "2 of 9 pages have no text layer"."""

    kind: str
    count: int
    text: str


class DocumentEntry(Response):
    """A document. `passages` and `attempts` are counts. `error`: why the document failed or was skipped; `code`: the reason as
    a fixed word. `retryable`: whether another try of the failed, unchanged document can succeed. `left_out`: the omissions of
    an indexed document.
    """

    uri: str
    title: str
    state: DocumentState
    error: str | None = None
    code: str | None = None
    retryable: bool | None = Field(default=None, exclude_if=is_empty)
    passages: int
    attempts: int
    modified_at: AwareDatetime | None = None
    committed_at: AwareDatetime | None = None
    left_out: list[LeftOut] = Field(default_factory=list)


class DocumentList(Response):
    """Documents by URI. If more follow, send `next` as `after`."""

    documents: list[DocumentEntry]
    next: str | None = Field(default=None, exclude_if=is_empty)


class ShowRequest(Request):
    """The query string of `GET /v1/documents/{key}`. `limit`: maximum length of each list."""

    limit: int = Field(default=100, ge=1, le=10_000)
    scope: ScopeParameter | None = None


class TripleText(Response):
    subject: str
    predicate: str
    object: str


class WeightedPhrase(Response):
    phrase: str
    weight: float


class PassageSummary(Response):
    """A passage. `location`: the passage's place in the shown document; empty if no document is shown."""

    id: str
    title: str
    text: str
    location: dict[str, Any] = Field(default_factory=dict)


class PassageOccurrence(Response):
    """A document that contains the passage, and the passage's place in it."""

    document: str
    title: str
    location: dict[str, Any] = Field(default_factory=dict)


class DocumentLink(Response):
    """A link of a document, as its author wrote it. `passage`: the id of the passage that contains the link, or of a passage
    below the heading that contains the link."""

    target: str
    heading: str
    text: str
    passage: str


class ShowDocument(Response):
    """A document. `passages` are in reading order; `phrases` and `triples` come from these passages. `names`: names, outside
    its text, by which queries find the document."""

    kind: Literal["document"] = "document"
    document: DocumentEntry
    source: str
    next_try_at: AwareDatetime | None = None
    metadata: dict[str, Any]
    names: list[str] = Field(default_factory=list)
    links: list[DocumentLink] = Field(default_factory=list)
    passages: list[PassageSummary]
    phrases: list[str]
    triples: list[TripleText]
    counts: dict[str, int]


class ShowPassage(Response):
    """A passage. `extractor`: the model and prompt that found the triples, here or in the documents' records; null if the
    documents state them. `extraction`: the outcome of the local extraction: `done`, `stand_in` (by a quick extractor until the
    model has extracted the passage) or `failed`, with `extraction_error` and `extraction_attempts`; null if the documents
    provide the triples.
    """

    kind: Literal["passage"] = "passage"
    id: str
    title: str
    text: str
    extractor: str | None = None
    extraction: str | None = None
    extraction_attempts: int = 0
    extraction_error: str | None = None
    documents: list[PassageOccurrence]
    phrases: list[str]
    triples: list[TripleText]
    counts: dict[str, int]


class ShowPhrase(Response):
    """A phrase. `relations`, `synonyms`: edges to other phrases, by weight; `passages`: passages that contain the phrase."""

    kind: Literal["phrase"] = "phrase"
    text: str
    passages: list[PassageSummary]
    relations: list[WeightedPhrase]
    synonyms: list[WeightedPhrase]
    triples: list[TripleText]
    counts: dict[str, int]


class ShowTriple(Response):
    """A triple and the passages that state it."""

    kind: Literal["triple"] = "triple"
    subject: str
    predicate: str
    object: str
    passages: list[PassageSummary]
    counts: dict[str, int]


ShowResponse = Annotated[ShowDocument | ShowPassage | ShowPhrase | ShowTriple, Field(discriminator="kind")]
"""`pydantic.TypeAdapter(ShowResponse).validate_json(body)` returns the type that `kind` names."""
