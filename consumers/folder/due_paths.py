"""Paths that wait until they are due: changed files until they have settled, and vanished files until they count as removed."""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from consumers.types import Stamp

MAX_UNSETTLED_S = 15.0
"""Maximum delay of a file that is continuously written, for example a log."""

T = TypeVar("T")


class DuePaths(Generic[T]):
    """Paths ordered by the time at which they are due (monotonic seconds), each with a value. For one thread."""

    def __init__(self) -> None:
        self._paths: dict[bytes, tuple[float, T]] = {}
        self._heap: list[tuple[float, bytes]] = []
        """Contains an entry for each path, and outdated entries."""
        self.left: list[bytes] = []
        """Paths that were removed since the owner last emptied this list. A removed path may be waiting again."""

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, path: bytes) -> bool:
        return path in self._paths

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._paths)

    def next_due(self) -> float | None:
        while self._heap:
            due, path = self._heap[0]
            waiting = self._paths.get(path)
            if waiting is not None and waiting[0] == due:
                return due
            heapq.heappop(self._heap)
        return None

    def pop_due(self, now: float) -> tuple[bytes, T] | None:
        """Removes and returns the first path that is due, with its value."""
        due = self.next_due()
        if due is None or due > now:
            return None
        path = heapq.heappop(self._heap)[1]
        value = self.discard(path)
        assert value is not None
        return path, value

    def discard(self, path: bytes) -> T | None:
        """Removes the path; returns its value, or None if it was not waiting."""
        if path not in self._paths:
            return None
        self.left.append(path)
        return self._remove(path)

    def clear(self) -> None:
        self._paths.clear()
        self._heap.clear()

    def _add(self, path: bytes, due: float, value: T) -> None:
        self._paths[path] = due, value
        heapq.heappush(self._heap, (due, path))

    def _remove(self, path: bytes) -> T:
        return self._paths.pop(path)[1]


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A changed file."""

    since: float
    complete: bool
    """Whether a program closed the file or moved it into place. Complete files are examined first."""
    stamp: Stamp | None
    """The file's stamp when it was last examined. The file has settled if the stamp is unchanged at the next
    examination."""
    content: bool
    """True if an event reported a write. Equal size and mtime then do not prove that the file is unchanged."""
    scanned: bool = False
    """True if a scan with many differences queued the path and no event named it."""


class DebounceQueue(DuePaths[Unsettled]):
    """Changed files. A file is examined once no event has named it for a while, or after `MAX_UNSETTLED_S`."""

    def __init__(self) -> None:
        super().__init__()
        self._stamps: Counter[Stamp] = Counter()

    def put(
        self,
        path: bytes,
        now: float,
        delay_s: float = 0.0,
        *,
        complete: bool = False,
        stamp: Stamp | None = None,
        content: bool = False,
        scanned: bool = False,
    ) -> None:
        """Adds a path; the latest event sets the delay. A `complete` file is due at once, before all others."""
        waiting = self._remove(path) if path in self else None
        if waiting is None:
            value = Unsettled(now, complete, stamp, content, scanned)
        else:
            value = Unsettled(waiting.since, complete, stamp, content or waiting.content, scanned and waiting.scanned)
        self._add(path, 0.0 if complete else now + delay_s, value)

    def put_back(self, path: bytes, waiting: Unsettled, due: float, stamp: Stamp | None) -> None:
        """Adds a popped path again because its file has not settled yet."""
        self._add(path, due, Unsettled(waiting.since, False, stamp, waiting.content, waiting.scanned))

    @property
    def has_complete(self) -> bool:
        return self.next_due() == 0.0

    def has_stamp(self, stamp: Stamp) -> bool:
        """Whether a waiting path had this stamp when it was last examined."""
        return self._stamps[stamp] > 0

    def clear(self) -> None:
        super().clear()
        self._stamps.clear()

    def _add(self, path: bytes, due: float, value: Unsettled) -> None:
        super()._add(path, min(due, value.since + MAX_UNSETTLED_S), value)
        if value.stamp is not None:
            self._stamps[value.stamp] += 1

    def _remove(self, path: bytes) -> Unsettled:
        value = super()._remove(path)
        if value.stamp is not None:
            self._stamps[value.stamp] -= 1
            if not self._stamps[value.stamp]:
                del self._stamps[value.stamp]
        return value


class PendingRemovals(DuePaths[str]):
    """Vanished files, each with its digest ("" if unknown). A new file with the same digest may be the moved file."""

    def __init__(self) -> None:
        super().__init__()
        self._digests: dict[str, set[bytes]] = {}

    def put(self, path: bytes, due: float, digest: str | None) -> None:
        """Adds a path. A path that is already pending keeps its time."""
        if path not in self:
            self._add(path, due, digest or "")
            self._digests.setdefault(digest or "", set()).add(path)

    def with_digest(self, digest: str | None) -> list[bytes]:
        return sorted(self._digests.get(digest, ())) if digest else []

    def clear(self) -> None:
        super().clear()
        self._digests.clear()

    def _remove(self, path: bytes) -> str:
        digest = super()._remove(path)
        same = self._digests[digest]
        same.discard(path)
        if not same:
            del self._digests[digest]
        return digest
