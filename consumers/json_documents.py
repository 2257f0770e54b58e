"""Reads JSON documents by the same rules from files, JSON lines, HippoRAG corpora, Kafka messages and the API."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.part_uri import NOT_IN_URI, part_uri, percent_encoded
from consumers.splitting import SplitSettings, assign_triples, read_triples, split_text
from consumers.types import ParsedDocument, stated_metadata

_SURROGATES = re.compile("[\ud800-\udfff]")
_NOT_IN_ID = re.compile(f"[{NOT_IN_URI}%]")
"""Characters of an id that are percent-encoded in its URI, including the percent sign, so that different ids have different
URIs."""
_OWN_KEYS = frozenset(("title", "text", "triples", "deleted"))
_MAX_DEPTH = 32
_MAX_STRINGS = 100
_MAX_ID_CHARS = 1024
_MAX_TITLE_CHARS = 2000
_SHAPE = '{"id", "title", "text", "url", "published_at", "triples", …}'


BLANK = '"text" is blank: there is nothing to index'


class _InvalidDocument(Exception):
    """A value of the document is invalid; the message names its key and the allowed values."""


def read_json_document(value: object, base_uri: str, default_id: str | None, settings: SplitSettings) -> ParsedDocument:
    """Returns the document with the URI `base_uri` + id, split into passages, with its triples assigned. `default_id`
    replaces a missing id.

    For an invalid value, returns a document with `error`, under the value's id if that is valid, else under `default_id`.
    """
    uri = base_uri + (default_id or "unnamed")
    try:
        if not isinstance(value, dict):
            raise _InvalidDocument(f"a document must be a JSON object like {_SHAPE}, not {_type_name(value)}")
        identity = _identity(value, default_id)
        uri = base_uri + _NOT_IN_ID.sub(percent_encoded, identity)
        return read_json_object(value, uri, settings)
    except _InvalidDocument as error:
        return ParsedDocument(uri, error=str(error), code=FailureCode.JSON)


def read_json_object(value: Mapping[str, Any], uri: str, settings: SplitSettings) -> ParsedDocument:
    """Returns the document of a JSON object whose URI is already known. If a value is invalid, the document has an
    `error`."""
    try:
        deleted = value.get("deleted")
        if deleted is not None and not isinstance(deleted, bool):
            raise _InvalidDocument(f'"deleted" must be true or false, not {_type_name(deleted)}')
        if deleted:
            return ParsedDocument(uri, deleted=True)
        title = _title(value)
        text = value.get("text")
        if not isinstance(text, str):
            missing = "text" not in value
            raise _InvalidDocument(
                '"text" is missing; it must be a string'
                if missing
                else f'"text" must be a string, not {_type_name(text)}'
            )
        for key in ("url", "published_at"):
            given = value.get(key)
            if given is not None and not isinstance(given, str | int | float):
                raise _InvalidDocument(f'"{key}" must be a string, not {_type_name(given)}')
        if value.get("triples") is not None and not isinstance(value["triples"], list):
            raise _InvalidDocument(
                f'"triples" must be a list of [subject, predicate, object], not {_type_name(value["triples"])}'
            )
    except _InvalidDocument as error:
        return ParsedDocument(uri, error=str(error), code=FailureCode.JSON)
    return _read_fields(value, uri, title, _valid_unicode(text), settings)


def _read_fields(value: Mapping[str, Any], uri: str, title: str, text: str, settings: SplitSettings) -> ParsedDocument:
    omissions = Omissions()
    metadata = stated_metadata(
        {_valid_unicode(str(key)): _json_value(item, omissions) for key, item in value.items() if key not in _OWN_KEYS}
    )
    passages = split_text(text, title, settings)
    if value.get("triples") is not None:
        triples, dropped = read_triples(value["triples"])
        passages = assign_triples(
            passages, [(_valid_unicode(s), _valid_unicode(p), _valid_unicode(o)) for s, p, o in triples]
        )
        if dropped:
            metadata["dropped_triples"] = len(dropped)
            for item in dropped:
                omissions.add(OmissionKind.OTHER, " ".join(map(_valid_unicode, _strings(item))))
    if not passages:
        return ParsedDocument(uri, title, metadata=metadata, error=BLANK, skipped=True, code=FailureCode.NO_TEXT)
    return ParsedDocument(uri, title, passages, metadata, left_out=omissions.done())


def read_json_line(line: bytes | str, number: int, base_uri: str, settings: SplitSettings) -> ParsedDocument:
    """Returns the document of one line (counted from 1). A document without an id gets the id `line-<number>`."""
    default_id = f"line-{number}"
    try:
        value = parse_json(line)
    except ValueError as error:
        return ParsedDocument(f"{base_uri}{default_id}", error=f"line {number}: {error}", code=FailureCode.JSON)
    return read_json_document(value, base_uri, default_id, settings)


def read_json_lines(
    data: bytes, base_uri: str, settings: SplitSettings, first_line: int = 1
) -> Iterator[ParsedDocument]:
    """Yields the documents of JSON lines, without blank lines. `first_line` is the number of the first line in the whole
    file."""
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), first_line):
        if line.strip():
            yield read_json_line(line, number, base_uri, settings)


def is_corpus(value: object) -> bool:
    """Whether a JSON value is a HippoRAG corpus, `[{"idx", "title", "text"}, …]`, or a list of documents.

    An item without "text" becomes a failed document and does not affect the others.
    """
    return (
        isinstance(value, list)
        and all(isinstance(item, dict) for item in value)
        and any("text" in item for item in value)
    )


def read_corpus(value: list[Any], base_uri: str, settings: SplitSettings) -> Iterator[ParsedDocument]:
    """Yields the documents of a HippoRAG corpus. A document's id is its `id`, else `idx`, else its index in the list (from
    0)."""
    for place, item in enumerate(value):
        named = isinstance(item, dict) and isinstance(item.get("idx"), int | str)
        default_id = str(item["idx"]) if named else str(place)
        yield read_json_document(item, base_uri, default_id, settings)


def read_json_value(
    value: object, uri: str, settings: SplitSettings, fallback_title: str = ""
) -> Iterator[ParsedDocument]:
    """Yields the document of a JSON file under the file's URI, or the documents of a corpus under `<uri>#<idx>`."""

    def skipped(reason: str, code: FailureCode = FailureCode.JSON) -> ParsedDocument:
        return ParsedDocument(uri, fallback_title, error=reason, skipped=True, code=code)

    if isinstance(value, list) and is_corpus(value):
        yield from read_corpus(value, part_uri(uri, ""), settings)
    elif isinstance(value, dict) and ("text" in value or value.get("deleted") is True):
        document = read_json_object(value, uri, settings)
        yield replace(document, title=document.title or fallback_title)
    elif isinstance(value, dict) and isinstance(value.get("docs"), list):
        yield skipped("HippoRAG's OpenIE results; load them with `hippoctl import`", FailureCode.NOT_A_DOCUMENT)
    else:
        yield skipped(f"JSON, but neither a document {_SHAPE} nor a list of them; exclude it")


