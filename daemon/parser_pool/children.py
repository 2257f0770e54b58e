"""The child processes of the pool: started when none is idle, reused, and replaced when they are worn."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from consumers.failure_codes import FailureCode
from daemon.parser_pool.child_process import MIB, Child, ChildLost


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """`memory_bytes` of address space and `timeout_s` seconds per message of one child.

    A child is replaced after `recycle_after` requests, or if its resident memory exceeds `recycle_rss_bytes`.
    """

    memory_bytes: int = 1024 * MIB
    timeout_s: float = 60.0
    recycle_after: int = 2_000
    recycle_rss_bytes: int = 256 * MIB


class Children:
    """All child processes, and those of them that are idle. Use on one event loop."""

    def __init__(self, limits: ChildLimits) -> None:
        self.limits = limits
        self.closed = False
        self._idle: list[Child] = []
        self.all: set[Child] = set()
        self._first: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the first child without waiting for it. Others are started when no child is idle."""
        self._first = asyncio.create_task(self._start_first())

    async def close(self) -> None:
        """Kills all children; requests in progress fail."""
        self.closed = True
        if self._first is not None:
            self._first.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._first
        await asyncio.gather(*(child.kill() for child in tuple(self.all)))
        self._idle.clear()
        self.all.clear()

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the children."""
        return tuple(child.pid for child in self.all)

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Child]:
        """Provides an exclusive child. It is reused only if its response was read completely."""
        child = await self._ready_child()
        try:
            yield child
        finally:
            if child.between_requests and not (self.closed or child.interrupted or self._is_worn(child)):
                self._idle.append(child)
            else:
                self.all.discard(child)
                await asyncio.shield(child.kill())

    async def _ready_child(self) -> Child:
        if self._first is not None and not self._first.done():
            await asyncio.shield(self._first)
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            self.all.discard(child)
            await child.kill()
        return await self._start()

    def _is_worn(self, child: Child) -> bool:
        return child.requests >= self.limits.recycle_after or child.rss >= self.limits.recycle_rss_bytes

    async def _start_first(self) -> None:
        with contextlib.suppress(ChildLost):  # the next request tries again and gets the error
            self._idle.append(await self._start())  # without a place, because a run with a place may wait for this

    async def _start(self) -> Child:
        if self.closed:
            raise ChildLost("was cancelled, because the parsers were stopped", FailureCode.OTHER)
        child = await Child.start(self.limits.memory_bytes, self.limits.timeout_s)
        self.all.add(child)
        return child
