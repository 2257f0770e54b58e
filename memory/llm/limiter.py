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

START_CALLS = 8
"""Calls at once at the start, before anything is known of the server."""
FAILURE_WINDOW_S = 1.0
"""Failures within this time of one another count as one."""
RATE_FACTOR_AFTER_REFUSAL = 0.96
RECENT_S = 3.0
GROWTH_A_SECOND = 0.005
GROWTH_DOUBLES_S = 15.0
GROWTH_DOUBLINGS = 32.0
"""More than ever matters: without this bound, a day without a call would overflow a float."""
MAX_GROWTH_A_SECOND = 0.2
MIN_RATE = 0.02
FIRST_RATE = 1.0
"""Calls a second after a refusal before which no call was accepted: nothing can be estimated from none."""
FIRST_GROWTH = 1.0
"""Share by which such a rate grows in a second, until the next refusal: it doubles in 0.7 s."""


class Limiter:
    """On one event loop. Each call runs inside a `slot()`; `succeeded`, `refused` or `troubled` reports its outcome."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._window = float(min(START_CALLS, most))
        self._doubling = True
        self._calls_under_way = 0
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()
        self._starts: deque[float] = deque(maxlen=4096)
        self._paused_until = 0.0
        self._to_estimate: tuple[float, float] | None = None
        """When the first refusal came and over how long before it to count, until the rate has been worked out."""
        self._rate: float | None = None
        self._next = 0.0
        self._last_growth_at = 0.0
        self._rate_is_first_guess = False
        """Whether the rate is `FIRST_RATE`, and not an estimate from accepted calls."""
        self._last_failure_at = float("-inf")
        self._refusals: deque[float] = deque(maxlen=4096)
        """When the calls began that were refused."""
        self._paced_since = 0.0

    @property
    def inside(self) -> int:
        """Calls under way."""
        return self._calls_under_way

    @property
    def rate(self) -> float | None:
        """Calls a second that are allowed at present, None while no server has refused any."""
        return self._rate

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Waits for a turn, first come first served; yields the time at which the call began, for `refused`."""
        began = await self._enter()
        try:
            yield began
        finally:
            self._calls_under_way -= 1
            self._freed.set()

    async def _enter(self) -> float:
        async with self._turn:
            while True:
                now = self._clock()
                if self._calls_under_way >= max(1, int(self._window)):
                    self._freed.clear()
                    await self._freed.wait()
                elif now < self._paused_until:
                    await asyncio.sleep(self._paused_until - now)
                elif self._to_estimate is not None:
                    self._estimate_rate(now)
                elif self._rate is not None and now < self._next:
                    self._grow(now)
                    await asyncio.sleep(self._next - now)
                else:
                    break
            if self._rate is not None:
                # One call's time may be made up for when the loop was late.
                self._next = max(self._next, now - 1 / self._rate) + 1 / self._rate
            self._starts.append(now)
            self._calls_under_way += 1
            return now

    def succeeded(self) -> None:
        self._window = min(self._window + (1.0 if self._doubling else 1.0 / self._window), float(self._most))

    def troubled(self) -> None:
        """A timeout, a lost connection, a server error."""
        now = self._clock()
        self._doubling = False
        if now >= self._last_failure_at + FAILURE_WINDOW_S:
            self._last_failure_at = now
            self._window = max(1.0, self._window / 2)

    def refused(self, began: float, retry_after_s: float | None) -> None:
        """429: the server refused the call that began at `began`."""
        now = self._clock()
        self._doubling = False
        self._refusals.append(began)
        wait = 1.0 if retry_after_s is None else retry_after_s
        if self._rate is None:
            if self._to_estimate is None:
                self._to_estimate = (now, max(1.0, wait))
                self._paused_until = now + wait
        elif now >= self._last_failure_at + max(FAILURE_WINDOW_S, min(wait, 10.0)):
            self._last_failure_at = self._last_growth_at = now
            self._rate_is_first_guess = False
            self._rate *= RATE_FACTOR_AFTER_REFUSAL
            # A first estimate that was far off (a server lets calls be saved up) must not be approached step by step.
            if (span := min(now - self._paced_since, RECENT_S)) >= FAILURE_WINDOW_S:
                self._rate = min(self._rate, self._accepted_calls(now - span, now) / span)
            self._rate = max(self._rate, MIN_RATE)
            if wait > 2.0:
                self._paused_until = now + wait

    def _estimate_rate(self, now: float) -> None:
        """Estimates the rate from the calls that were accepted before the first refusal. The pause after it is over, so the
        calls that were refused with it are known."""
        assert self._to_estimate is not None
        at, span = self._to_estimate
        self._to_estimate = None
        taken = self._accepted_calls(at - span, now)
        self._rate_is_first_guess = taken == 0
        self._rate = (
            FIRST_RATE if self._rate_is_first_guess else max(taken / span * RATE_FACTOR_AFTER_REFUSAL, MIN_RATE)
        )
        self._next = self._last_growth_at = self._last_failure_at = self._paced_since = now

    def _accepted_calls(self, since: float, until: float) -> int:
        """Calls that began between `since` and `until` and were not refused so far."""
        return sum(since <= at <= until for at in self._starts) - sum(since <= at <= until for at in self._refusals)

    def _grow(self, now: float) -> None:
        assert self._rate is not None
        quiet = now - self._last_failure_at
        doublings = min(quiet / GROWTH_DOUBLES_S, GROWTH_DOUBLINGS)
        share = (
            FIRST_GROWTH if self._rate_is_first_guess else min(GROWTH_A_SECOND * 2.0**doublings, MAX_GROWTH_A_SECOND)
        )
        self._rate *= 1 + share * (now - self._last_growth_at)
        self._last_growth_at = now
