"""What every route is given."""

import asyncio
from dataclasses import dataclass, field

from daemon.api.body import Held
from daemon.api.gate import Gate
from daemon.api.ports import Ports
from daemon.api.rates import Rates
from daemon.api.settings import Limits


@dataclass(frozen=True, slots=True)
class Context:
    """One a server, shared by its Unix and TCP sides. `stopping` is set once, when the server is told to stop."""

    ports: Ports
    limits: Limits
    held: Held
    queries: Gate
    asks: Gate
    exports: Gate
    subscribers: Gate
    imports: Gate
    tending: Gate
    """Verifying and backing up, which read the whole store."""
    rates: Rates
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


def context(ports: Ports, limits: Limits) -> Context:
    return Context(
        ports=ports,
        limits=limits,
        held=Held(max(limits.held_bytes, limits.json_bytes, limits.lines_bytes)),
        queries=Gate(limits.queries, "queries"),
        asks=Gate(limits.asks, "questions"),
        exports=Gate(limits.exports, "exports"),
        subscribers=Gate(limits.subscribers, "readers of events"),
        imports=Gate(limits.imports, "imports"),
        tending=Gate(limits.tending, "checks or backups"),
        rates=Rates(limits.requests_per_s),
    )
