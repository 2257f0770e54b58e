"""`/v1/documents` and `/v1/retry`: adding, listing, removing and retrying documents."""

from collections.abc import Sequence
from typing import Annotated, Any

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


def _object(content: Schema, identity: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {**identity["properties"], **content["properties"]},
        "required": [*identity["required"], *content["required"]],
    }


DOCUMENT_SCHEMA: Schema = {
    "title": "A document",
    "description": (
        "What is there to be read: `text`; or a file's bytes in base64 (`content_base64`) under its name (`filename`); or "
        "`deleted`, which removes the document of that `id`. `title` (a string), `url`, `published_at` and `triples` (lists "
        "of subject, predicate and object) have a meaning, every other key is kept as metadata (`kafka`, "
        "`record` and `left_out` as `kafka_`, `record_` and `left_out_`). Without `id` (or `idx`) the content names the "
        "document. One of this shape that cannot be indexed all the same is listed as failed, with the reason."
    ),
    "anyOf": [
        *(_object(content, identity) for content in (_TEXT, _FILE) for identity in (_BY_ID, _BY_IDX, _BY_CONTENT)),
        *(_object(_DELETION, identity) for identity in (_BY_ID, _BY_IDX)),
    ],
    "example": {"id": "lamp", "title": "Quill lamp", "text": "The Quill lamp was built by Sabine Rell."},
}
"""JSON Schema of a document that is added. `daemon.services.documents.added_documents` checks it."""

DOCUMENT_KEYS = frozenset(
    ("id", "idx", "title", "text", "url", "published_at", "triples", "labels", "deleted", "content_base64", "filename")
)
"""Keys of an added document that have a meaning: they are not free for metadata."""
INTERNAL_KEYS = frozenset(("kafka", "record", "left_out"))
"""Keys of metadata that hippod alone writes. In a document they are kept under `kafka_`, `record_` and `left_out_`."""

DocumentJson = Annotated[dict[str, Any], WithJsonSchema(DOCUMENT_SCHEMA)]


class AddRequest(Request):
    """JSON documents: `text` is required; `id`, `title`, `url`, `published_at` and `triples` have a meaning.

    Every other key is kept as metadata. A HippoRAG corpus entry (`idx` for `id`) is one too.
    """

    documents: list[DocumentJson] = Field(min_length=1)


class AddResponse(Response):
    """Once it is sent, a crash does not lose the documents."""

    accepted: int
    documents: list[str]
    position: dict[str, int] = Field(default_factory=dict, exclude_if=is_empty)
    """For a query's `after`: a memory that has these documents."""


class RemoveRequest(Request):
    uris: Sequence[Uri] = Field(min_length=1)


class RemoveResponse(Response):
    """Counts; `missing_uris` names those of which no document was found."""

    removed: int
    missing: int
    missing_uris: list[str] = Field(default_factory=list, exclude_if=is_empty)


class RemoveSourceRequest(Request):
    """What a source has committed: all of it, or since a time. `source`: as `status` names it. With `dry_run` nothing is
    removed.

    A document that the source has replaced since counts as committed since.
    """

    source: Annotated[str, StringConstraints(min_length=1)]
    committed_since: Timestamp | None = None
    dry_run: JsonBoolean = False


class RemoveSourceResponse(Response):
    """`documents`: the URIs, in order. `removed`: how many of them are gone, 0 after a dry run."""

    source: str
    documents: list[str]
    removed: int


class RetryRequest(Request):
    """Without `uris`, every failed document."""

    uris: Sequence[Uri] | None = None


class RetryResponse(Response):
    """How many documents are to be tried again. Of those that were named, `missing_uris` are not there, and `not_failed_uris`
    have not failed."""

    requeued: int
    missing_uris: list[str] = Field(default_factory=list, exclude_if=is_empty)
    not_failed_uris: list[str] = Field(default_factory=list, exclude_if=is_empty)


class ConfirmRequest(Request):
    """`source`: as `status` names it."""

    source: Annotated[str, StringConstraints(min_length=1)]


class ConfirmResponse(Response):
    """How many documents are being forgotten."""

    source: str
    documents: int


class ListRequest(Request):
    """The query string of `GET /v1/documents`: those in `state` whose URI begins with `prefix`, after URI `after`."""

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
    """`passages` and `attempts` are counts; `error` says why a document failed or was skipped, `code` the same in a word.
    `left_out` is the account of omissions of an indexed document.

    `retryable`, of one that failed: whether another try can end otherwise while the document is what it is.
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
    """In order of URI. Where more follow there is a `next`: send it back as `after`."""

    documents: list[DocumentEntry]
    next: str | None = Field(default=None, exclude_if=is_empty)
