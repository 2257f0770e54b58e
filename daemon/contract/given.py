"""What `POST /v1/documents` takes, as JSON Schema. `daemon.services.naming` is what checks it."""

from typing import Annotated, Any

from pydantic import WithJsonSchema

Schema = dict[str, Any]

_NAME: Schema = {"anyOf": [{"type": "string", "minLength": 1, "maxLength": 1024}, {"type": "integer"}]}
_BY_ID: Schema = {"properties": {"id": _NAME}, "required": ["id"]}
_BY_IDX: Schema = {"properties": {"id": {"type": "null"}, "idx": _NAME}, "required": ["idx"]}
_BY_CONTENT: Schema = {"properties": {"id": {"type": "null"}, "idx": {"type": "null"}}, "required": []}
_KEPT: Schema = {"not": {"const": True}}
_TEXT: Schema = {
    "properties": {"text": {"type": "string"}, "deleted": _KEPT, "content_base64": False},
    "required": ["text"],
}
_FILE: Schema = {
    "properties": {"content_base64": {"type": "string"}, "filename": {"type": "string"}, "deleted": _KEPT},
    "required": ["content_base64", "filename"],
}
_GONE: Schema = {"properties": {"deleted": {"const": True}}, "required": ["deleted"]}


def _kind(what: Schema, name: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {**name["properties"], **what["properties"]},
        "required": [*name["required"], *what["required"]],
    }


DOCUMENT: Schema = {
    "title": "A document",
    "description": (
        "What is there to be read: `text`; or a file's bytes in base64 (`content_base64`) under its name (`filename`); or "
        "`deleted`, which removes the document of that `id`. `title` (a string), `url`, `published_at` and `triples` (lists "
        "of subject, predicate and object) have a meaning, every other key is kept as metadata. Without `id` (or `idx`) the "
        "content names the document. One of this shape that cannot be indexed all the same is listed as failed, with the "
        "reason."
    ),
    "anyOf": [
        *(_kind(what, name) for what in (_TEXT, _FILE) for name in (_BY_ID, _BY_IDX, _BY_CONTENT)),
        *(_kind(_GONE, name) for name in (_BY_ID, _BY_IDX)),
    ],
    "example": {"id": "lamp", "title": "Quill lamp", "text": "The Quill lamp was built by Sabine Rell."},
}

Given = Annotated[dict[str, Any], WithJsonSchema(DOCUMENT)]
