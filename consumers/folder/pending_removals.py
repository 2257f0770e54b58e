"""Vanished files whose removal is pending, because they may appear under another path."""

import heapq
from collections.abc import Iterator


class PendingRemovals:
    """Vanished paths, each with its file's digest and the time (monotonic seconds) at which it counts as removed."""

    def __init__(self) -> None:
        self._paths: dict[bytes, tuple[float, str | None]] = {}
        self._digests: dict[str, set[bytes]] = {}
        self._heap: list[tuple[float, bytes]] = []
        self.left: list[bytes] = []
        """Paths that were taken out since the owner last emptied this list. Such a path may be pending again meanwhile."""

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, path: bytes) -> bool:
        return path in self._paths

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._paths)

    def put(self, path: bytes, due: float, digest: str | None) -> None:
        """Adds a path. A path that is already pending keeps its time."""
        if path in self._paths:
            return
        self._paths[path] = (due, digest)
        if digest is not None:
            self._digests.setdefault(digest, set()).add(path)
        heapq.heappush(self._heap, (due, path))

    def discard(self, path: bytes) -> None:
        if path not in self._paths:
            return
        self.left.append(path)
        _, digest = self._paths.pop(path)
        if digest is not None:
            same = self._digests[digest]
            same.discard(path)
            if not same:
                del self._digests[digest]

    def with_digest(self, digest: str) -> list[bytes]:
        return sorted(self._digests.get(digest, ()))

    def next_due(self) -> float | None:
        while self._heap:
            due, path = self._heap[0]
            pending = self._paths.get(path)
            if pending is not None and pending[0] == due:
                return due
            heapq.heappop(self._heap)
        return None

    def pop_due(self, now: float) -> bytes | None:
        due = self.next_due()
        if due is None or due > now:
            return None
        path = heapq.heappop(self._heap)[1]
        self.discard(path)
        return path

    def clear(self) -> None:
        self._paths.clear()
        self._digests.clear()
        self._heap.clear()
