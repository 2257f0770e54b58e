"""What the routes share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect, Request

from daemon.api.access.client_ports import memory_ports, startup_ports
from daemon.api.access.rights import client_of
from daemon.api.middleware.concurrency import ConcurrencyLimit
from daemon.api.middleware.rate_limit import RateLimiter
from daemon.api.request_body import BodyMemory
from daemon.api.service_protocols import MemoryPorts, StartupPorts
from daemon.api.settings import ApiLimits
from daemon.api.startup_gate import STARTUP_WAIT_S, StartupGate


@dataclass(frozen=True, slots=True)
class ApiContext:
    """One for each server; its Unix socket and TCP share it. `stopping` is set when the server begins to stop."""

    startup_ports: StartupPorts
    """All of them: a request gets what its client sees, by `startup`."""
    gate: StartupGate
    limits: ApiLimits
    body_memory: BodyMemory
    queries: ConcurrencyLimit
    asks: ConcurrencyLimit
    exports: ConcurrencyLimit
    subscribers: ConcurrencyLimit
    imports: ConcurrencyLimit
    maintenance: ConcurrencyLimit
    """Verifying and backing up, which read the whole store."""
    rate_limiter: RateLimiter
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def startup(self, request: Request) -> StartupPorts:
        """What answers from the first moment, as the client of `request` has it."""
        return startup_ports(self.startup_ports, client_of(request.scope))

    async def memory(self, request: Request) -> MemoryPorts:
        """The memory, as the client of `request` has it. Waits for it as `StartupGate.ports` does."""
        client = client_of(request.scope)
        return memory_ports(await self.gate.ports(), client)

    @asynccontextmanager
    async def memory_for_query(self, request: Request) -> AsyncIterator[MemoryPorts]:
        """The memory and a place among the queries. Who came while hippod started gets one in turn, oldest first; who comes
        later is refused while all are taken (Busy)."""
        if self.gate.is_decided:
            ports = await self.memory(request)
            with self.queries.slot():
                yield ports
            return
        ports = await self.memory(request)
        async with self.queries.slot_in_turn(STARTUP_WAIT_S):
            if await request.is_disconnected():
                raise ClientDisconnect
            yield ports


def make_context(ports: StartupPorts, memory: StartupGate, limits: ApiLimits) -> ApiContext:
    return ApiContext(
        startup_ports=ports,
        gate=memory,
        limits=limits,
        body_memory=BodyMemory(max(limits.body_memory_bytes, limits.json_bytes, limits.lines_bytes)),
        queries=ConcurrencyLimit(limits.queries, "queries"),
        asks=ConcurrencyLimit(limits.asks, "questions"),
        exports=ConcurrencyLimit(limits.exports, "exports"),
        subscribers=ConcurrencyLimit(limits.subscribers, "readers of events"),
        imports=ConcurrencyLimit(limits.imports, "imports"),
        maintenance=ConcurrencyLimit(limits.maintenance, "checks or backups"),
        rate_limiter=RateLimiter(limits.requests_per_s),
    )
