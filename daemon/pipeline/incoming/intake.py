"""The queue of work: keeps the latest work per key (a file, or a document outside any file), and reports when all is done."""

import asyncio
import contextlib
from collections.abc import Callable, Container
from itertools import chain

from daemon.errors import NotReady
from daemon.pipeline.backpressure import Burst
from daemon.pipeline.incoming.lanes import Lanes
from daemon.pipeline.work_items import Urgency, Work, container_uri, may_grow

STOPPING = "hippod is stopping; ask again when it is back"


class Intake:
    """The queue of work. Use on the event loop only.

    Work for a key starts only after earlier work for the key has ended. `daemon.pipeline.incoming.lanes` determines the order
    of work for different keys.

    A line of a file has its own key, so work for a line replaces no other work. Lines of a file are processed concurrently, and
    before waiting work for the file, but never concurrently with the file: parsing it yields all lines.

    Work is numbered in the order of arrival, so that `drained` can wait for all work up to the latest number.
    """

    def __init__(
        self,
        on_put: Callable[[str, str], None] = lambda _key, _source: None,
        on_raised: Callable[[Work], None] = lambda _work: None,
    ) -> None:
        """`on_put` is called with the key and source of all arriving work, `on_raised` with running work whose urgency was
        raised."""
        self._on_put = on_put
        self._on_raised = on_raised
        self.stopping = False
        """Whether hippod is stopping; work that arrives now will not be processed."""
        self.paused: str | None = None
        """The reason why `take` returns only work that cannot enlarge the memory; None if it returns all work."""
        self._pause, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._waiting: dict[str, Work] = {}
        self._freeing: dict[str, Work] = {}
        """The part of `_waiting` that cannot enlarge the memory."""
        self._lanes = Lanes()
        self._active: dict[str, Work] = {}
        self._lines: dict[str, int] = {}
        """Number of unfinished work items for lines of each file."""
        self.burst = Burst()
        """Counts the work done since the queue was last empty."""
        self._seq = 0
        self._listeners: set[asyncio.Event] = set()

    def put(self, work: Work) -> Work:
        """Adds work and returns it; it replaces waiting work with the same key."""
        if not self._waiting and not self._active:
            self.burst = Burst()
        self._seq += 1
        work.seq = self._seq
        earlier = self._waiting.pop(work.key, None)
        if earlier is not None:
            self._lanes.remove(earlier)
            work.seq, work.urgency = earlier.seq, min(work.urgency, earlier.urgency)
            # Extend the earlier work's lists: copying them at each change of a key would take quadratic time.
            earlier.inbox_places.extend(work.inbox_places)
            earlier.acknowledgements.extend(work.acknowledgements)
            earlier.waiters.extend(work.waiters)
            work.inbox_places, work.acknowledgements = earlier.inbox_places, earlier.acknowledgements
            work.waiters = earlier.waiters
        else:
            self._count_line(work.key, 1)
        self._waiting[work.key] = work
        self._freeing.pop(work.key, None)
        if not may_grow(work.task):
            self._freeing[work.key] = work
        self._lanes.put(work)
        if (active := self._active.get(work.key)) is not None and work.urgency < active.urgency:
            active.urgency = work.urgency
            self._on_raised(active)
        self._notify()
        self._on_put(work.key, work.source)
        return work

    def stop(self) -> None:
        """Makes all tasks that wait for unfinished work raise NotReady."""
        self.stopping = True
        for work in self.pending():
            for waiter in work.waiters:
                if not waiter.done():
                    waiter.set_exception(NotReady(STOPPING))

    def pause(self, reason: str) -> None:
        """Makes `take` return only work that cannot enlarge the memory, until `resume`."""
        self.paused = reason
        self._pause.set()
        self._room.clear()
        self._notify()

    def resume(self) -> None:
        self.paused = None
        self._pause.clear()
        self._room.set()
        self._notify()

    def put_ocr(self, work: Work) -> None:
        """Adds OCR work for the document of `work`, which is active now. The OCR work takes over the number and inbox
        places."""
        if self.is_superseded(work):
            return
        places, work.inbox_places = work.inbox_places, []
        ocr = Work(work.key, work.task, work.source, work.attempts, urgency=Urgency.BULK, recognise=True)
        ocr.inbox_places = places
        self.put(ocr).seq = work.seq

    def take_ocr(self) -> Work | None:
        """Takes and returns the next OCR work. None if other work waits or the intake is paused."""
        work = None if self.paused is not None else self._lanes.next_ocr(self._free)
        return None if work is None else self.take(work)

    async def until_paused(self) -> None:
        await self._pause.wait()

    async def room(self) -> None:
        """Returns once the intake is not paused."""
        await self._room.wait()

    def take(self, chosen: Work | None = None, fresh_only: bool = False, not_from: Container[str] = ()) -> Work | None:
        """Takes and returns `chosen`, or else the next work whose key is free. None if there is no such work.

        `fresh_only` skips bulk work; `not_from` skips work of these sources. While the intake is paused, takes only work that
        cannot enlarge the memory.
        """
        if chosen is not None:
            work = chosen if self.paused is None or chosen.key in self._freeing else None
        elif self.paused is not None:
            work = next((each for each in self._freeing.values() if self._free(each.key)), None)
        else:
            work = self._lanes.next(self._free, fresh_only, not_from)
        if work is None or not self._free(work.key):
            return None
        self._lanes.remove(work)
        del self._waiting[work.key]
        self._freeing.pop(work.key, None)
        self._active[work.key] = work
        return work

    def is_superseded(self, work: Work) -> bool:
        """Returns whether later work with the same key is waiting."""
        return work.key in self._waiting

    def hand_over(self, work: Work) -> None:
        """Transfers the number, acknowledgements, inbox places and waiters of the superseded `work` to the later work for its
        key."""
        later = self._waiting[work.key]
        later.seq = work.seq
        later.inbox_places = [*work.inbox_places, *later.inbox_places]
        later.acknowledgements = [*work.acknowledgements, *later.acknowledgements]
        later.waiters = [*work.waiters, *later.waiters]
        work.inbox_places, work.acknowledgements, work.waiters = [], [], []

    def done(self, work: Work) -> None:
        """Records that `work` is committed, failed or superseded, and notifies its waiters."""
        if self._active.get(work.key) is work:
            del self._active[work.key]
            self._count_line(work.key, -1)
            self.burst.done += 1
        self._notify()
        for waiter in work.waiters:
            if not waiter.done():
                waiter.set_result(None)

    def busy(self, key: str) -> bool:
        """Returns whether unfinished work exists for `key` or a line of it."""
        return key in self._waiting or key in self._active or key in self._lines

    def of(self, key: str) -> list[Work]:
        """Returns the unfinished work items for `key`, waiting or running."""
        return [work for work in (self._waiting.get(key), self._active.get(key)) if work is not None]

    @property
    def last_seq(self) -> int:
        """Number of the latest work item."""
        return self._seq

    def waits(self, key: str, seq: int) -> bool:
        """Returns whether waiting work for `key` has a number up to `seq`, either its own number or the number of replaced
        work."""
        work = self._waiting.get(key)
        return work is not None and work.seq <= seq

    def waiting_for(self, key: str) -> Work | None:
        return self._waiting.get(key)

    def _free(self, key: str) -> bool:
        return not (key in self._active or key in self._lines or container_uri(key) in self._active)

    def _count_line(self, key: str, by: int) -> None:
        file = container_uri(key)
        if file != key:
            self._lines[file] = self._lines.get(file, 0) + by
            if not self._lines[file]:
                del self._lines[file]

    def pending(self) -> list[Work]:
        """Returns all unfinished work, in the order of arrival."""
        return sorted([*self._active.values(), *self._waiting.values()], key=lambda work: work.seq)

    def sources(self) -> dict[str, str]:
        """Returns the source of each key with unfinished work."""
        return {work.key: work.source for work in (*self._active.values(), *self._waiting.values())}

    def source_of(self, key: str) -> str | None:
        """Returns the source of the unfinished work for `key`, or None."""
        work = self._waiting.get(key) or self._active.get(key)
        return work.source if work is not None else None

    def documents(self) -> int:
        """Returns the number of keys with unfinished work; does not build a set of the keys."""
        return len(self._waiting) + sum(key not in self._waiting for key in self._active)

    def counts(self) -> dict[str, int]:
        """Returns the number of unfinished work items by source."""
        out: dict[str, int] = {}
        for work in (*self._active.values(), *self._waiting.values()):
            out[work.source] = out.get(work.source, 0) + 1
        return out

    def __len__(self) -> int:
        return len(self._waiting) + len(self._active)

    async def drained(self) -> None:
        """Returns once all work that exists now is done; does not wait for later work."""
        last = self._seq
        changed = asyncio.Event()
        self._listeners.add(changed)
        try:
            # Without a copy: this runs on the event loop at each change, for each waiting client.
            while any(work.seq <= last for work in chain(self._active.values(), self._waiting.values())):
                changed.clear()
                await changed.wait()
        finally:
            self._listeners.discard(changed)

    async def changed(self) -> None:
        """Returns at the next change."""
        changed = asyncio.Event()
        self._listeners.add(changed)
        try:
            await changed.wait()
        finally:
            self._listeners.discard(changed)

    async def changed_within(self, seconds: float) -> None:
        """Returns at the next change, or after `seconds`."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.changed(), seconds)

    def _notify(self) -> None:
        for listener in self._listeners:
            listener.set()
