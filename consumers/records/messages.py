"""Records as Kafka messages, keyed by URI. A null value removes the document. Large records are split into parts.

The headers contain the source position and the part's number: these are needed before the value is read, and a removal has no
value. All parts of a record are in one partition. The first part has the URI as its key. The other keys consist of the URI, a
unit separator and the part's number, so that compaction keeps all parts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from consumers.records.record import Record, RecordError, SourcePosition
from consumers.records.writer import to_message

POSITION_HEADER = "hippod-position"
PART_HEADER = "hippod-part"
PART_SEPARATOR = "\x1f"
"""Does not occur in a URI, because control characters are percent-encoded there."""
ENVELOPE_BYTES = 2048
"""Bytes of a message that are reserved for headers and the broker's own fields."""

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class RecordMessage:
    """One Kafka message. `uri` decides the partition. `value` is None if the document is removed."""

    uri: str
    key: bytes
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class Part:
    """Part `number` (from 0) of `count`. `digest` is the hex digest of the complete record."""

    number: int
    count: int
    digest: str


def to_messages(record: Record, max_bytes: int) -> list[RecordMessage]:
    """Returns the messages of a record: one, or several parts of at most `max_bytes` each."""
    key = record.uri.encode()
    headers: Headers = ()
    if record.position is not None:
        headers = ((POSITION_HEADER, json.dumps(record.position.to_json()).encode()),)
    if record.document.deleted:
        return [RecordMessage(record.uri, key, None, headers)]
    value = to_message(record)
    room = max(max_bytes - len(key) - ENVELOPE_BYTES, ENVELOPE_BYTES)
    if len(value) <= room:
        return [RecordMessage(record.uri, key, value, headers)]
    digest = blake2b(value, digest_size=16).hexdigest()
    count = -(-len(value) // room)
    messages = []
    for number in range(count):
        part = {"number": number, "count": count, "digest": digest}
        suffix = f"{PART_SEPARATOR}{number}".encode() if number else b""
        chunk = value[number * room : (number + 1) * room]
        messages.append(
            RecordMessage(record.uri, key + suffix, chunk, (*headers, (PART_HEADER, json.dumps(part).encode())))
        )
    return messages


def uri_of(key: bytes | None) -> str:
    """Returns the URI in a message's key. Raises RecordError if the key is missing or not UTF-8."""
    if not key:
        raise RecordError("the message has no key; records are keyed by URI")
    try:
        return key.decode().partition(PART_SEPARATOR)[0]
    except UnicodeDecodeError as error:
        raise RecordError("the key is not UTF-8, so it is not a URI") from error


def position_of(headers: Headers) -> SourcePosition | None:
    """Returns the source position in the headers, if any. Raises RecordError if the header is invalid."""
    value = _json_header(headers, POSITION_HEADER)
    return None if value is None else SourcePosition.from_json(value)


def part_of(headers: Headers) -> Part | None:
    """Returns the part in the headers, if any. Raises RecordError if the header is invalid."""
    value = _json_header(headers, PART_HEADER)
    if value is None:
        return None
    number, count, digest = value.get("number"), value.get("count"), value.get("digest")
    if type(number) is not int or type(count) is not int or not isinstance(digest, str) or not 0 <= number < count:
        raise RecordError(f'the header "{PART_HEADER}" does not say which part this is')
    return Part(number, count, digest)


def _json_header(headers: Headers, name: str) -> Mapping[str, object] | None:
    value = dict(headers).get(name)
    if value is None:
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RecordError(f'the header "{name}" is not a JSON object')
    return found
