"""The state that all routes share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager

from starlette.requests import Request

from daemon.api.access.client import identity_of
from daemon.api.access.rights import client_of
from daemon.api.middleware.request_limits import ConcurrencyLimit, RateLimiter
from daemon.api.ports import STARTUP_WAIT_S, MemoryPorts, StartupGate, StartupPorts, memory_ports, startup_ports
from daemon.api.request_parsing import BodyMemory, BodyReservation
from daemon.api.settings import ApiLimits
from daemon.contract.graph import GraphRequest
from daemon.contract.query import QueryRequest


class ApiContext:
    """Shared by all routes of a server, on its Unix socket and on TCP."""

    def __init__(self, ports: StartupPorts, gate: StartupGate, limits: ApiLimits) -> None:
        self.startup_ports = ports
        """Not limited to a client, unlike the result of `startup`."""
        self.gate = gate
        self.limits = limits
        share = limits.client_share
        body_bytes = max(limits.body_memory_bytes, limits.request_bytes, limits.lines_bytes)
        self.body_memory = BodyMemory(body_bytes, share)
        self.queries = ConcurrencyLimit(limits.concurrent_queries, "queries", share)
        self.asks = ConcurrencyLimit(limits.concurrent_asks, "questions", share)
        self.exports = ConcurrencyLimit(limits.concurrent_exports, "exports", share)
        self.subscribers = ConcurrencyLimit(limits.event_readers, "readers of events", share)
        self.imports = ConcurrencyLimit(limits.imports, "imports", share)
        self.maintenance = ConcurrencyLimit(limits.maintenance, "checks or backups", share)
        self.waits = ConcurrencyLimit(limits.concurrent_waits, "waits", share)
        self.as_of = ConcurrencyLimit(limits.concurrent_as_of, "queries of an earlier state", share)
        self.rate_limiter = RateLimiter(limits.requests_per_s)
        self.stopping = asyncio.Event()
        """Set when the server begins to stop."""

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
