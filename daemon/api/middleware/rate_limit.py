"""A rate limit per client, so that a client that never pauses leaves capacity for others."""

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from daemon.errors import TooManyRequests

BURST_S = 2.0
"""Seconds' worth of requests that a client may send at once after a pause."""
CLIENTS_MAX = 4096
"""Maximum number of clients with a bucket. A client whose bucket was dropped starts again with a full one."""


class RateLimiter:
    """A token bucket per client. `per_s` is the rate; 0 means no limit. Use from one event loop only: it has no lock."""

    def __init__(self, per_s: float, now: Callable[[], float] = monotonic) -> None:
        self._per_s = per_s
        self._most = max(per_s * BURST_S, 1.0)
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, client: str) -> None:
        """Takes one token from the bucket of `client`. Raises TooManyRequests if it is empty."""
        if not self._per_s:
            return
        now = self._now()
        left, at = self._left.pop(client, (self._most, now))
        left = min(left + (now - at) * self._per_s, self._most)
        self._left[client] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._left) > CLIENTS_MAX:
            self._left.popitem(last=False)
        if left < 1:
            raise TooManyRequests(
                f"More than {self._per_s:g} requests a second came from one client ([api] requests_per_s); "
                "make fewer, or wait a moment."
            )
