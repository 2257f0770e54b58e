"""Settings of the API, and the limits for its clients."""

from dataclasses import dataclass, field
from pathlib import Path

from daemon.api.access.client import ClientRule
from daemon.config_types.values import MiB


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """Limits for clients. A client that exceeds a limit is refused or cut off, so that it cannot delay other clients.

    The fields up to `client_share` are keys of `[api]` with the same names (`daemon.config.sections`).
    """

    request_bytes: int = 16 * MiB
    """A body is parsed in one step on the event loop, in about 80 ms for 16 MiB."""
    lines_bytes: int = 64 * MiB
    import_bytes: int = 1024 * MiB
    requests_per_s: float = 1000.0
    connections: int = 512
    """Maximum connections of each listener (Unix socket, TCP). Beyond the limit, the longest idle connection is closed."""
    concurrent_queries: int = 64
    concurrent_asks: int = 8
    concurrent_exports: int = 4
    event_readers: int = 64
    concurrent_waits: int = 256
    concurrent_as_of: int = 8
    """One earlier commit is loaded at a time."""
    client_share: float = 0.5
    """Maximum share of each limit (connections, bytes of bodies, concurrent requests) that one client may hold while no other
    client holds a part of it. The share shrinks as other clients hold more, so that some capacity is left for the next
    client."""
    imports: int = 2
    maintenance: int = 1
    """Verifications and backups, which read the whole store."""
    documents_per_request: int = 100_000
    """Maximum documents in one body of JSON lines. Equals the limit of documents that wait to be indexed; more would be
    refused."""
    body_memory_bytes: int = 192 * MiB
    """Maximum total bytes of bodies in memory. Must be at least the maximum length of one body."""
    body_grace_s: float = 10.0
    min_bytes_per_s: int = 16 * 1024
    """A body must arrive within `body_grace_s` plus the time that its bytes take at this rate."""
    headers_timeout_s: float = 10.0
    linger_s: float = 2.0
    """How long the remaining bytes of a refused body are read and discarded, so that the client can read the refusal."""
    read_stall_s: float = 60.0
    """How long a client may stop reading a response before it is cut off."""
    events_stall_s: float = 600.0
    refused_connections: int = 64
    """Maximum number of connections beyond the limit that are answered with 503 at a time. Further connections are closed
    without a response."""
    heartbeat_s: float = 15.0


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """`tcp` is host and port; it requires `token_file` or a client's token file. If `group` is None, the socket's group is not
    changed."""

    socket: Path
    mode: int = 0o660
    group: str | None = None
    tcp: tuple[str, int] | None = None
    token_file: Path | None = None
    clients: tuple[ClientRule, ...] = ()
    """Without clients, anyone who can connect has all rights."""
    limits: ApiLimits = field(default_factory=ApiLimits)
