"""Learns how many calls a server accepts, concurrently and per second, from accepted and refused calls.

Limits that the server states take precedence over estimates: `Retry-After`, and the `x-ratelimit-*` headers of every answer.
Without stated limits, a refusal (429) means that one of two limits was too high. If more calls ran concurrently than during
earlier accepted calls, the limit of concurrent calls was too high; otherwise, the limit of calls per second was. The rate is
estimated from accepted calls only. If no call was accepted, the server is unavailable, and one call at a time tests it.
Failures (5xx, timeouts) lower the number of concurrent calls.

After a refusal, a limit (`AdaptiveLimit`) is lowered, then raised along the cubic curve of CUBIC (Ha, Rhee and Xu, "CUBIC: a
new TCP-friendly high-speed TCP variant", 2008; RFC 9438), in shares of the plateau instead of packets. The plateau is the last
level that was accepted. The curve is steep far below the plateau and flat around it. Above the plateau it becomes steep again,
because the server's limit may have been raised.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from memory.llm.rate_headers import RateLimit

START_CALLS = 8
"""Number of concurrent calls at the start. Each answer raises the number by one until the first failure."""
DEFAULT_PAUSE_S = 0.5
"""Seconds without calls after a refusal that states no wait."""
OUTAGE_PAUSE_S = 1.0
"""Like `DEFAULT_PAUSE_S`, but during an outage."""
BRIEF_S = 2.0
"""Maximum stated wait in seconds for which calls are slowed down instead of paused, if the server's rate is known."""
SETTLE_S = 0.25
"""Seconds after a refusal in which running calls may be refused for the same reason."""
RECENT_S = 3.0
"""Minimum number of seconds over which the accepted rate is measured."""
ENOUGH_CALLS = 8
"""Minimum number of accepted calls for a reliable estimate of the rate."""
RATE_BACKOFF, RATE_PLATEAU = 0.95, 0.97
"""Shares of a refused rate: calls continue at the first, and the server is assumed to accept the second."""
REPEATED_BACKOFF = 0.8
"""Replaces `RATE_BACKOFF` for a rate that was lowered twice and is refused again before it has recovered."""
SLOW_RATE = 2.0
"""Calls per second below which a limit grows with the number of calls instead of with the time."""
LEVELS = 64
"""Number of accepted calls whose concurrency is stored."""
LEVEL_OUTLIERS = 8
"""One in eight stored calls is ignored as an outlier, because a call that hangs raises the concurrency of other calls."""
OUTAGE_FAILURES = 4
"""Number of consecutive failures that count as an outage. No limit is learnt from an outage."""

AMPLITUDE = 0.2
"""Share of the plateau by which the limit rises in the first `recovery_s` above the plateau."""
RECOVERY_S = 3.0
"""Seconds in which the limit rises from `1 - AMPLITUDE` of the plateau to the plateau, and again from there to `1 +
AMPLITUDE`."""
MAX_RECOVERY_S = 24.0
"""Maximum recovery time after repeated refusals at one level. Each attempt costs a refused call."""
RECOVERY_FACTOR = 2.0
SAME_LEVEL = 0.15
"""Two levels with at most this relative difference count as one level."""
DOUBLING_S = 1.5
"""Seconds in which the limit doubles while the plateau is unknown."""


@dataclass(slots=True)
class AdaptiveLimit:
    """`value` is the current limit; it never exceeds `maximum`.

    `plateau` is the last level that was accepted; None if it is unknown.
    """

    value: float
    maximum: float = math.inf
    plateau: float | None = None
    recovery_s: float = RECOVERY_S

    @property
    def probes(self) -> bool:
        """Whether the limit is above every level that is known to be accepted."""
        return self.plateau is None or self.value > self.plateau

    def grow(self, seconds: float) -> None:
        """Raises the limit after `seconds` in which it was fully used."""
        if self.plateau is None:
            self.value = min(self.value * 2.0 ** min(seconds / DOUBLING_S, 20.0), self.maximum)
            return
        x = math.cbrt((self.value / self.plateau - 1) / AMPLITUDE)
        x += seconds / (self.recovery_s if x >= -0.1 else RECOVERY_S)
        self.value = min(self.plateau * (1 + AMPLITUDE * min(x, 2.0) ** 3), self.maximum)
        if x > 1:
            self.plateau, self.recovery_s = None, RECOVERY_S

    def back_off(self, value: float, plateau: float) -> None:
        """Lowers the limit to `value`, and sets the plateau to about `plateau`."""
        if (known := self.plateau) is not None:
            same = self.value > known and abs(plateau / known - 1) < SAME_LEVEL
            self.recovery_s = min(RECOVERY_FACTOR * self.recovery_s, MAX_RECOVERY_S) if same else RECOVERY_S
            if value < known:  # a single refusal at a low level may be accidental
                plateau = (plateau + known) / 2
        self.value, self.plateau = value, plateau


