"""The state that all routes share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field

from starlette.requests import Request

from daemon.api.access.client import identity_of
from daemon.api.access.rights import client_of
from daemon.api.middleware.request_limits import ConcurrencyLimit, RateLimiter
from daemon.api.ports import STARTUP_WAIT_S, MemoryPorts, StartupGate, StartupPorts, memory_ports, startup_ports
from daemon.api.request_parsing import BodyMemory, BodyReservation
from daemon.api.settings import ApiLimits
from daemon.contract.graph import GraphRequest
from daemon.contract.query import QueryRequest


@dataclass(frozen=True, slots=True)
class ApiContext:
    """Shared by all routes of a server, on its Unix socket and on TCP. `stopping` is set when the server begins to stop."""

    startup_ports: StartupPorts
    """Not limited to a client, unlike the result of `startup`."""
    gate: StartupGate
    limits: ApiLimits
    body_memory: BodyMemory
    queries: ConcurrencyLimit
    asks: ConcurrencyLimit
    exports: ConcurrencyLimit
    subscribers: ConcurrencyLimit
    imports: ConcurrencyLimit
    maintenance: ConcurrencyLimit
    waits: ConcurrencyLimit
    as_of: ConcurrencyLimit
    rate_limiter: RateLimiter
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def startup(self, request: Request) -> StartupPorts:
        """Returns the ports that work while the memory is opening, limited to what the client of `request` may see."""
        return startup_ports(self.startup_ports, client_of(request.scope))

    async def memory(self, request: Request) -> MemoryPorts:
        """Waits until the memory's ports exist (`StartupGate.ports`); returns them limited to what the client may see."""
        client = client_of(request.scope)
        return memory_ports(await self.gate.ports(), client)

    def body_reservation(self, request: Request) -> AbstractContextManager[BodyReservation]:
        """Reserves a part of `body_memory` for the body of `request`."""
        return self.body_memory.reservation(identity_of(request.scope))

    def slot(self, limit: ConcurrencyLimit, request: Request) -> AbstractContextManager[None]:
        """Holds a slot of `limit` for the client of `request`. Raises Busy."""
        return limit.slot(identity_of(request.scope))

    @asynccontextmanager
    async def memory_for_query(
        self, request: Request, query: QueryRequest | GraphRequest
    ) -> AsyncIterator[MemoryPorts]:
        """Yields the memory's ports while holding a slot for `query`.

        Requests that arrived while hippod started wait for a slot, oldest first. Later requests raise Busy if no slot is free.
        """
        started = self.gate.is_decided
        ports = await self.memory(request)
        limit = self.queries if query.as_of is None else self.as_of
        if started:
            with self.slot(limit, request):
                yield ports
            return
        async with limit.slot_in_turn(identity_of(request.scope), STARTUP_WAIT_S):
            yield ports


def make_context(ports: StartupPorts, memory: StartupGate, limits: ApiLimits) -> ApiContext:
    return ApiContext(
        startup_ports=ports,
        gate=memory,
        limits=limits,
        body_memory=BodyMemory(
            max(limits.body_memory_bytes, limits.json_bytes, limits.lines_bytes), limits.client_share
        ),
        queries=ConcurrencyLimit(limits.queries, "queries", limits.client_share),
        asks=ConcurrencyLimit(limits.asks, "questions", limits.client_share),
        exports=ConcurrencyLimit(limits.exports, "exports", limits.client_share),
        subscribers=ConcurrencyLimit(limits.subscribers, "readers of events", limits.client_share),
        imports=ConcurrencyLimit(limits.imports, "imports", limits.client_share),
        maintenance=ConcurrencyLimit(limits.maintenance, "checks or backups", limits.client_share),
        waits=ConcurrencyLimit(limits.waits, "waits", limits.client_share),
        as_of=ConcurrencyLimit(limits.as_of, "queries of an earlier state", limits.client_share),
        rate_limiter=RateLimiter(limits.requests_per_s),
    )
