"""The client of a connection, as the kernel identifies it."""

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
"""Linux 4.13; Python has no name for it."""
_GROUPS_MAX = 256
"""As many as `getsockopt` returns in Python (1 KiB). Of a process in more only the first group is known."""
_UNAUTHENTICATED = "unauthenticated"


@dataclass(frozen=True, slots=True)
class Peer:
    """A process of this machine (Unix socket: its pid, uid and gid when it connected), or an address (TCP)."""

    side: Literal["unix", "tcp"]
    pid: int | None = None
    uid: int | None = None
    gid: int | None = None
    address: str | None = None
    groups: frozenset[int] = frozenset()
    """Unix: all groups of the process, `gid` among them."""

    @property
    def client(self) -> str:
        """What limits count as one client while nothing else identifies it (`daemon.api.access.identity`): a user, or an
        address; of IPv6 a network of 64 bits, since one client has all of it."""
        if self.address is None:
            return f"uid {self.uid}"
        try:
            parsed = ip_address(self.address.partition("%")[0])
        except ValueError:
            return self.address
        return str(parsed if parsed.version == 4 else ip_network((parsed, 64), strict=False))

    @property
    def is_own_process(self) -> bool:
        """Whether hippod itself connected: for its first query, or for a client of its MCP server."""
        return self.pid == os.getpid()

    def fields(self) -> dict[str, Any]:
        """For the log."""
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
    except OSError:  # an older kernel, or more groups than there is room for
        return ()
    return struct.unpack(f"{len(found) // 4}I", found)


def mark_unauthenticated(scope: Scope) -> None:
    """Tells the connection that the client of this request has not proved who it is: it may be evicted at the limit."""
    scope.setdefault("state", {})[_UNAUTHENTICATED] = True


def is_unauthenticated(scope: Mapping[str, object]) -> bool:
    state = scope.get("state")
    return isinstance(state, Mapping) and _UNAUTHENTICATED in state


def request_peer(scope: Scope) -> Peer:
    """The peer of a request, as its connection recorded it."""
    found = scope.get("state", {}).get("peer")
    return found if isinstance(found, Peer) else UNKNOWN_PEER
