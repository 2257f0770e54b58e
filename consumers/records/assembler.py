"""Puts records together that came in parts. A record is whole, or it does not count.

Whoever writes parts acknowledges their source only once all are written: where some are missing, the record comes again as a
whole. So parts may be given up after a while, and the parts that a compacted topic has of an earlier version must be.

Two workers may send one article at once. Their records have one position, but another digest, and their parts come mixed: each
is put together by itself.

The first part has the document's own key, so compaction drops it when a newer message of the document comes. When that was a
removal, which compaction drops in its turn, the other parts stay behind alone.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Generic, TypeVar

from consumers.records.messages import Part
from consumers.records.record import SourcePosition

WAIT_S = 600.0
"""How long the parts of a record are waited for; a writer sends them within a minute."""
ORPHAN_WAIT_S = 10.0
"""How long parts without the first of their record hold up the position, at least. Writers send the first one first, but the
copy of a worker that was given up may follow it, and then compaction leaves the first part last: so all else that the topic
had has to be read, too."""
MAX_HELD_BYTES = 512 * 1024 * 1024
"""Most that is held of records that are not whole; beyond, the one that waits longest is given up."""

A = TypeVar("A")
"""What comes with each part, and goes back once the record is whole or given up."""


_Key = tuple[str, str, int]
"""URI, digest, and how many parts."""


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
    """`value`: the whole record's bytes, None while parts are missing; `tokens`: those of its parts, once all are there.

    With `broken` all parts are there, and together they are not what was written. `released`: tokens of parts that do not
    count any more.
    """

    value: bytes | None
    tokens: tuple[A, ...]
    released: tuple[A, ...]
    broken: bool = False


class PartAssembler(Generic[A]):
    """The records whose parts are coming: of each URI those of one position. For one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._groups: dict[_Key, _Group[A]] = {}
        self._keys: dict[str, list[_Key]] = {}
        self._clock = clock
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, uri: str, part: Part, position: SourcePosition | None, chunk: bytes, token: A) -> Assembled[A]:
        """Takes a part. One of an older position than those that are held does not count, and one of a newer voids them."""
        released: list[A] = []
        key = (uri, part.digest, part.count)
        group = self._groups.get(key)
        if group is None:
            for other in self._keys.get(uri, [])[:]:
                held = self._groups[other].position
                if _is_before(position, held):
                    return Assembled(None, (), (token,))
                if not _are_equal(position, held):
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
        """A whole record of the document has come, or its removal: gives back the tokens of parts that are no newer. Those of
        its own position are kept on: whole, they would be the record that came last."""
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
        """Gives back the tokens of parts that were waited for long enough. Parts without their first are kept on, so that they
        are whole should it come. `all_read`: whether all that the topic has beside a token's part was read."""
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
    """Whether neither is before the other. Records without a position are all of one; one without and one with are not."""
    if position is None or other is None:
        return position is other
    return not position.is_before(other) and not other.is_before(position)
