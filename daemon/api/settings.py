"""Settings of the API, and the limits for its clients."""

from dataclasses import dataclass, field
from pathlib import Path

from daemon.api.access.client import ClientRule

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """A client beyond one of these bytes, seconds or counts is refused, so that it cannot delay others."""

    json_bytes: int = 16 * MIB
    """A JSON body is parsed at one go on the event loop: 16 MiB take about 80 ms."""
    lines_bytes: int = 64 * MIB
    """A body of JSON lines is parsed line by line as it arrives."""
    documents_per_request: int = 100_000
    """Documents in one body of JSON lines: as many as may wait to be indexed, since more are refused whatever they say."""
    import_bytes: int = 1024 * MIB
    """An import is passed on chunk by chunk and never kept in memory."""
    body_memory_bytes: int = 192 * MIB
    """Bodies of all requests together that may be in memory at a time; always room for one as long as may be."""
    body_grace_s: float = 10.0
    min_bytes_per_s: int = 16 * 1024
    """A body must arrive within `body_grace_s` and the time its bytes take at this rate."""
    headers_timeout_s: float = 10.0
    linger_s: float = 2.0
    """How long the rest of a refused body is read and thrown away, so that the client gets to see the refusal."""
    read_stall_s: float = 60.0
    """How long a client may read nothing of a response before it is cut off."""
    events_stall_s: float = 600.0
    connections: int = 512
    """On each side, Unix and TCP. Where there are more, the one that has waited longest without asking goes."""
    refused_connections: int = 64
    """Beyond these, how many are answered with 503 at a time. Still others are closed without an answer."""
    queries: int = 64
    asks: int = 8
    exports: int = 4
    subscribers: int = 64
    imports: int = 2
    maintenance: int = 1
    """Verifying and backing up, which read the whole store."""
    waits: int = 256
    """Requests that wait for what is not indexed yet: `wait`, and questions with `after`."""
    as_of: int = 8
    """Questions about an earlier commit, of which one at a time is loaded."""
    client_share: float = 0.5
    """Of each of these numbers, of the connections and of `body_memory_bytes`: what one client may hold while nobody else
    holds anything. The more others hold, the less: some room is left for whoever comes next."""
    requests_per_s: float = 1000.0
    """Of one client (`daemon.api.access.identity`); 0: no limit."""
    heartbeat_s: float = 15.0


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """`tcp` is host and port, `token_file` then required, or a client's. `group` None leaves the socket's group as it comes."""

    socket: Path
    mode: int = 0o660
    group: str | None = None
    tcp: tuple[str, int] | None = None
    token_file: Path | None = None
    clients: tuple[ClientRule, ...] = ()
    """Without any, whoever can connect may do all."""
    limits: ApiLimits = field(default_factory=ApiLimits)
