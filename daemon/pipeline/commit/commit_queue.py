"""Queues parsed changes for the commit: fresh changes first, and changes of one key in order of arrival.

If more than `FRESH_PER_SOURCE` fresh changes of a source wait, one of them becomes bulk, as in
`daemon.pipeline.incoming.lanes`. That module's limit does not suffice, because parsing is faster than encoding.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush
from itertools import chain, count

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


@dataclass(slots=True, eq=False)
class WaitingChange:
    """A change in the queue. Sorts by `number`, its number in the order of arrival."""

    number: int
    change: Change
    keys: set[str]
    """The documents and files of the change; no other change in its batch may touch them."""
    rank: Rank
    """The change's own rank; another change of one of its keys may have a higher one."""
    ready_rank: Rank | None = None
    """The rank of the ready queue that contains the change; None if an earlier change of one of its keys waits."""

    def __lt__(self, other: "WaitingChange") -> bool:
        return self.number < other.number


class KeyChanges:
    """The waiting changes of one key, in the order of arrival."""

    def __init__(self) -> None:
        self.changes: deque[WaitingChange] = deque()
        self.ranks = dict.fromkeys(Rank, 0)
        """The number of changes of each rank."""

    @property
    def highest_rank(self) -> Rank:
        return next(rank for rank, number in self.ranks.items() if number)


class ReadyQueue:
    """The changes of one rank and source that may be taken now, in the order of arrival.

    Changes may become ready in another order, so they are in a heap. A change whose rank has changed stays in the heap as a
    stale entry until it is the first, or until more than half of the entries are stale.
    """

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._heap: list[WaitingChange] = []
        self._stale = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def first_number(self) -> int:
        return self._heap[0].number

    def put(self, waiting: WaitingChange) -> None:
        heappush(self._heap, waiting)

    def pop(self) -> WaitingChange:
        waiting = heappop(self._heap)
        waiting.ready_rank = None
        self._drop_stale()
        return waiting

    def count_stale(self) -> None:
        """Call after the rank of one of the changes has changed."""
        self._stale += 1
        if 2 * self._stale > len(self._heap):
            self._heap = sorted({each for each in self._heap if each.ready_rank is self._rank})
            self._stale = 0
        self._drop_stale()

    def _drop_stale(self) -> None:
        while self._heap and self._heap[0].ready_rank is not self._rank:
            heappop(self._heap)
            self._stale -= 1


