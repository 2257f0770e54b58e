"""The places of the worker pool, which sources share.

The next free place goes to a source that has none. If no place is free, a run that has waited too long for one message is
evicted: its child is killed, and the run starts again in a slow place. Each source has at most one slow place. The number of
slow places is always less than the number of all places. So a document that uses its whole time limit delays only documents of
its own source.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto

LONG_AFTER_S = 2.0
LONG_SHARE = 0.25
"""A run is long if it has waited for one message for `LONG_AFTER_S`, or for `LONG_SHARE` of the time limit if this is shorter.
A source without a place may evict a long run. A source may evict its own run only after `LONG_SHARE` of the time limit."""


class PlaceKind(Enum):
    ORDINARY = auto()
    FRESH = auto()
    """An additional place, for fresh work while the ordinary places are taken."""
    SLOW = auto()


@dataclass(eq=False)
class Run:
    """A request that is being parsed or that waits for a place. `kind` is None while the request waits."""

    source: str
    fresh: bool
    slow: bool
    kind: PlaceKind | None = None
    began: float = 0.0
    at_message_since: float | None = None
    """Time at which the child was last asked for a message; None while no message is awaited."""
    kill: Callable[[], None] | None = None
    """Kills the child; None until the run has a child."""
    evicted: bool = False
    granted: asyncio.Event = field(default_factory=asyncio.Event)


class ParsePlaces:
    """Grants places to runs. Has no lock: use from one event loop only."""

    def __init__(
        self,
        size: int,
        time_limit_s: float,
        long_after_s: float = LONG_AFTER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._size = size
        self._slow_places = max(1, size - 1)
        self._own_long_s = time_limit_s * LONG_SHARE
        self._long_s = min(long_after_s, self._own_long_s)
        self._clock = clock
        self.running: list[Run] = []
        """The runs that have a place."""
        self._waiting: list[Run] = []

    @asynccontextmanager
    async def place(self, source: str, *, fresh: bool = False, slow: bool = False) -> AsyncIterator[Run]:
        """Waits for a place, and occupies it during the block. `slow` marks a document that probably takes long."""
        run = Run(source, fresh, slow)
        try:
            await self._enter(run)
            yield run
        finally:
            self._leave(run)

    def await_message(self, run: Run) -> None:
        """Records that the child of `run` was asked for its next message."""
        run.at_message_since = self._clock()

    async def give_way(self, run: Run) -> None:
        """Call between two messages: if a source without a place is waiting, gives up the place and waits for another."""
        run.at_message_since = None
        if run.kind is PlaceKind.SLOW or not self._is_needed(run):
            return
        self._leave(run)
        await self._enter(run)

    def _is_needed(self, run: Run) -> bool:
        if self._places_except_slow(run.source) == 1 and self._clock() - run.began < self._long_s:
            return False
        return any(
            not each.slow
            and (each.fresh or run.kind is PlaceKind.ORDINARY)
            and not self._places_except_slow(each.source)
            for each in self._waiting
        )

    async def _enter(self, run: Run) -> None:
        """Returns once `run` has a place."""
        run.granted.clear()
        self._waiting.append(run)
        self._grant()
        while run.kind is None:
            try:
                async with asyncio.timeout(self._evict_for(run)):
                    await run.granted.wait()
            except TimeoutError:
                continue

    def _leave(self, run: Run) -> None:
        if run.kind is None:
            self._waiting.remove(run)
        else:
            self.running.remove(run)
            run.kind = None
        self._grant()

    def _grant(self) -> None:
        """Grants free places to waiting runs, first to runs whose sources have the fewest places, including slow places."""
        for run in sorted(self._waiting, key=lambda run: sum(each.source == run.source for each in self.running)):
            kind = self._free_kind(run)
            if kind is not None:
                self._waiting.remove(run)
                run.kind, run.began = kind, self._clock()
                self.running.append(run)
                run.granted.set()
                self._grant()  # again, because its source now has one more place
                return

    def _free_kind(self, run: Run) -> PlaceKind | None:
        ordinary, slow = self._count(PlaceKind.ORDINARY), self._count(PlaceKind.SLOW)
        if run.slow:
            if slow >= self._slow_places or self._has_slow(run.source):
                return None
            # If there is only one place, the slow place is an additional one.
            return PlaceKind.SLOW if self._size == 1 or ordinary + slow < self._size else None
        if ordinary < self._size - min(slow, self._size - 1):
            return PlaceKind.ORDINARY
        return PlaceKind.FRESH if run.fresh and not self._count(PlaceKind.FRESH) else None

    def _evict_for(self, run: Run) -> float | None:
        """Evicts a long run, if there is one, so that `run` gets its place; returns the seconds until the next check."""
        if run.slow:
            return None
        if any(each.evicted for each in self.running):
            return self._long_s
        now = self._clock()
        left_s: dict[Run, float] = {}
        for each in self.running:
            if each.kind is PlaceKind.SLOW or (each.kind is PlaceKind.FRESH and not run.fresh):
                continue
            if each.kill is None or each.at_message_since is None:
                continue
            starves = each.source != run.source and not self._places_except_slow(run.source)
            left_s[each] = each.at_message_since + (self._long_s if starves else self._own_long_s) - now
        long = sorted((each for each, left in left_s.items() if left <= 0), key=lambda each: left_s[each])
        if long and self._becomes_slow(long[0], may_stay=len(long) > 1):
            long = long[1:]
        if long:
            long[-1].evicted = True  # this run loses the least work
            assert long[-1].kill is not None
            long[-1].kill()
        return min([self._long_s, *(left for left in left_s.values() if left > 0)])

    def _becomes_slow(self, run: Run, may_stay: bool) -> bool:
        """Makes a run's place slow without restarting the run; returns whether the place became slow.

        This happens only if another long run can be evicted instead, or if it frees the only ordinary place.
        """
        if run.kind is not PlaceKind.ORDINARY or self._has_slow(run.source):
            return False
        if self._count(PlaceKind.SLOW) >= self._slow_places or not (may_stay or self._size == 1):
            return False
        run.kind, run.slow = PlaceKind.SLOW, True
        self._grant()
        return True

    def _places_except_slow(self, source: str) -> int:
        """Returns the number of places of a source, without its slow place."""
        return sum(run.source == source and run.kind is not PlaceKind.SLOW for run in self.running)

    def _has_slow(self, source: str) -> bool:
        return any(run.source == source and run.kind is PlaceKind.SLOW for run in self.running)

    def _count(self, kind: PlaceKind) -> int:
        return sum(run.kind is kind for run in self.running)
