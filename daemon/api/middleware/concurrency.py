"""A limit on requests of one kind at a time. A client beyond it is refused at once; who waited for the start waits in turn."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from daemon.errors import Busy
from daemon.observe import metrics


class ConcurrencyLimit:
    """For one event loop: it has no lock. `what` is the label of its metric, a plural."""

    def __init__(self, limit: int, what: str) -> None:
        self._limit = limit
        self._what = what
        self._inside = 0
        self._line: deque[asyncio.Future[None]] = deque()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Busy when the limit is reached."""
        if self._inside >= self._limit:
            raise self._busy()
        self._move(1)
        try:
            yield
        finally:
            self._leave()

    @asynccontextmanager
    async def slot_in_turn(self, patience_s: float) -> AsyncIterator[None]:
        """Waits for a place, first come first served, and before whoever comes later. Busy after `patience_s` seconds."""
        if self._inside < self._limit:
            self._move(1)
        else:
            await self._turn(patience_s)
        try:
            yield
        finally:
            self._leave()

    async def _turn(self, patience_s: float) -> None:
        """Returns with a place that another has left."""
        turn = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            async with asyncio.timeout(patience_s):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._leave()  # the place came in the moment in which nobody wanted it any more
            elif turn in self._line:
                self._line.remove(turn)
            if isinstance(error, TimeoutError):
                raise self._busy() from None
            raise

    def _leave(self) -> None:
        """The place goes to the next in line, or is free."""
        while self._line:
            following = self._line.popleft()
            if not following.done():
                following.set_result(None)
                return
        self._move(-1)

    def _busy(self) -> Busy:
        return Busy(f"{self._limit} {self._what} are already under way; try again in a moment.", of=self._what)

    def _move(self, by: int) -> None:
        self._inside += by
        metrics.UNDER_WAY.labels(self._what).set(self._inside)