@dataclass(slots=True)
class LimitedCall:
    """A running call. `inside` is the number of running calls when it began, including itself."""

    began: float
    inside: int
    probes_rate: bool
    """Whether the rate limit delayed the call, at a rate that is not known to be accepted."""
    accepted: bool = True
    """False after the call was refused or failed."""


class Limiter:
    """Limits the calls on one event loop.

    Each call runs inside `slot()`; `succeeded`, `refused` or `failed` records its outcome.
    """

    def __init__(self, maximum: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._window = AdaptiveLimit(min(START_CALLS, maximum), maximum)
        """Limit of concurrent calls."""
        self._rate = AdaptiveLimit(math.inf)
        """Limit of calls per second; infinite until the first refusal."""
        self._waited_for: AdaptiveLimit | None = None
        """The limit that delays the next call. A limit is raised only while it is fully used."""
        self._grown_at = clock()
        self._calls_under_way = 0
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()
        self._next = 0.0
        self._paused_until = self._server_pause_until = 0.0
        """Times at which calls may continue: hippod's estimate, and the time that the server stated. The stated time is later
        than the estimate if other calls are being accepted."""
        self._refusal: tuple[float, LimitedCall] | None = None
        """The first of several simultaneous refusals, until the pause after them ends."""
        self._resumed_at = clock()
        self._calls: list[LimitedCall] = []
        """Calls since the last refusal."""
        self._levels: deque[LimitedCall] = deque(maxlen=LEVELS)
        self._exceeded = False
        self._early_refusals = 0
        self._outage = False
        self._failures = 0
        self._window_before = replace(self._window)
        """The state of `_window` before the first of the consecutive failures."""
        self._header_spacing_s = self._header_until = 0.0

    @property
    def inside(self) -> int:
        return self._calls_under_way

    @property
    def rate(self) -> float | None:
        """Current limit of calls per second; None before the first refusal."""
        return None if self._rate.value == math.inf else self._rate.value

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[LimitedCall]:
        """Waits for a free slot (first come, first served) and occupies it."""
        call = await self._enter()
        try:
            yield call
        finally:
            self._calls_under_way -= 1
            self._freed.set()

    async def _enter(self) -> LimitedCall:
        async with self._turn:
            while True:
                now = self._clock()
                if now < self._paused_until:
                    await asyncio.sleep(self._paused_until - now)
                    continue
                if self._refusal is not None:
                    self._learn(now)
                    continue
                self._grow(now)
                if self._calls_under_way >= (1 if self._outage else max(1, round(self._window.value))):
                    self._waited_for = self._window
                    self._freed.clear()
                    await self._freed.wait()
                elif now < self._next:
                    self._waited_for = self._rate
                    await asyncio.sleep(self._next - now)
                else:
                    break
            probes = self._rate.value == math.inf or (self._waited_for is self._rate and self._rate.probes)
            self._waited_for = None
            self._next = now + max(1 / self._rate.value, self._header_spacing_s if now < self._header_until else 0.0)
            self._calls_under_way += 1
            call = LimitedCall(now, self._calls_under_way, probes)
            self._calls.append(call)
            if self._refusal is None and len(self._calls) > 16 * LEVELS:
                self._remember_levels(self._calls)
            return call

    def _grow(self, now: float) -> None:
        if self._waited_for is self._rate:
            self._rate.grow((now - self._grown_at) * min(1.0, self._rate.value / SLOW_RATE))
        elif self._waited_for is self._window and self._window.plateau is not None:
            self._window.grow(now - self._grown_at)
        self._grown_at = now

    def succeeded(self, limit: RateLimit | None = None) -> None:
        """Records an accepted call. `limit`: the rate limit in the answer's headers."""
        now = self._clock()
        self._failures = 0
        if self._window.plateau is None:
            self._window.value = min(self._window.value + 1, self._window.maximum)
        if self._outage:
            self._outage = False
            self._window.value = max(1.0, self._window.value / 2)
        if limit is not None:
            self._header_until = now + limit.reset_s
            self._header_spacing_s = limit.reset_s / max(limit.remaining, 1)
            if limit.remaining == 0:
                self._next = max(self._next, now + limit.reset_s)

    def failed(self, call: LimitedCall) -> None:
        """Records a timeout, a lost connection or a server error."""
        call.accepted = False
        for other in (*self._levels, *self._calls):
            other.inside -= call.began < other.began
        if self._outage:
            return
        window = self._window
        if self._failures == 0:
            self._window_before = replace(window)
        self._failures += 1
        if self._failures >= OUTAGE_FAILURES:
            window.value, window.plateau = self._window_before.value, self._window_before.plateau
            self._outage = True
            return
        # Each failure lowers the limit by half a call: if all calls fail, the concurrency halves; one failure in a hundred has
        # little effect.
        lost = max(0.0, min(0.5, window.value - 1))
        plateau = window.value if window.plateau is None else window.plateau
        window.value -= lost
        window.plateau = max(window.value, plateau - lost / 2)

    def refused(self, call: LimitedCall, retry_after_s: float | None) -> None:
        """Records a 429: the server accepts no more calls at present."""
        now = self._clock()
        call.accepted = False
        if self._refusal is None:
            self._refusal = now, call
        wait = retry_after_s
        if wait is None:
            wait = OUTAGE_PAUSE_S if self._outage or self._failures else DEFAULT_PAUSE_S
        self._server_pause_until = max(self._server_pause_until, now + wait)
        if self._rate.value < math.inf and wait <= BRIEF_S and not self._outage:
            self._paused_until = max(self._paused_until, now + min(wait, SETTLE_S))
        else:
            self._paused_until = self._server_pause_until

    def _learn(self, now: float) -> None:
        """Learns from a refusal, after it is known which other calls were refused for the same reason."""
        assert self._refusal is not None
        (at, refused), self._refusal = self._refusal, None
        accepted = [call for call in self._calls if call.accepted and call.began <= at]
        self._calls = [call for call in self._calls if call.began > at]
        if not accepted:
            self._outage = True
            self._paused_until = self._server_pause_until
        else:
            self._levels.extend(accepted)
            level = sorted(call.inside for call in self._levels)[-1 - len(self._levels) // LEVEL_OUTLIERS]
            exceeded_before, self._exceeded = self._exceeded, refused.inside > level
            if self._exceeded and (exceeded_before or not refused.probes_rate):
                self._window.back_off(level, level)
            else:
                self._lower_rate(accepted, at, now)
        self._resumed_at = self._grown_at = now

    def _lower_rate(self, accepted: list[LimitedCall], at: float, now: float) -> None:
        rate = self._rate
        if rate.value == math.inf:
            # The span includes the pause, during which some servers refill their quota.
            span = max(1.0, now - at)
            count = sum(call.began >= at - span for call in accepted)
            estimate = max(count, 1) / span
            rate.value = RATE_BACKOFF * estimate
            rate.plateau = RATE_PLATEAU * estimate if count >= ENOUGH_CALLS else None
            return
        since = max(self._resumed_at, at - RECENT_S)
        count = sum(call.began >= since for call in accepted)
        refused = rate.value
        if count >= ENOUGH_CALLS:
            measured = count / max(at - since, 0.5)
            refused = min(refused, measured if rate.plateau is not None else 1.5 * measured)
        self._early_refusals = 0 if rate.probes else self._early_refusals + 1
        factor = REPEATED_BACKOFF if self._early_refusals >= 2 else RATE_BACKOFF
        rate.back_off(factor * refused, factor * refused * RATE_PLATEAU / RATE_BACKOFF)

    def _remember_levels(self, calls: list[LimitedCall]) -> None:
        """After a long time without a refusal, deletes the data of old calls that is no longer needed."""
        self._levels.extend(call for call in calls[:-LEVELS] if call.accepted)
        del calls[:-LEVELS]
