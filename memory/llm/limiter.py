"""How much a server takes: calls at once by AIMD, calls a second once it has refused some.

Additive increase, multiplicative decrease, as in Chiu and Jain, "Analysis of the increase and decrease algorithms for
congestion avoidance", 1989: one more call at once for each round that went well (twice as many until the first trouble),
half as many after a timeout or a server error. A refusal (429) says that a rate is too high, which fewer calls at once do
not cure when each is quick: from the first on, calls are spaced at the rate that was accepted, a little less after each
refusal, a little more while there is none.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

START = 8
"""Calls at once in the beginning, before anything is known."""
EVENT_S = 1.0
"""Troubles within this time of one another are one."""
AFTER_REFUSAL = 0.96
RECENT_S = 3.0
GROWTH_A_SECOND = 0.005
GROWTH_DOUBLES_S = 15.0
GROWTH_DOUBLINGS = 32.0
"""Beyond every use of it: a day without a call must not end in a number that is too large for a float."""
GROWTH_MOST = 0.2
LEAST_RATE = 0.02
FIRST_RATE = 1.0
"""Calls a second after a refusal before which no call was accepted: nothing can be estimated from none."""
FIRST_GROWTH = 1.0
"""Share by which such a rate grows in a second, until the next refusal: it doubles in 0.7 s."""


class Limiter:
    """On one event loop. `slot()` is held for each call; the outcome is told by `succeeded`, `refused` or `troubled`."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._window = float(min(START, most))
        self._doubling = True
        self._inside = 0
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()
        self._starts: deque[float] = deque(maxlen=4096)
        self._paused_until = 0.0
        self._measure: tuple[float, float] | None = None
        """When the first refusal came and over how long before it to count, until the rate has been worked out."""
        self._rate: float | None = None
        self._next = 0.0
        self._grown = 0.0
        self._unknown = False
        """Whether the rate is a beginning, and not an estimate."""
        self._event = float("-inf")
        self._refusals: deque[float] = deque(maxlen=4096)
        """When the calls began that were refused."""
        self._paced_since = 0.0

    @property
    def inside(self) -> int:
        """Calls under way."""
        return self._inside

    @property
    def rate(self) -> float | None:
        """Calls a second that are allowed at present, None while no server has refused any."""
        return self._rate

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Waits for a turn, first come first served; gives the time it began, which `refused` wants back."""
        began = await self._enter()
        try:
            yield began
        finally:
            self._inside -= 1
            self._freed.set()

    async def _enter(self) -> float:
        async with self._turn:
            while True:
                now = self._clock()
                if self._inside >= max(1, int(self._window)):
                    self._freed.clear()
                    await self._freed.wait()
                elif now < self._paused_until:
                    await asyncio.sleep(self._paused_until - now)
                elif self._measure is not None:
                    self._settle(now)
                elif self._rate is not None and now < self._next:
                    self._grow(now)
                    await asyncio.sleep(self._next - now)
                else:
                    break
            if self._rate is not None:
                # One call's time may be made up for when the loop was late.
                self._next = max(self._next, now - 1 / self._rate) + 1 / self._rate
            self._starts.append(now)
            self._inside += 1
            return now

    def succeeded(self) -> None:
        self._window = min(self._window + (1.0 if self._doubling else 1.0 / self._window), float(self._most))

    def troubled(self) -> None:
        """A timeout, a lost connection, a server error."""
        now = self._clock()
        self._doubling = False
        if now >= self._event + EVENT_S:
            self._event = now
            self._window = max(1.0, self._window / 2)

    def refused(self, began: float, retry_after_s: float | None) -> None:
        """429: the call that began then was not taken."""
        now = self._clock()
        self._doubling = False
        self._refusals.append(began)
        wait = 1.0 if retry_after_s is None else retry_after_s
        if self._rate is None:
            if self._measure is None:
                self._measure = (now, max(1.0, wait))
                self._paused_until = now + wait
        elif now >= self._event + max(EVENT_S, min(wait, 10.0)):
            self._event = self._grown = now
            self._unknown = False
            self._rate *= AFTER_REFUSAL
            # A first estimate that was far off (a server lets calls be saved up) must not be approached step by step.
            if (span := min(now - self._paced_since, RECENT_S)) >= EVENT_S:
                self._rate = min(self._rate, self._taken(now - span, now) / span)
            self._rate = max(self._rate, LEAST_RATE)
            if wait > 2.0:
                self._paused_until = now + wait

    def _settle(self, now: float) -> None:
        """The pause after the first refusal is over and its companions are known: how many calls were taken before it?"""
        assert self._measure is not None
        at, span = self._measure
        self._measure = None
        taken = self._taken(at - span, now)
        self._unknown = taken == 0
        self._rate = FIRST_RATE if self._unknown else max(taken / span * AFTER_REFUSAL, LEAST_RATE)
        self._next = self._grown = self._event = self._paced_since = now

    def _taken(self, since: float, until: float) -> int:
        """Calls that began then and were not refused so far."""
        return sum(since <= at <= until for at in self._starts) - sum(since <= at <= until for at in self._refusals)

    def _grow(self, now: float) -> None:
        assert self._rate is not None
        quiet = now - self._event
        doublings = min(quiet / GROWTH_DOUBLES_S, GROWTH_DOUBLINGS)
        share = FIRST_GROWTH if self._unknown else min(GROWTH_A_SECOND * 2.0**doublings, GROWTH_MOST)
        self._rate *= 1 + share * (now - self._grown)
        self._grown = now
