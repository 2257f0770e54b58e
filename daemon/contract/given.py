"""What `POST /v1/documents` takes, as JSON Schema. `daemon.services.naming` is what checks it."""

from typing import Annotated, Any

from pydantic import WithJsonSchema

_NAMES = {
    key: {"anyOf": [{"type": "string", "minLength": 1, "maxLength": 1024}, {"type": "integer"}, {"type": "null"}]}
    for key in ("id", "idx")
}
_KEPT = {"not": {"const": True}}
_TEXT = {
    "type": "object",
    "properties": {**_NAMES, "text": {"type": "string"}, "deleted": _KEPT, "content_base64": False},
    "required": ["text"],
    "example": {"id": "lamp", "title": "Quill lamp", "text": "The Quill lamp was built by Sabine Rell."},
}
_FILE = {
    "type": "object",
    "properties": {
        **_NAMES,
        "content_base64": {"type": "string", "contentEncoding": "base64"},
        "filename": {"type": "string"},
        "deleted": _KEPT,
    },
    "required": ["content_base64", "filename"],
}
_GONE = {
    "type": "object",
    "properties": {"id": {"anyOf": _NAMES["id"]["anyOf"][:2]}, "deleted": {"const": True}},
    "required": ["id", "deleted"],
}
DOCUMENT: dict[str, Any] = {
    "title": "A document",
    "description": (
        "What is there to be read: `text`; or a file's bytes (`content_base64`) under its name (`filename`); or `deleted`, "
        "which removes the document of that `id`. `title` (a string), `url`, `published_at` and `triples` (lists of subject, "
        "predicate and object) have a meaning, every other key is kept as metadata. Without `id` (or `idx`) the content "
        "names the document. One of this shape that cannot be indexed all the same is listed as failed, with the reason."
    ),
    "anyOf": [_TEXT, _FILE, _GONE],
}

Given = Annotated[dict[str, Any], WithJsonSchema(DOCUMENT)]