def parse_json(data: bytes | str) -> Any:
    """Parses a JSON text in UTF-8, -16 or -32. Raises ValueError with a one-sentence message for any invalid text."""
    try:
        return json.loads(data)
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start:,}; save it as UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise ValueError(f"not JSON at {place}: {error.msg}") from None
    except RecursionError:
        raise ValueError("JSON nested too deeply to be read; flatten it") from None
    except ValueError as error:  # a number with more digits than Python converts
        raise ValueError(f"JSON with a value that cannot be read: {str(error).partition(';')[0]}") from None


def _identity(value: Mapping[str, Any], default_id: str | None) -> str:
    given = value.get("id")
    if given is None:
        if default_id is None:
            raise _InvalidDocument('"id" is missing; it must be a string or a whole number')
        return default_id
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise _InvalidDocument(f'"id" must be a string or a whole number, not {_type_name(given)}')
    identity = given if isinstance(given, str) else _digits(given)
    if not identity.strip() or len(identity) > _MAX_ID_CHARS:
        raise _InvalidDocument(f'"id" must have between 1 and {_MAX_ID_CHARS} characters')
    return identity


def _title(value: Mapping[str, Any]) -> str:
    title = value.get("title")
    if title is None:
        return ""
    if not isinstance(title, str):
        raise _InvalidDocument(f'"title" must be a string, not {_type_name(title)}')
    if len(title) > _MAX_TITLE_CHARS:
        raise _InvalidDocument(f'"title" has {len(title):,} characters; at most {_MAX_TITLE_CHARS:,} are allowed')
    return _valid_unicode(title)


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    names = {
        bool: "a truth value",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)


def _valid_unicode(text: str) -> str:
    """Replaces halves of surrogate pairs, which UTF-8 cannot encode."""
    return _SURROGATES.sub("\ufffd", text)


def _digits(number: int) -> str:
    return str(number) if number.bit_length() <= 4096 else ""


def _json_value(value: object, omissions: Omissions, depth: int = 0) -> Any:
    """Returns the value with valid strings, finite 64-bit numbers and limited depth, so that any JSON parser accepts it."""
    if isinstance(value, str):
        return _valid_unicode(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < 64 else (_digits(value) or "a very large number")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _MAX_DEPTH:
        omissions.add(OmissionKind.TOO_LARGE, " ".join(map(_valid_unicode, _strings(value))))
        return "…"
    if isinstance(value, list):
        return [_json_value(item, omissions, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_valid_unicode(str(key)): _json_value(item, omissions, depth + 1) for key, item in value.items()}
    return _valid_unicode(str(value))


def _strings(value: object) -> Iterator[str]:
    """Yields the strings in a nested value, at most the first `_MAX_STRINGS`."""
    waiting, found = [value], 0
    while waiting and found < _MAX_STRINGS:
        item = waiting.pop()
        if isinstance(item, str):
            found += 1
            yield item
        elif isinstance(item, dict):
            waiting += [*item.values(), *item]
        elif isinstance(item, list):
            waiting += reversed(item)
