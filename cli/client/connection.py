"""HTTP over a Unix socket with h11, one request at a time. Loading httpx2 would take as long as two commands.

A connection is reused for the next request. A request either succeeds or raises one of this file's four public errors.
"""

import select
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

import h11

READ_BYTES = 65_536
HEADERS_BYTES_MAX = 65_536


class ConnectionRefused(Exception):
    """No process listens on the socket, or this user may not connect. The message is the system's."""


class RequestsNotTaken(Exception):
    """The daemon did not accept a connection or did not read a request in time."""


class AnswerTooLate(Exception):
    """The daemon did not answer in time."""


class ConnectionLost(Exception):
    """The connection ended before the answer, or the answer is not valid HTTP; the message says which."""


class _SendingStopped(Exception):
    """The other end has stopped reading. It may have sent a refusal before it read the whole request."""


class Response:
    """The head of an answer. `pieces` is its body as it arrives; it must be read once, before the next request."""

    def __init__(self, status: int, pieces: Iterator[bytes]) -> None:
        self.status = status
        self.pieces = pieces

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def read(self) -> bytes:
        return b"".join(self.pieces)

    def lines(self) -> Iterator[str]:
        """Yields the body's lines without their ends, each as soon as it arrives."""
        left = b""
        for piece in self.pieces:
            *whole, left = (left + piece).split(b"\n")
            yield from (line.decode(errors="replace").removesuffix("\r") for line in whole)
        if left:
            yield left.decode(errors="replace")


class Connection:
    """A connection to one socket. `connect_timeout_s` applies only to connecting."""

    def __init__(self, path: str, connect_timeout_s: float) -> None:
        self._path = path
        self._connect_timeout_s = connect_timeout_s
        self._socket: socket.socket | None = None
        self._state = h11.Connection(h11.CLIENT, HEADERS_BYTES_MAX)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def request(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        content: bytes | Iterable[bytes] | None,
        timeout_s: float | None,
    ) -> Response:
        """Sends a request and returns the head of its answer.

        `timeout_s` limits how long the daemon may neither answer nor read (`None`: no limit). An iterable `content` is sent in
        chunks while it is produced.
        """
        connected = self._connected()
        connected.settimeout(timeout_s)
        lines = {"host": "localhost", "user-agent": "hippoctl", **headers}
        if isinstance(content, bytes):
            lines["content-length"] = str(len(content))
        elif content is not None:
            lines["transfer-encoding"] = "chunked"
        elif method != "GET":
            lines["content-length"] = "0"
        pieces = [content] if isinstance(content, bytes) else content or ()
        try:
            self._send(h11.Request(method=method, target=target, headers=list(lines.items())))
            for piece in pieces:
                self._send(h11.Data(data=piece))
            self._send(h11.EndOfMessage())
        except _SendingStopped:
            pass  # the answer is read next
        event = self._next_event()
        while isinstance(event, h11.InformationalResponse):
            event = self._next_event()
        if not isinstance(event, h11.Response):
            raise ConnectionLost("Server disconnected without sending a response.")
        return Response(event.status_code, self._body())

    def _connected(self) -> socket.socket:
        """Returns the existing connection if it is still usable, otherwise a new one."""
        if self._state.our_state is h11.DONE and self._state.their_state is h11.DONE:
            self._state.start_next_cycle()
        if self._socket is not None and (self._state.our_state is not h11.IDLE or _is_readable(self._socket)):
            self.close()  # data before a request means that the other end is closing
        if self._socket is None:
            self._socket = self._connect()
            self._state = h11.Connection(h11.CLIENT, HEADERS_BYTES_MAX)
        return self._socket

    def _connect(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(self._connect_timeout_s)
        try:
            made.connect(self._path)
        except TimeoutError:
            made.close()
            raise RequestsNotTaken from None
        except OSError as error:
            made.close()
            raise ConnectionRefused(str(error)) from None
        return made

    def _send(self, event: h11.Event) -> None:
        assert self._socket is not None
        if data := self._state.send(event):
            try:
                self._socket.sendall(data)
            except TimeoutError:
                raise RequestsNotTaken from None
            except OSError:
                raise _SendingStopped from None

    def _next_event(self) -> h11.Event | type[h11.PAUSED] | type[h11.NEED_DATA]:
        assert self._socket is not None
        try:
            while (event := self._state.next_event()) is h11.NEED_DATA:
                self._state.receive_data(self._socket.recv(READ_BYTES))
        except TimeoutError:
            raise AnswerTooLate from None
        except (OSError, h11.RemoteProtocolError) as error:
            raise ConnectionLost(str(error) or type(error).__name__) from None
        return event

    def _body(self) -> Iterator[bytes]:
        while isinstance(event := self._next_event(), h11.Data):
            yield bytes(event.data)
        if not isinstance(event, h11.EndOfMessage):
            raise ConnectionLost("Server disconnected in the middle of its answer.")


def _is_readable(connected: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    with suppress(OSError):
        return bool(poll.poll(0))
    return True
