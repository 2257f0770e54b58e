"""Changes that are read and wait to be committed, in order."""

import asyncio
from collections import deque

from daemon.pipeline.backpressure import Capacity, QueueLimits
from daemon.pipeline.work import Change, ExtractionsFound

BATCH_MAX_CHANGES = 512


class CommitQueue:
    """On the event loop. `put` waits while too much is here."""

    def __init__(self, limits: QueueLimits) -> None:
        self._changes: deque[Change] = deque()
        self.capacity = Capacity(limits.queue_passages, limits.queue_bytes)
        """What waits: passages, and bytes of their text. Beyond it, reading waits."""
        self._filled = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    def __len__(self) -> int:
        return len(self._changes)

    async def put(self, change: Change) -> None:
        while not self.capacity.free:
            self._has_room.clear()
            await self._has_room.wait()
        self.put_now(change)

    def put_now(self, change: Change) -> None:
        """Without waiting for room: for what must keep its place before anything that comes later."""
        self._changes.append(change)
        self.capacity.take(change.size, change.bytes)
        self._filled.set()

    async def wait_until_filled(self) -> None:
        """Returns when something has come since the last call."""
        await self._filled.wait()
        self._filled.clear()

    def next_batch(self, max_passages: int) -> list[Change]:
        """The longest run of changes that fits a batch and in which no key comes twice: steps of one key stay apart."""
        taken: list[Change] = []
        keys: set[str] = set()
        size = 0
        while self._changes and len(taken) < BATCH_MAX_CHANGES:
            change = self._changes[0]
            touched = _keys(change)
            if taken and (size + change.size > max_passages or touched & keys):
                break
            keys |= touched
            size += change.size
            self._changes.popleft()
            self.capacity.release(change.size, change.bytes)
            taken.append(change)
        self._has_room.set()
        return taken


def _keys(change: Change) -> set[str]:
    """The documents and files of which a batch may hold no other change."""
    if isinstance(change, ExtractionsFound):
        return set()
    old = getattr(change.work.task, "old_uri", None)
    return {change.work.key} | ({old} if old else set())
