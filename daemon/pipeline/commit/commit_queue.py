"""Queues parsed changes for the commit: fresh changes first, and changes of one key in order of arrival.

If more than `FRESH_PER_SOURCE` fresh changes of a source wait, one of them becomes bulk, as in
`daemon.pipeline.incoming.lanes`. That module's limit does not suffice, because parsing is faster than encoding.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import IntEnum

from daemon.pipeline.backpressure import Capacity, QueueLimits
from daemon.pipeline.incoming.lanes import FRESH_PER_SOURCE, group_of, of_burst
from daemon.pipeline.work_items import Change, DocumentChange, ExtractionsFound, Group, Urgency, Work

BATCH_MAX_CHANGES = 512

FRESH_MAX_PASSAGES = 32
"""A fresh change with more passages is long: its encoding takes about a second, so other fresh changes are committed first."""


class Rank(IntEnum):
    """The order in which changes are committed."""

    FRESH = 0
    LONG = 1
    """Fresh, but longer than `FRESH_MAX_PASSAGES`: committed before bulk. Like bulk, it is interrupted by fresh changes."""
    BULK = 2


class CommitQueue:
    """The changes to commit. Use on the event loop only. Each urgency has its own capacity; `put` waits while it is full."""

    def __init__(self, limits: QueueLimits) -> None:
        self._changes: list[Change] = []
        """The waiting changes, in the order of arrival."""
        self.room = {urgency: Capacity(limits.queue_passages, limits.queue_bytes) for urgency in Urgency}
        """Capacity by urgency, in waiting passages and the bytes of their text. While it is full, parsing waits."""
        self._fresh: dict[str, dict[Work, None]] = {}
        """For each source, the work with waiting fresh changes, oldest first."""
        self._groups: Counter[Group] = Counter()
        """Number of waiting changes by group, counting only changes that arrived as fresh."""
        self._batches = 0
        self._filled = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    def __len__(self) -> int:
        return len(self._changes)

    async def put(self, change: Change) -> None:
        while not self.room[_urgency(change)].free:
            self._has_room.clear()
            await self._has_room.wait()
        self.put_now(change)

    def put_now(self, change: Change) -> None:
        """Queues the change without waiting for capacity, for a change that must precede all changes that arrive later."""
        change.lane = _urgency(change)
        self.room[change.lane].take(change.size, change.bytes)
        if isinstance(change, DocumentChange) and change.lane is Urgency.FRESH:
            change.group = group_of(change.work)
            self._groups[change.group] += 1
            if _rank(change) is Rank.FRESH:
                self._put_fresh(change.work)
        self._changes.append(change)
        self._filled.set()

    def _put_fresh(self, work: Work) -> None:
        waiting = self._fresh.setdefault(work.source, {})
        waiting[work] = None
        if len(waiting) > FRESH_PER_SOURCE:
            demoted = of_burst(waiting, self._groups)
            demoted.urgency = Urgency.BULK
            del waiting[demoted]

    async def wait_until_filled(self) -> None:
        """Returns once a change has arrived since the last call."""
        await self._filled.wait()
        self._filled.clear()

    def next_batch(self, max_passages: int) -> list[Change]:
        """Removes and returns changes for one batch, at most one per key; changes of one key keep their order.

        Fresh changes form separate batches. If long or bulk changes wait too, every second batch is fresh. Batches that are not
        fresh begin alternately with long and with bulk changes.
        """
        ranked = list(self._ranked())
        self._batches += 1
        fresh = [each for each in ranked if each[0] is Rank.FRESH]
        others = [each for each in ranked if each[0] is not Rank.FRESH]
        if fresh and (not others or self._batches % 2):
            return self._take(fresh, max_passages)
        if self._batches % 4 == 0:
            others.sort(key=lambda each: (-each[0], each[1:3]))
        return self._take(others, max_passages)

    def next_fresh_batch(self, max_passages: int, under_way: Iterable[Change]) -> list[Change]:
        """Removes and returns fresh changes to commit before `under_way`, except changes that share a key with these."""
        keys = {key for change in under_way for key in _keys(change)}
        return self._take([each for each in self._ranked() if each[0] is Rank.FRESH], max_passages, keys)

    def _ranked(self) -> "Iterator[tuple[Rank, int, int, Change]]":
        """Returns the changes that may be taken now as (rank, turn of the change's source, number, change), sorted.

        Only the first waiting change of each key may be taken; its rank is the highest of the key's waiting changes.
        """
        ranks: dict[str, Rank] = {}
        first: dict[str, int] = {}
        for number, change in enumerate(self._changes):
            rank = _rank(change)
            for key in _keys(change):
                ranks[key] = min(ranks.get(key, Rank.BULK), rank)
                first.setdefault(key, number)
        turns: Counter[tuple[Rank, str]] = Counter()
        ranked = []
        for number, change in enumerate(self._changes):
            keys = _keys(change)
            if all(first[key] == number for key in keys):
                rank = min([_rank(change), *(ranks[key] for key in keys)])
                turn = rank, _source(change)
                turns[turn] += 1
                ranked.append((rank, turns[turn], number, change))
        ranked.sort(key=lambda each: each[:3])
        return iter(ranked)

    def _take(
        self, ranked: "Iterable[tuple[Rank, int, int, Change]]", max_passages: int, keys: Iterable[str] = ()
    ) -> list[Change]:
        taken: list[Change] = []
        touched = set(keys)
        size = 0
        for _, _, _, change in ranked:
            if taken and (size + change.size > max_passages or len(taken) == BATCH_MAX_CHANGES):
                break
            if touched.isdisjoint(_keys(change)):
                touched |= _keys(change)
                size += change.size
                taken.append(change)
        gone = set(map(id, taken))
        self._changes = [change for change in self._changes if id(change) not in gone]
        for change in taken:
            self._release(change)
        self._has_room.set()
        return taken

    def _release(self, change: Change) -> None:
        self.room[change.lane].release(change.size, change.bytes)
        if change.group is None or isinstance(change, ExtractionsFound):
            return
        self._groups[change.group] -= 1
        if not self._groups[change.group]:
            del self._groups[change.group]
        if (waiting := self._fresh.get(change.work.source)) is not None:
            waiting.pop(change.work, None)
            if not waiting:
                del self._fresh[change.work.source]


def _urgency(change: Change) -> Urgency:
    """Returns the change's urgency; extractions from committed passages are bulk."""
    return Urgency.BULK if isinstance(change, ExtractionsFound) else change.work.urgency


def _rank(change: Change) -> Rank:
    if _urgency(change) is Urgency.BULK:
        return Rank.BULK
    return Rank.FRESH if change.size <= FRESH_MAX_PASSAGES else Rank.LONG


def _source(change: Change) -> str:
    return "" if isinstance(change, ExtractionsFound) else change.work.source


def _keys(change: Change) -> set[str]:
    """Returns the documents and files of the change; no other change in its batch may touch them."""
    if isinstance(change, ExtractionsFound):
        return set()
    old = getattr(change.work.task, "old_uri", None)
    return {change.work.key} | ({old} if old else set())
