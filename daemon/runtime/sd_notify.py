"""Reports the service's state to systemd (`sd_notify`, `Type=notify`).

The protocol is one datagram of `NAME=value` lines to the socket in `$NOTIFY_SOCKET`. Existing libraries either need the
headers of libsystemd to build, or have had no release for years and hide every error.
"""

import os
import socket
import time
from collections.abc import Mapping

import structlog

_SEND_TIMEOUT_S = 1.0  # systemd reads at once; a socket that is full must not stop the service.

log = structlog.get_logger()


class Notifier:
    """Sends states to the service manager; does nothing if there is none."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._failure_logged = False
        self.watchdog_s = _watchdog_s(environ)
        """Maximum seconds between two calls of `watchdog`; None without a watchdog."""

    def ready(self, status: str = "") -> bool:
        """Reports that queries are answered; also ends a reload."""
        return self._send("READY=1", *_status(status))

    def status(self, text: str) -> bool:
        """Sends one line about what the service is doing, shown by `systemctl status`."""
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
        """Asks for this many more seconds, from now, to start or stop."""
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
    """Returns a path, or a name in the abstract namespace, in which systemd writes `@` instead of the leading NUL."""
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
        ours = not pid or int(pid) == os.getpid()
    except (KeyError, ValueError):
        return None
    return allowed_s if ours and allowed_s > 0 else None
