"""Reports the state to systemd (`sd_notify`, `Type=notify`), and describes the socket inherited from it.

A report is one datagram of `NAME=value` lines to the socket in `$NOTIFY_SOCKET`. No library is used: existing libraries need
libsystemd's headers to build, or have had no release for years and hide all errors. systemd's socket has the path, mode and
group of its `.socket` unit; the settings of `[api]` then have no effect, and the log reports differences.
"""

import grp
import os
import socket
import stat
import time
from collections.abc import Mapping
from pathlib import Path

import structlog

from daemon.config.sections import Api

_SEND_TIMEOUT_S = 1.0  # systemd reads at once; a socket that is full must not stop the service.
HINT = (
    "SocketMode= and SocketGroup= of the socket's unit decide: change them with `systemctl edit hippod.socket` ([Socket]), "
    "then stop hippod.service and hippod.socket, and start both"
)

log = structlog.get_logger()


class Notifier:
    """Sends states to the service manager; does nothing without one."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._failure_logged = False
        self.watchdog_s = _watchdog_s(environ)
        """Maximum seconds between two calls of `watchdog`; None without a watchdog."""

    def ready(self, status: str = "") -> bool:
        """Reports that queries are answered; also reports the end of a reload."""
        return self._send("READY=1", *_status(status))

    def status(self, text: str) -> bool:
        """Sends a line about the service's present activity, which `systemctl status` shows."""
        return self._send(*_status(text))

    def stopping(self, status: str = "") -> bool:
        return self._send("STOPPING=1", *_status(status))

    def reloading(self) -> bool:
        """Reports the beginning of a reload; `ready` ends it."""
        return self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def watchdog(self) -> bool:
        """Reports that the service is alive: all of its parts make progress."""
        return self._send("WATCHDOG=1")

    def extend_timeout(self, seconds: float) -> bool:
        """Requests this many seconds from now for the start or stop."""
        return self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def _send(self, *lines: str) -> bool:
        """Sends a datagram; returns whether that succeeded."""
        if self._address is None or not lines:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(_SEND_TIMEOUT_S)
                sender.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            if not self._failure_logged:
                self._failure_logged = True
                log.warning("notify_failed", error=str(error))
            return False
        return True


def _address(text: str) -> str | None:
    """Returns the path, or the name in the abstract namespace; systemd writes `@` for that name's leading NUL."""
    if text.startswith("@"):
        return "\0" + text[1:]
    return text if text.startswith("/") else None


def _status(text: str) -> list[str]:
    line = " ".join(text.split())  # a line break would begin another assignment
    return [f"STATUS={line}"] if line else []


def _watchdog_s(environ: Mapping[str, str]) -> float | None:
    pid = environ.get("WATCHDOG_PID", "")
    try:
        allowed_s = int(environ["WATCHDOG_USEC"]) / 1_000_000
        is_for_this_process = not pid or int(pid) == os.getpid()
    except (KeyError, ValueError):
        return None
    return allowed_s if is_for_this_process and allowed_s > 0 else None


def inherited_address(inherited: socket.socket, api: Api) -> str:
    """Returns the address of the inherited socket; logs differences from the configuration."""
    address = str(inherited.getsockname())
    if address != str(api.socket):
        log.warning("socket_differs", listening=address, configured=str(api.socket))
    try:
        file = Path(address).stat()
    except (OSError, ValueError):  # a socket without a file has neither mode nor group
        return address
    if found := access_differences(file, api):
        log.warning(
            "socket_access_differs",
            listening=", ".join(f"{what} {actual}" for what, actual, _ in found),
            configured=", ".join(f"{what} {value}" for what, _, value in found),
            hint=HINT,
        )
    return address


def access_differences(file: os.stat_result, api: Api) -> list[tuple[str, str, str]]:
    """Returns ("mode" or "group", the socket's value, the value in `[api]`) for each difference.

    Compares the mode only if it is set explicitly, because the unit's default may differ.
    """
    found = []
    if "mode" in api.model_fields_set and (mode := stat.S_IMODE(file.st_mode)) != api.mode_bits:
        found.append(("mode", f"{mode:04o}", f"{api.mode_bits:04o}"))
    if api.group is not None and grp.getgrnam(api.group).gr_gid != file.st_gid:
        found.append(("group", _group_name(file.st_gid), api.group))
    return found


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
