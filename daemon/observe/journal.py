"""Sends log events with their fields to systemd's journal (systemd.io/JOURNAL_NATIVE_PROTOCOL).

`journalctl` shows the message: the event's name, the error and the other fields. `journalctl HIPPOD_EVENT=part_blocked` filters
by a field, and `-o json` shows all fields. The protocol is one datagram per event. The library for the protocol,
python-systemd, needs libsystemd's headers to build.
"""

import fcntl
import json
import os
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from errno import EMSGSIZE, ENOBUFS
from pathlib import Path
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

SOCKET = Path("/run/systemd/journal/socket")
PREFIX = "HIPPOD_"
"""Prefix of the names of fields. Without it, some names (pid, uid) could be mistaken for the journal's own fields."""
PRIORITY = {"critical": 2, "error": 3, "warning": 4, "info": 6, "debug": 7}
NOT_A_FIELD = frozenset({"time", "level", "event", "logger", "error", "hint", "exception", "stack"})
"""Fields that the message does not repeat, because the journal or another part of the message contains them."""


class JournalSender:
    """The last processor of structlog: sends the event to the journal. If the journal refuses the event, returns a line for
    stderr."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        with suppress(OSError):
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._socket.connect(os.fspath(SOCKET))

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> str:
        """Raises DropEvent if the journal has accepted the event."""
        fields = {"MESSAGE": message(event), "PRIORITY": str(priority(event)), "SYSLOG_IDENTIFIER": "hippod"}
        fields |= {PREFIX + name.upper(): _text(value) for name, value in event.items() if name != "time"}
        if self._socket is not None and _sent(self._socket, _datagram(fields)):
            raise structlog.DropEvent
        return prefixed_message(_logger, _method, event)


def prefixed_message(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    """Returns the message as one line that begins with its priority, which the journal parses from a service's stderr."""
    return f"<{priority(event)}>{message(event)}".replace("\n", " | ")


def message(event: Mapping[str, Any]) -> str:
    """Formats event, error, fields, hint and traceback: `commit_failed: No space left on device (documents=1)`."""
    head = str(event.get("event", ""))
    if error := event.get("error"):
        head += f": {_text(error)}"
    if fields := [f"{name}={_quoted(value)}" for name, value in event.items() if name not in NOT_A_FIELD]:
        head += f" ({', '.join(fields)})"
    if hint := event.get("hint"):
        head += f"; {_text(hint)}"
    return "\n".join(str(part) for part in (head, event.get("exception"), event.get("stack")) if part)


def priority(event: Mapping[str, Any]) -> int:
    """Returns the syslog number of the event's level."""
    return PRIORITY.get(str(event.get("level")), 6)


def _quoted(value: object) -> str:
    text = _text(value)
    plain = text and text.isprintable() and not any(each in text for each in ' "=,')
    return text if plain or not isinstance(value, str) else json.dumps(text, ensure_ascii=False)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)


def _datagram(fields: Mapping[str, str]) -> bytes:
    parts = []
    for name, text in fields.items():
        value = text.encode("utf-8", "backslashreplace")
        if b"\n" in value:
            parts += [name.encode(), b"\n", struct.pack("<Q", len(value)), value, b"\n"]
        else:
            parts += [name.encode(), b"=", value, b"\n"]
    return b"".join(parts)


def _sent(to: socket.socket, datagram: bytes) -> bool:
    try:
        to.send(datagram)
    except OSError as error:
        return error.errno in (EMSGSIZE, ENOBUFS) and _sent_as_file(to, datagram)
    return True


def _sent_as_file(to: socket.socket, datagram: bytes) -> bool:
    """Sends an entry that is too large for a datagram as a sealed file in memory."""
    try:
        file = os.memfd_create("hippod-journal", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.write(file, datagram)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
            socket.send_fds(to, [], [file])
        finally:
            os.close(file)
    except OSError:
        return False
    return True
