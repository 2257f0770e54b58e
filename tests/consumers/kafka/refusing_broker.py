"""A broker that refuses every login: it answers SASL with error 58, like a real broker after a wrong password."""

import contextlib
import socket
import struct
import threading
from types import TracebackType
from typing import Any, Self

VERSIONS, HANDSHAKE, LOGIN = 18, 17, 36
KNOWN = ((VERSIONS, 0, 2), (HANDSHAKE, 0, 1), (LOGIN, 0, 1), (3, 0, 8))
"""Supported requests with their minimum and maximum version; 3 requests metadata."""


class Refusing:
    """Replaces `Cluster` in tests."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {"api_version": [2, 3]}
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.brokers = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.logins = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream, contextlib.suppress(OSError, struct.error):
            while True:
                (size,) = struct.unpack(">i", stream.read(4))
                kind, version, number = struct.unpack_from(">hhi", stream.read(size))
                body = struct.pack(">i", number) + self._body(kind, version)
                connection.sendall(struct.pack(">i", len(body)) + body)

    def _body(self, kind: int, version: int) -> bytes:
        if kind == VERSIONS:
            known = struct.pack(">i", len(KNOWN)) + b"".join(struct.pack(">hhh", *each) for each in KNOWN)
            unsupported = struct.pack(">h", 35) + known
            return unsupported if version > 2 else struct.pack(">h", 0) + known + struct.pack(">i", 0)
        if kind == HANDSHAKE:
            return struct.pack(">hih", 0, 1, 5) + b"PLAIN"
        if kind == LOGIN:
            self.logins += 1
            why = b"wrong password"
            return struct.pack(">hh", 58, len(why)) + why + struct.pack(">i", 0) + struct.pack(">q", 0)
        raise OSError("nobody comes as far as that")
