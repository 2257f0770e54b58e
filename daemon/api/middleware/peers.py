"""The peer of a connection, as the kernel reports it."""

import asyncio
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any, Literal

from starlette.types import Scope

_CREDENTIALS = struct.Struct("3i")
_SO_PEERGROUPS = 59
"""SO_PEERGROUPS of Linux 4.13, for which Python has no name."""
_GROUPS_MAX = 256
"""Python's `getsockopt` returns at most 1 KiB. If a process has more groups, only its primary group is known."""
_UNAUTHENTICATED = "unauthenticated"


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection: a local process (pid, uid and gid when it connected), or an IP address (TCP)."""

    side: Literal["unix", "tcp"]
    pid: int | None = None
    uid: int | None = None
    gid: int | None = None
    address: str | None = None
    groups: frozenset[int] = frozenset()
    """All groups of the process, including `gid` (Unix socket only)."""

    @property
    def client(self) -> str:
        """Identity of a client without a token, for limits: its user or its address (`daemon.api.access.client`).

        An IPv6 address counts as its /64 network, because one client usually owns all of it.
        """
        if self.address is None:
            return f"uid {self.uid}"
        try:
            parsed = ip_address(self.address.partition("%")[0])
        except ValueError:
            return self.address
        return str(parsed if parsed.version == 4 else ip_network((parsed, 64), strict=False))

    @property
    def is_own_process(self) -> bool:
        """Whether hippod itself connected, to send its first query or a request for a client of its MCP server."""
        return self.pid == os.getpid()

    def fields(self) -> dict[str, Any]:
        """Returns the fields for a log line."""
        named = {"pid": self.pid, "uid": self.uid, "gid": self.gid, "address": self.address}
        return {key: value for key, value in named.items() if value is not None}


UNKNOWN_PEER = Peer("unix")


def connection_peer(transport: asyncio.BaseTransport) -> Peer:
    connected = transport.get_extra_info("socket")
    if connected is None:
        return UNKNOWN_PEER
    if connected.family != socket.AF_UNIX:
        name = transport.get_extra_info("peername")
        return Peer("tcp", address=str(name[0]) if name else "unknown")
    try:
        credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except (OSError, AttributeError):  # not Linux
        return UNKNOWN_PEER
    pid, uid, gid = _CREDENTIALS.unpack(credentials)
    return Peer("unix", pid or None, uid, gid, groups=frozenset({gid, *_supplementary_groups(connected)}))


def _supplementary_groups(connected: socket.socket) -> tuple[int, ...]:
    try:
        found = connected.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, 4 * _GROUPS_MAX)
    except OSError:  # an older kernel, or more groups than fit
        return ()
    return struct.unpack(f"{len(found) // 4}I", found)


def mark_unauthenticated(scope: Scope) -> None:
    """Marks the client of a request as not authenticated: its connection may be evicted at the connection limit."""
    scope.setdefault("state", {})[_UNAUTHENTICATED] = True


def is_unauthenticated(scope: Mapping[str, object]) -> bool:
    state = scope.get("state")
    return isinstance(state, Mapping) and _UNAUTHENTICATED in state


def request_peer(scope: Scope) -> Peer:
    """Returns the peer that the request's connection recorded."""
    found = scope.get("state", {}).get("peer")
    return found if isinstance(found, Peer) else UNKNOWN_PEER
