"""Converts files and JSON lines to the JSON documents that `add` sends; reports rejected inputs with place and reason.

hippoctl reads the files, because the daemon never opens a path that a client names. A `.json` or `.jsonl` file contains
documents. Any other file is one document: its id is its absolute path, its bytes are sent as `content_base64` and its name as
`filename`, so that the daemon parses it like a file in a folder.
"""

import base64
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from cli.terminal_text import one_line, truncate


@dataclass(frozen=True, slots=True)
class ReadyDocument:
    """One document as JSON in UTF-8, as it is sent. `where` names its origin in messages."""

    where: str
    body: bytes


@dataclass(frozen=True, slots=True)
class RejectedDocument:
    """An input that is not a document, and the reason."""

    where: str
    error: str

    def to_json(self) -> dict[str, str]:
        return {"where": self.where, "error": self.error}


TOO_LARGE = (
    "is larger than a request may be: raise [api] request_bytes (base64 adds a third to a file), or put the file into a "
    "followed folder"
)
MAX_FILE_BYTES = 1024**3
"""A file above this size is refused without being read; hippoctl needs several times the size in memory."""


DocumentResult = ReadyDocument | RejectedDocument


RefuseCorpus = Callable[[Path, list[dict[str, Any]]], str | None]
"""Returns why a HippoRAG corpus must not be added, or None if it may be added."""


def read_file(path: Path, id_prefix: str = "", refuse: RefuseCorpus | None = None) -> Iterator[DocumentResult]:
    """Yields the documents in a file. `id_prefix` is put before the ids of JSON documents."""
    where = os.fsencode(path).decode("utf-8", "replace")
    try:
        if not path.is_file():
            yield RejectedDocument(where, "is a directory; name its files" if path.is_dir() else _missing_reason(path))
        elif path.suffix.lower() in (".jsonl", ".ndjson"):
            with path.open("rb") as lines:
                yield from read_json_lines(lines, where, id_prefix)
        elif path.suffix.lower() == ".json":
            yield from _json_file(path, where, id_prefix, refuse)
        elif path.stat().st_size > MAX_FILE_BYTES:
            yield RejectedDocument(where, TOO_LARGE)
        else:
            yield encode_document(_whole_file(path), where)
    except OSError as error:
        yield RejectedDocument(where, f"cannot be read: {error.strerror or error}")


def read_json_lines(lines: BinaryIO | Iterable[bytes], where: str, id_prefix: str = "") -> Iterator[DocumentResult]:
    """Yields one JSON document for each line; skips empty lines."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _parsed(line, f"{where}:{number}", id_prefix)


def encode_document(document: object, where: str, id_prefix: str = "") -> DocumentResult:
    """Converts a value to a document, or to a rejection."""
    if isinstance(document, dict) and id_prefix:
        document = _prefixed(document, id_prefix)
    if not isinstance(document, dict):
        return RejectedDocument(where, f"is a JSON {_json_type(document)}; a document is an object with a `text`")
    empty = document.get("deleted") is True or "content_base64" in document
    if not empty and not isinstance(document.get("text"), str):
        problem = "has no `text`" if "text" not in document else f"its `text` is a {_json_type(document['text'])}"
        keys = ", ".join(sorted(map(str, document))) or "none"
        return RejectedDocument(where, f"{problem}; a document needs one (its keys: {truncate(one_line(keys), 120)})")
    try:
        return ReadyDocument(where, json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8"))
    except UnicodeEncodeError:
        return RejectedDocument(where, "contains a lone surrogate, which UTF-8 cannot represent")
    except ValueError:
        return RejectedDocument(where, "contains a number that JSON cannot represent (infinite, or NaN)")
    except RecursionError:
        return RejectedDocument(where, "is nested too deeply")


def _prefixed(document: dict[str, Any], id_prefix: str) -> dict[str, Any]:
    """Returns the document with the prefix before its id. A document without an id is unchanged: its content identifies it."""
    for key in ("id", "idx"):
        value = document.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return {**document, key: f"{id_prefix}/{value}"}
    return document


def _parsed(content: bytes, where: str, id_prefix: str) -> DocumentResult:
    try:
        return encode_document(_load(content), where, id_prefix)
    except ValueError as error:
        return RejectedDocument(where, f"is not JSON: {_json_error(error)}")
    except RecursionError:
        return RejectedDocument(where, "is nested too deeply")


def _json_file(path: Path, where: str, id_prefix: str, refuse: RefuseCorpus | None) -> Iterator[DocumentResult]:
    """Yields the documents of a file: one document, an array (a HippoRAG corpus), or an object with `documents`."""
    try:
        value = _load(path.read_bytes())
    except (ValueError, RecursionError) as error:
        yield RejectedDocument(where, f"is not JSON: {_json_error(error)}")
        return
    if isinstance(value, dict) and "text" not in value and isinstance(value.get("docs"), list):
        yield RejectedDocument(where, f"is a HippoRAG OpenIE file; take it in with `hippoctl import {one_line(where)}`")
        return
    if isinstance(value, dict) and "text" not in value and isinstance(value.get("documents"), list):
        value = value["documents"]
    if not isinstance(value, list):
        yield encode_document(value, where, id_prefix)
        return
    is_corpus = bool(value) and all(isinstance(each, dict) and "idx" in each and "id" not in each for each in value)
    if is_corpus and refuse is not None and (why := refuse(path, value)) is not None:
        yield RejectedDocument(where, why)
        return
    for number, document in enumerate(value, 1):
        yield encode_document(document, f"{where}[{number}]", id_prefix)


def _whole_file(path: Path) -> dict[str, str]:
    return {
        "id": _path_text(path.absolute()),
        "filename": _path_text(path.name),
        "content_base64": base64.b64encode(path.read_bytes()).decode("ascii"),
    }


def _path_text(path: Path | str) -> str:
    """Returns a path as text. Bytes that are not UTF-8 are escaped, so that different names stay different."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _load(content: bytes) -> Any:
    return json.loads(content.decode("utf-8-sig"), parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _missing_reason(path: Path) -> str:
    return "is not a regular file" if path.exists() else "does not exist"


def _json_type(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def _json_error(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
