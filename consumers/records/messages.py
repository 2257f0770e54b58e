"""Records as Kafka messages, keyed by URI. A null value removes the document. Large records are split into parts.

The headers contain the source position and the part's number, because both are needed before the value is read, and a removal
has no value. All parts of a record are in one partition. The first part has the URI as its key. The other keys consist of the
URI, a unit separator and the part's number, so that compaction keeps all parts. `PartAssembler` assembles the parts.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Generic, TypeVar

from consumers.records.record import Record, RecordError, SourcePosition
from consumers.records.writer import to_message

POSITION_HEADER = "hippod-position"
PART_HEADER = "hippod-part"
PART_SEPARATOR = "\x1f"
"""Does not occur in a URI, because control characters are percent-encoded there."""
ENVELOPE_BYTES = 2048
"""Bytes of a message that are reserved for headers and the broker's own fields."""

Headers = tuple[tuple[str, bytes | None], ...]

WAIT_S = 600.0
"""Seconds after which an incomplete record is dropped. A writer sends all parts within a minute."""
ORPHAN_WAIT_S = 10.0
"""Minimum time in seconds for which parts without their first part hold back the committed position. Writers send the first
part first, but if a stopped worker's duplicate follows, compaction keeps only the later first part. So the rest of the topic
must also have been read.
"""
MAX_HELD_BYTES = 512 * 1024 * 1024
"""Maximum total size of incomplete records. If it is exceeded, the oldest incomplete record is dropped."""
A = TypeVar("A")
"""The caller's token for a part. The token is returned once the part's record is complete or dropped."""
_Key = tuple[str, str, int]
"""URI, digest and number of parts."""


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


@dataclass(slots=True)
class _Group(Generic[A]):
    digest: str
    count: int
    position: SourcePosition | None
    since: float
    chunks: dict[int, bytes] = field(default_factory=dict)
    tokens: list[A] = field(default_factory=list)
    size: int = 0


@dataclass(frozen=True, slots=True)
class Assembled(Generic[A]):
    """Result of adding a part. `value` is the complete record, or None. `tokens` are the tokens of all its parts; empty until
    all parts have arrived.

    `broken`: all parts have arrived, but their digest is not that of the record; `value` is then None. `released` are the
    tokens of parts that were dropped.
    """

    value: bytes | None
    tokens: tuple[A, ...]
    released: tuple[A, ...]
    broken: bool = False


class PartAssembler(Generic[A]):
    """The incomplete records. All incomplete records with the same URI have the same position. For one thread.

    A writer acknowledges the source message of a record only after it has sent all parts. If parts are missing, the writer
    sends the whole record again. So incomplete records may be dropped after `WAIT_S`. Parts of an earlier version that a
    compacted topic still contains must be dropped.

    Two workers may send the same document concurrently. Their records have the same position but different digests, and their
    parts are interleaved; each record is assembled separately.

    The first part has the document's own key, so compaction drops it once a newer message of the document exists. If the newer
    message is a removal, compaction later drops the removal too, and only the other parts remain.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._groups: dict[_Key, _Group[A]] = {}
        self._keys: dict[str, list[_Key]] = {}
        self._clock = clock
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, uri: str, part: Part, position: SourcePosition | None, chunk: bytes, token: A) -> Assembled[A]:
        """Adds a part. If its position is older than the stored parts of the URI, the part is ignored; if newer, the stored
        parts are dropped."""
        released: list[A] = []
        key = (uri, part.digest, part.count)
        group = self._groups.get(key)
        if group is None:
            for other in self._keys.get(uri, [])[:]:
                stored = self._groups[other].position
                if _is_before(position, stored):
                    return Assembled(None, (), (token,))
                if not _are_equal(position, stored):
                    released += self._forget(other).tokens
            group = self._groups[key] = _Group(part.digest, part.count, position, self._clock())
            self._keys.setdefault(uri, []).append(key)
        group.tokens.append(token)
        if part.number not in group.chunks:
            group.chunks[part.number] = chunk
            group.size += len(chunk)
            self.held_bytes += len(chunk)
        if len(group.chunks) < group.count:
            return Assembled(None, (), (*released, *self._over_the_limit(key)))
        self._forget(key)
        value = b"".join(group.chunks[number] for number in range(group.count))
        broken = blake2b(value, digest_size=16).hexdigest() != group.digest
        return Assembled(None if broken else value, tuple(group.tokens), tuple(released), broken)

    def supersede(self, uri: str, position: SourcePosition | None) -> tuple[A, ...]:
        """Drops the parts that are replaced by a complete record or a removal at `position`. Returns their tokens.

        Parts with a newer position are kept. Parts with the same position are kept, because their record may still become
        complete, but their tokens are returned.
        """
        released: list[A] = []
        for key in self._keys.get(uri, [])[:]:
            group = self._groups[key]
            if _is_before(position, group.position):
                continue
            released += group.tokens
            group.tokens = []
            if position is None or not _are_equal(position, group.position):
                self._forget(key)
        return tuple(released)

    def expired(self, all_read: Callable[[A], bool]) -> tuple[A, ...]:
        """Returns the tokens of parts that have waited long enough.

        Parts without their first part are kept, in case the first part still arrives. `all_read(token)` returns whether the
        topic with the token's part has been read to its end.
        """
        now = self._clock()
        released: list[A] = []
        for key, group in list(self._groups.items()):
            if group.since < now - WAIT_S:
                released += self._forget(key).tokens
            elif 0 not in group.chunks and group.since < now - ORPHAN_WAIT_S and all(map(all_read, group.tokens)):
                released += group.tokens
                group.tokens = []
        return tuple(released)

    def _over_the_limit(self, newest: _Key) -> list[A]:
        released: list[A] = []
        while self.held_bytes > MAX_HELD_BYTES and len(self._groups) > 1:
            released += self._forget(next(key for key in self._groups if key != newest)).tokens
        return released

    def _forget(self, key: _Key) -> _Group[A]:
        group = self._groups.pop(key)
        self.held_bytes -= group.size
        keys = self._keys[key[0]]
        keys.remove(key)
        if not keys:
            del self._keys[key[0]]
        return group


def _is_before(position: SourcePosition | None, other: SourcePosition | None) -> bool:
    return position is not None and other is not None and position.is_before(other)


def _are_equal(position: SourcePosition | None, other: SourcePosition | None) -> bool:
    """Whether neither position is before the other. Two missing positions are equal; a missing position differs from any given
    position."""
    if position is None or other is None:
        return position is other
    return not position.is_before(other) and not other.is_before(position)
