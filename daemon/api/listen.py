"""The sockets on which the API listens.

A Unix socket gets its mode and group before it accepts connections. The service manager may also pass a Unix socket
(`inherited_socket`). If hippod cannot start, it answers the clients that wait in that socket. Otherwise, the clients would keep
waiting, and each client would make the service manager start hippod again.
"""

import errno
import grp
import json
import os
import socket
import stat
import struct
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

from daemon.config_types.private_umask import make_shared_folder
from daemon.contract.http.routes import ProblemType
from daemon.contract.paths import SOCKET_BYTES_MAX

FIRST_INHERITED_FD = 3
"""The first descriptor that systemd passes to a service (sd_listen_fds(3))."""
WAITING_CLIENTS_MAX = 2048
"""`Backlog=` of the socket's unit."""
SEND_TIMEOUT_S = 1.0
REQUEST_BYTES = 65536
CANNOT_START_DETAIL = (
    "hippod cannot start: `systemctl status` of its unit and its log (`journalctl -u hippod`) say why and what to do"
)
"""Omits the reason, which may name files that the client must not know."""


class ListenError(Exception):
    """The API cannot listen on the configured address. The message says why and what to do."""


def bind_unix(path: Path, mode: int, group: str | None) -> socket.socket:
    """Returns a socket bound to `path` that does not listen yet.

    Connections are refused until `listen`, so mode and group are set before the first one. Unlike a umask, this does not affect
    other threads. Replaces the socket of a dead process; raises ListenError for the socket of a live process.
    """
    if len(os.fsencode(path)) > SOCKET_BYTES_MAX:
        raise ListenError(f"socket path {path} is longer than {SOCKET_BYTES_MAX} bytes; choose a shorter [api] socket")
    try:
        make_shared_folder(path.parent)
        _clear_stale(path)
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        raise ListenError(f"cannot create the socket {path}: {error.strerror}") from error
    try:
        bound.bind(os.fspath(path))
        if group is not None:
            os.chown(path, -1, _gid(group))
        path.chmod(mode)
    except BaseException as error:
        bound.close()
        if not (isinstance(error, OSError) and error.errno == errno.EADDRINUSE):
            with suppress(OSError):
                path.unlink()
        if isinstance(error, PermissionError) and group is not None:
            raise ListenError(f"cannot give {path} to group {group!r}: this user is not a member of it") from error
        if isinstance(error, OSError):
            raise ListenError(f"cannot create the socket {path}: {error.strerror}") from error
        raise
    return bound


def _clear_stale(path: Path) -> None:
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise ListenError(f"{path} exists and is not a socket; move it away or choose another [api] socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        except (TimeoutError, BlockingIOError):
            raise ListenError(f"{path} is in use by a process that does not accept; stop it first") from None
        except PermissionError:
            raise ListenError(f"{path} belongs to another user's process; choose another [api] socket") from None
        raise ListenError(
            f"{path} is in use{_listening_process(probe)}; stop that process or choose another [api] socket"
        )


def _listening_process(connected: socket.socket) -> str:
    """Returns " by process PID" for the process that listens at the other end, or "" if the system does not know it."""
    if not hasattr(socket, "SO_PEERCRED"):
        return ""
    pid, _, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return f" by process {pid}" if pid else ""


def _gid(group: str) -> int:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        raise ListenError(f"[api] group {group!r} is not a group of this machine") from None


def inherited_socket(environ: MutableMapping[str, str]) -> socket.socket | None:
    """Returns the listening Unix socket that the service manager passed to this process, or None if it passed none.

    The manager owns the socket's mode, group and file; hippod changes and unlinks nothing. Raises ListenError for any other
    kind of socket. Removes the variables that describe the socket from `environ`, so that no child process uses them.
    """
    variables = {name: environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")}
    if (
        variables["LISTEN_PID"] != str(os.getpid())
        or not variables["LISTEN_FDS"].isdigit()
        or variables["LISTEN_FDS"] == "0"
    ):
        return None
    count = int(variables["LISTEN_FDS"])
    if count > 1:
        raise ListenError(
            f"the service manager passes {count} sockets ({variables['LISTEN_FDNAMES'] or 'unnamed'}); hippod takes one: leave "
            "one ListenStream= with a path in its .socket unit (TCP is set in [api] tcp)"
        )
    try:
        kind = os.fstat(FIRST_INHERITED_FD).st_mode
        if not stat.S_ISSOCK(kind):
            raise ListenError(f"descriptor {FIRST_INHERITED_FD}, which the service manager passed, is not a socket")
        inherited = socket.socket(fileno=FIRST_INHERITED_FD)
    except OSError as error:
        raise ListenError(
            f"the service manager passes descriptor {FIRST_INHERITED_FD}, which is not open: {error}"
        ) from error
    inherited.set_inheritable(False)
    if inherited.family != socket.AF_UNIX or inherited.type != socket.SOCK_STREAM:
        inherited.detach()
        raise ListenError(
            "the service manager passes a socket that is not a Unix stream socket; write ListenStream= with a path into its "
            ".socket unit (TCP is set in [api] tcp, where it needs a token)"
        )
    if not inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        inherited.detach()
        raise ListenError(
            "the service manager passes a socket that does not listen; write Accept=no into its .socket unit"
        )
    inherited.setblocking(False)
    return inherited


def bind_tcp(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ListenError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    # Accepted connections inherit TCP_NODELAY. Otherwise, the body of a response waits 40 ms for the client to acknowledge the
    # head. asyncio sets it only on sockets that were created with an explicit protocol.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound


def file_identity(path: Path) -> tuple[int, int] | None:
    """Returns device and inode of `path`, None if it does not exist."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def refuse_waiting_clients(environ: MutableMapping[str, str]) -> int:
    """Sends 503 to all clients that wait in an inherited socket; returns their number. No effect without such a socket."""
    try:
        listening = inherited_socket(environ)
    except ListenError:
        return 0
    if listening is None:
        return 0
    refused = 0
    with listening:
        while refused < WAITING_CLIENTS_MAX:
            try:
                client, _ = listening.accept()
            except OSError:  # no client waits any more
                break
            refused += 1
            with suppress(OSError), client:
                _refuse(client)
    return refused


def _refuse(client: socket.socket) -> None:
    problem = {
        "type": ProblemType.CANNOT_START,
        "title": "hippod cannot start",
        "status": 503,
        "detail": CANNOT_START_DETAIL,
    }
    body = json.dumps(problem).encode()
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    client.settimeout(SEND_TIMEOUT_S)
    client.sendall(head.encode() + body)
    # A socket that is closed with unread data resets the connection, and the client would lose the answer.
    client.setblocking(False)
    with suppress(BlockingIOError):
        while client.recv(REQUEST_BYTES):
            pass
