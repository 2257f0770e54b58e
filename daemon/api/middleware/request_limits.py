"""Limits for requests of one kind: a rate per client, and concurrency, with a share for each client.

A client that holds units may take more if its new total is at most `client_share` times the sum of its present units and the
free units. So one client never takes a whole limit, and a free unit is left for a client without units.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic

from daemon.errors import Busy, TooManyRequests
from daemon.observe import metrics

BURST_S = 2.0
"""After a pause, a client may send the requests of this many seconds at once."""
CLIENTS_MAX = 4096
"""Maximum number of clients with a bucket. A client whose bucket was dropped starts again with a full one."""


class FairShares:
    """The units of one limit, counted per client. Use from one event loop only: it has no lock."""

    def __init__(self, limit: int, client_share: float) -> None:
        self.limit = limit
        self._client_share = client_share
        self._held: Counter[str] = Counter()
        self.total = 0

    def units_of(self, client: str) -> int:
        """Returns the number of units that `client` holds."""
        return self._held[client]

    def has_room(self, count: int) -> bool:
        """Returns whether `count` more units are within the limit."""
        return self.total + count <= self.limit

    def fits(self, client: str, count: int = 1, *, first: bool) -> bool:
        """Returns whether `client` may take `count` units. `first`: the client holds no units yet, so its share does not
        matter."""
        if not self.has_room(count):
            return False
        own = self._held[client]
        return first or own + count <= self._client_share * (self.limit - self.total + own)

    def take(self, client: str, count: int = 1) -> None:
        self.total += count
        self._held[client] += count

    def release(self, client: str, count: int = 1) -> None:
        self.total -= count
        self._held[client] -= count
        if not self._held[client]:
            del self._held[client]


class ConcurrencyLimit:
    """Slots for one kind of request. `what`: the kind in the plural, also its metric's label. Use from one event loop."""

    def __init__(self, limit: int, what: str, client_share: float = 1.0) -> None:
        self._what = what
        self._shares = FairShares(limit, client_share)
        self._line: deque[tuple[str, asyncio.Future[None]]] = deque()

    @contextmanager
    def slot(self, client: str) -> Iterator[None]:
        """Holds a slot. Raises Busy if all slots, or this client's share of them, are taken."""
        if not self._fits(client):
            raise self._busy(client)
        self._take(client)
        try:
            yield
        finally:
            self._leave(client)

    @asynccontextmanager
    async def slot_in_turn(self, client: str, patience_s: float) -> AsyncIterator[None]:
        """Waits for a slot, first come first served among clients within their share. Raises Busy after `patience_s`."""
        if self._fits(client):
            self._take(client)
        else:
            await self._turn(client, patience_s)
        try:
            yield
        finally:
            self._leave(client)

    async def _turn(self, client: str, patience_s: float) -> None:
        """Waits for the turn of `client` and takes a slot. Raises Busy after `patience_s`."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append((client, turn))
        try:
            async with asyncio.timeout(patience_s):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._leave(client)  # the slot was granted after the request was cancelled
            elif (client, turn) in self._line:
                self._line.remove((client, turn))
            if isinstance(error, TimeoutError):
                raise self._busy(client) from None
            raise

    def _fits(self, client: str) -> bool:
        return self._shares.fits(client, first=not self._shares.units_of(client))

    def _take(self, client: str) -> None:
        self._shares.take(client)
        metrics.UNDER_WAY.labels(self._what).inc()

    def _leave(self, client: str) -> None:
        """Releases a slot, and grants free slots to waiting clients that are within their share."""
        self._shares.release(client)
        metrics.UNDER_WAY.labels(self._what).dec()
        waiting, self._line = self._line, deque()
        for following, turn in waiting:
            if turn.done():
                continue
            if self._fits(following):
                self._take(following)
                turn.set_result(None)
            else:
                self._line.append((following, turn))

    def _busy(self, client: str) -> Busy:
        if self._shares.has_room(1):
            return Busy(
                f"{self._shares.units_of(client)} {self._what} of this client are already running, and the remaining capacity "
                "([api] client_share) is for other clients; try again in a moment.",
                resource=f"{self._what} of one client",
            )
        return Busy(
            f"{self._shares.limit} {self._what} are already under way; try again in a moment.", resource=self._what
        )


class RateLimiter:
    """A token bucket per client. `per_s` is the rate; 0 means no limit. Use from one event loop only: it has no lock."""

    def __init__(self, per_s: float, now: Callable[[], float] = monotonic) -> None:
        self._per_s = per_s
        self._burst = max(per_s * BURST_S, 1.0)
        self._now = now
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, client: str) -> None:
        """Takes one token from the bucket of `client`. Raises TooManyRequests if it is empty."""
        if not self._per_s:
            return
        now = self._now()
        tokens, updated_at = self._buckets.pop(client, (self._burst, now))
        tokens = min(tokens + (now - updated_at) * self._per_s, self._burst)
        self._buckets[client] = (max(tokens - 1, 0.0) if tokens >= 1 else tokens, now)
        if len(self._buckets) > CLIENTS_MAX:
            self._buckets.popitem(last=False)
        if tokens < 1:
            raise TooManyRequests(
                f"More than {self._per_s:g} requests a second came from one client ([api] requests_per_s); "
                "make fewer, or wait a moment."
            )
