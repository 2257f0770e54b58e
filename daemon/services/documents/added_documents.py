"""Validates added documents and derives their URIs."""

import json
import re
from hashlib import blake2b
from typing import Any
from urllib.parse import quote

ID_CHARS_MAX = 1024
_IMPORTED = re.compile(r"added:import/[0-9a-f]{16}")
Problem = tuple[str, str]
"""(name of the wrong field, its allowed values)."""


def check_document(document: dict[str, Any]) -> tuple[Problem | None, str]:
    """Returns the document's problem, if any, and its URI: `added:` with its id or a digest of its content.

    The ids 1 and "1" denote one document.
    """
    identity = document.get("id")
    if identity is None:
        identity = document.get("idx")
    if isinstance(identity, bool) or not isinstance(identity, str | int | None):
        return ("id", "a string or a whole number"), ""
    if isinstance(identity, str) and not 1 <= len(identity) <= ID_CHARS_MAX:
        return ("id", f"1 to {ID_CHARS_MAX} characters"), ""
    if document.get("deleted") is True:
        return (None, added_uri(str(identity))) if identity is not None else (("id", "needed to delete a document"), "")
    if "content_base64" in document:
        if not isinstance(document["content_base64"], str):
            return ("content_base64", "a file's bytes in base64"), ""
        if not isinstance(document.get("filename"), str):
            return ("filename", "the file's name, whose ending tells its format"), ""
    elif not isinstance(document.get("text"), str):
        return ("text", "a string; it is required"), ""
    if identity is None:
        identity = _digest(json.dumps(document, sort_keys=True))
    return None, added_uri(str(identity))


def document_labels(document: dict[str, Any], allowed: frozenset[str]) -> tuple[Problem | None, list[str]]:
    """Returns the document's problem, if any, and its labels, each of which must be in `allowed`. A single allowed label may be
    omitted."""
    labels = document.get("labels")
    if labels is None and len(allowed) == 1:
        return None, list(allowed)
    if (
        not isinstance(labels, list)
        or not labels
        or any(not isinstance(each, str) or each not in allowed for each in labels)
    ):
        choice = ", ".join(json.dumps(label, ensure_ascii=False) for label in sorted(allowed))
        return (
            "labels",
            f"a list of labels that this client sees: {choice}" if choice else "this client sees no label",
        ), []
    return None, labels


def imported_uri(content: str) -> str:
    """Returns the URI of an imported passage, which becomes a document of one passage."""
    return f"added:import/{_digest(content)}"


def is_imported(uri: str, payload: str) -> bool:
    """Whether an added document is an imported passage. A client's own id may look like that of one."""
    return _IMPORTED.fullmatch(uri) is not None and json.loads(payload).keys() == {"title", "text", "triples"}


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def added_uri(identity: str) -> str:
    """Returns `added:` and the id; characters with a meaning in URIs are percent-encoded."""
    return "added:" + quote(identity.encode("utf-8", "surrogatepass"), safe="/:@!$&'()*+,;=~-._")
