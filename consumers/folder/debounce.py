"""Debouncing: a changed file is read only after it has not changed for a while. All events for a path share one entry."""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from consumers.types import Stamp

MAX_UNSETTLED_S = 15.0
"""Maximum delay of a file that is written without pause, for example a log."""


@dataclass(slots=True)
class WaitingPath:
    since: float
    due: float
    """Monotonic seconds. 0 for a file that was closed or moved into place: such a file is complete and goes first."""
    stamp: Stamp | None
    """The file's stamp when it was last examined. The file has settled if the stamp is unchanged at the next
    examination."""
    content: bool
    """True if an event reported a write. Equal size and mtime then do not prove that the file is unchanged."""
    scanned: bool = False
    """True if a scan with many differences queued the path and no event named it."""


class DebounceQueue:
    """A queue of paths ordered by due time. The latest event sets the due time, but no path waits longer than
    `MAX_UNSETTLED_S`."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, WaitingPath] = {}
        self._heap: list[tuple[float, bytes]] = []
        self._stamps: Counter[Stamp] = Counter()
        self.left: list[bytes] = []
        """Paths that were popped since the owner last emptied this list. Such a path may be queued again meanwhile."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, path: bytes) -> bool:
        return path in self._waiting

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._waiting)

    def put(
        self,
        path: bytes,
        now: float,
        due: float,
        *,
        stamp: Stamp | None = None,
        content: bool = False,
        scanned: bool = False,
    ) -> None:
        waiting = self._drop(path)
        if waiting is None:
            self._add(path, WaitingPath(now, due, stamp, content, scanned))
        else:
            content, scanned = content or waiting.content, scanned and waiting.scanned
            self._add(path, WaitingPath(waiting.since, due, stamp, content, scanned))

    def put_back(self, path: bytes, waiting: WaitingPath, due: float, stamp: Stamp | None) -> None:
        """Queues a popped path again because its file has not settled yet."""
        self._add(path, WaitingPath(waiting.since, due, stamp, waiting.content, waiting.scanned))

    def has_stamp(self, stamp: Stamp) -> bool:
        """Whether a waiting path had this stamp when it was last examined."""
        return self._stamps[stamp] > 0

    def next_due(self) -> float | None:
        while self._heap:
            due, path = self._heap[0]
            waiting = self._waiting.get(path)
            if waiting is not None and waiting.due == due:
                return due
            heapq.heappop(self._heap)
        return None

    def pop_due(self, now: float) -> tuple[bytes, WaitingPath] | None:
        due = self.next_due()
        if due is None or due > now:
            return None
        path = heapq.heappop(self._heap)[1]
        waiting = self._drop(path)
        assert waiting is not None
        self.left.append(path)
        return path, waiting

    def clear(self) -> None:
        self._waiting.clear()
        self._heap.clear()
        self._stamps.clear()

    def _add(self, path: bytes, waiting: WaitingPath) -> None:
        waiting.due = min(waiting.due, waiting.since + MAX_UNSETTLED_S)
        self._waiting[path] = waiting
        if waiting.stamp is not None:
            self._stamps[waiting.stamp] += 1
        heapq.heappush(self._heap, (waiting.due, path))

    def _drop(self, path: bytes) -> WaitingPath | None:
        waiting = self._waiting.pop(path, None)
        if waiting is not None and waiting.stamp is not None:
            self._stamps[waiting.stamp] -= 1
            if not self._stamps[waiting.stamp]:
                del self._stamps[waiting.stamp]
        return waiting