class CommitQueue:
    """The changes to commit. Use on the event loop only. Each urgency has its own capacity; `put` waits while it is full."""

    def __init__(self, limits: QueueLimits) -> None:
        self._numbers = count()
        self._count = 0
        self._by_key: dict[str, KeyChanges] = {}
        self._ready: dict[Rank, dict[str, ReadyQueue]] = {rank: {} for rank in Rank}
        """The changes that may be taken now, by rank and source."""
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
        return self._count

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
        self._add(change)
        self._filled.set()

    def _put_fresh(self, work: Work) -> None:
        waiting = self._fresh.setdefault(work.source, {})
        waiting[work] = None
        if len(waiting) > FRESH_PER_SOURCE:
            demoted = of_burst(waiting, self._groups)
            demoted.urgency = Urgency.BULK
            del waiting[demoted]
            self.update_rank(demoted)

    async def wait_until_filled(self) -> None:
        """Returns once a change has arrived since the last call."""
        await self._filled.wait()
        self._filled.clear()

    def next_batch(self, max_passages: int) -> list[Change]:
        """Removes and returns changes for one batch, at most one per key; changes of one key keep their order.

        Fresh changes form separate batches. If long or bulk changes wait too, every second batch is fresh. Batches that are not
        fresh begin alternately with long and with bulk changes.
        """
        self._batches += 1
        others = [Rank.LONG, Rank.BULK]
        if self._has(Rank.FRESH) and (self._batches % 2 or not any(map(self._has, others))):
            return self._take([Rank.FRESH], max_passages)
        if self._batches % 4 == 0:
            others.reverse()
        return self._take(others, max_passages)

    def next_fresh_batch(self, max_passages: int, under_way: Iterable[Change]) -> list[Change]:
        """Removes and returns fresh changes to commit before `under_way`, except changes that share a key with these."""
        return self._take([Rank.FRESH], max_passages, {key for change in under_way for key in _keys(change)})

    def update_rank(self, work: Work) -> None:
        """Moves the waiting changes of `work` to their new rank. Call after each change of the work's urgency."""
        if (of_key := self._by_key.get(work.key)) is None:
            return
        for waiting in of_key.changes:
            rank = _rank(waiting.change)
            if rank is waiting.rank:
                continue
            touched = [self._by_key[key] for key in waiting.keys]
            for each in touched:
                each.ranks[waiting.rank] -= 1
                each.ranks[rank] += 1
            waiting.rank = rank
            for each in touched:
                self._make_ready(each.changes[0])

    def _add(self, change: Change) -> None:
        waiting = WaitingChange(next(self._numbers), change, _keys(change), _rank(change))
        self._count += 1
        of_keys = [self._by_key.setdefault(key, KeyChanges()) for key in waiting.keys]
        for each in of_keys:
            each.changes.append(waiting)
            each.ranks[waiting.rank] += 1
        self._make_ready(waiting)
        for each in of_keys:
            self._make_ready(each.changes[0])

    def _remove(self, waiting: WaitingChange) -> None:
        self._count -= 1
        of_keys = [self._by_key[key] for key in waiting.keys]
        for each in of_keys:
            each.changes.popleft()
            each.ranks[waiting.rank] -= 1
        for key, each in zip(waiting.keys, of_keys, strict=True):
            if each.changes:
                self._make_ready(each.changes[0])
            else:
                del self._by_key[key]
        self._release(waiting.change)

    def _make_ready(self, waiting: WaitingChange) -> None:
        """Puts a change that may be taken into the ready queue of its rank, and removes it from that of its earlier rank.

        Only the first waiting change of each key may be taken; its rank is the highest of the key's waiting changes.
        """
        of_keys = [self._by_key[key] for key in waiting.keys]
        if any(each.changes[0] is not waiting for each in of_keys):
            return
        rank = min((each.highest_rank for each in of_keys), default=waiting.rank)
        earlier, waiting.ready_rank = waiting.ready_rank, rank
        if rank is earlier:
            return
        source = _source(waiting.change)
        if earlier is not None:
            self._ready[earlier][source].count_stale()
        self._ready[rank].setdefault(source, ReadyQueue(rank)).put(waiting)

    def _has(self, rank: Rank) -> bool:
        return any(self._ready[rank].values())

    def _popped(self, rank: Rank) -> Iterator[WaitingChange]:
        """Removes the ready changes of a rank from their queues one by one: the first of each source, then the second of each,
        and so on, each round in the order of arrival."""
        queues = self._ready[rank]
        while queues:
            for source in [source for source, queue in queues.items() if not queue]:
                del queues[source]
            for queue in sorted(queues.values(), key=lambda queue: queue.first_number):
                yield queue.pop()

    def _take(self, ranks: Iterable[Rank], max_passages: int, excluded: Collection[str] = ()) -> list[Change]:
        """Removes and returns ready changes of `ranks`, one rank after the other, without a key in `excluded`.

        No two ready changes share a key, because each is the first of all its keys.
        """
        taken: list[WaitingChange] = []
        kept: list[WaitingChange] = []
        size = 0
        for waiting in chain.from_iterable(map(self._popped, ranks)):
            if taken and (size + waiting.change.size > max_passages or len(taken) == BATCH_MAX_CHANGES):
                kept.append(waiting)
                break
            if waiting.keys.isdisjoint(excluded):
                size += waiting.change.size
                taken.append(waiting)
            else:
                kept.append(waiting)
        for waiting in kept:
            self._make_ready(waiting)
        for waiting in taken:
            self._remove(waiting)
        self._has_room.set()
        return [waiting.change for waiting in taken]

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
