"""What the routes share."""

import asyncio
from dataclasses import dataclass, field

from daemon.api.middleware.concurrency import ConcurrencyLimit
from daemon.api.middleware.rate_limit import RateLimiter
from daemon.api.request_body import BodyMemory
from daemon.api.service_protocols import StartupPorts
from daemon.api.settings import ApiLimits
from daemon.api.startup_gate import StartupGate


@dataclass(frozen=True, slots=True)
class ApiContext:
    """One for each server; its Unix socket and TCP share it. `stopping` is set when the server begins to stop."""

    ports: StartupPorts
    memory: StartupGate
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


def make_context(ports: StartupPorts, memory: StartupGate, limits: ApiLimits) -> ApiContext:
    return ApiContext(
        ports=ports,
        memory=memory,
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
