"""How many requests a client may make in a second, so that one that asks without a pause leaves room for others."""

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from daemon.api.errors import TooManyRequests

BURST_S = 2.0
"""A client that was quiet may make as many seconds' worth of requests at once."""
REMEMBERED = 4096
"""Clients; whoever is forgotten starts anew, with a full bucket."""


class Rates:
    """A token bucket for each client. `per_s` 0: no limit. On one event loop."""

    def __init__(self, per_s: float, now: Callable[[], float] = monotonic) -> None:
        self._per_s = per_s
        self._most = max(per_s * BURST_S, 1.0)
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, client: str) -> None:
        """One request more of `client`. TooManyRequests when it has none left."""
        if not self._per_s:
            return
        now = self._now()
        left, at = self._left.pop(client, (self._most, now))
        left = min(left + (now - at) * self._per_s, self._most)
        self._left[client] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        if left < 1:
            raise TooManyRequests(
                f"More than {self._per_s:g} requests a second came from one client ([api] requests_per_s); "
                "make fewer, or wait a moment."
            )
