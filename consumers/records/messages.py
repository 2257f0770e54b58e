"""Records as Kafka messages: keyed by URI, a null value removes, and a record that is too large comes in parts.

Headers carry what must be known before a value is read, or where there is none: the source position, and which part this is.
The parts of a record share its partition; the first has the URI as its key, the others the URI, a unit separator and their
number, so that compaction keeps all of them.
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
"""No URI has it: control characters are percent-encoded there."""
ENVELOPE_BYTES = 2048
"""What key, headers and the broker's own fields may take of a message's size."""

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class RecordMessage:
    """`uri` decides the partition; `value` is None where the document is removed."""

    uri: str
    key: bytes
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class Part:
    """Part `number` (from 0) of `count`. `digest` is that of the whole record's bytes, in hex."""

    number: int
    count: int
    digest: str


def to_messages(record: Record, max_bytes: int) -> list[RecordMessage]:
    """One message, or several of at most `max_bytes` each."""
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
    """The document that a message is about. Raises RecordError."""
    if not key:
        raise RecordError("the message has no key; records are keyed by URI")
    try:
        return key.decode().partition(PART_SEPARATOR)[0]
    except UnicodeDecodeError as error:
        raise RecordError("the key is not UTF-8, so it is not a URI") from error


def position_of(headers: Headers) -> SourcePosition | None:
    """Raises RecordError where there is a header that says no position."""
    value = _json_header(headers, POSITION_HEADER)
    return None if value is None else SourcePosition.from_json(value)


def part_of(headers: Headers) -> Part | None:
    """Raises RecordError where there is a header that says no part."""
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
