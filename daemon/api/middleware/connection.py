"""uvicorn's HTTP/1.1 connection, with a deadline on everything that a client can delay."""

import array
import asyncio
import fcntl
import termios
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from daemon.api import responses
from daemon.api.middleware.peers import connection_peer, is_unauthenticated
from daemon.api.settings import ApiLimits
from daemon.contract.http.routes import Route
from daemon.errors import BadRequest, Busy, RequestError
from daemon.observe import metrics


class HttpServerConfig(uvicorn.Config):
    """uvicorn's configuration for one side of the API: no signals, no log set-up, no headers that name the server."""

    def __init__(self, app: ASGIApp, limits: ApiLimits) -> None:
        super().__init__(
            app,
            http=HttpConnection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            workers=1,
            timeout_keep_alive=75,
        )
        self.limits = limits
        self.none_evictable_at = float("-inf")
        """When it was last found that no connection could make room for another."""


EVICTION_PAUSE_S = 0.01
"""For this long after none was found, no connection is looked for that could make room: looking takes a system call each."""
PLACE_WAIT_S = 0.25
"""How long a new connection waits for another to make room."""
FIRST_REQUEST_S = 0.5
"""How long a stop waits for the request of a connection that has just been made."""
TOO_MANY = "Too many connections are open; try again in a moment."


class HttpConnection(H11Protocol):
    """Cuts off a client that does not finish a request's head, goes on sending a refused body, or does not read.

    At the limit of connections, a new one replaces the one that has waited longest without a request. So a client that
    opens many and sends nothing loses its own, and so does one that has sent nothing but the beginning of a login. Whoever has
    sent a request keeps its connection, even if it was not read yet: after a restart all that waited come at once. Where
    nobody makes room for a moment, the new one is answered with 503.

    uvicorn itself has a deadline only for the time between two requests. Bodies have theirs in `daemon.api.request_body`.
    """

    config: HttpServerConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._lingering = False
        self._refused = False
        self._last_request = False
        """Whether the connection ends after its next answer: the server stops."""
        self._since = 0.0
        """The time of the connection, or of its last answer."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._peer = connection_peer(transport)
        self.app_state = {**self.app_state, "peer": self._peer}
        limit = self.config.limits.connections
        self._count()
        # Those that are only being told of their refusal take nobody's place.
        if len(self.connections) > limit and self._served() > limit and not self._evict_idle():
            self._wait_for_place(self._since + PLACE_WAIT_S)
        else:
            self._set_deadline(self.config.limits.headers_timeout_s, "headers")

    def _wait_for_place(self, until: float) -> None:
        """Nothing is read until another connection makes room; those that came together with this one may be about to show
        that they ask nothing. 503 where none does in time, or where too many wait."""
        limits = self.config.limits
        if len(self.connections) > limits.connections + limits.refused_connections or self.loop.time() >= until:
            self._refuse_or_cut("connections")
            return
        self.transport.pause_reading()
        self._waiting = self.loop.call_later(EVICTION_PAUSE_S, self._ask_for_place, until)

    def _ask_for_place(self, until: float) -> None:
        if self.transport.is_closing():
            return
        if self._served() > self.config.limits.connections and not self._evict_idle():
            self._wait_for_place(until)
            return
        self.transport.resume_reading()
        self._set_deadline(self.config.limits.headers_timeout_s, "headers")

    def _served(self) -> int:
        """Connections that are not refused, this one among them."""
        return sum(not (isinstance(each, HttpConnection) and each._refused) for each in self.connections)

    def _evict_idle(self) -> bool:
        """Ends the connection that has waited longest for a request; those that never made one, or whose last was turned
        away, come first."""
        now = self.loop.time()
        if now - self.config.none_evictable_at < EVICTION_PAUSE_S:
            return False
        others = [each for each in self.connections if isinstance(each, HttpConnection) and each is not self]
        idle = [each for each in others if each._is_evictable and not each._refused and not each.transport.is_closing()]
        for each in sorted(idle, key=lambda each: (not each._is_unauthenticated, each._since)):
            if each._was_turned_away or not each._has_unread():
                each._make_room()
                return True
        self.config.none_evictable_at = now
        return False

    def _has_unread(self) -> bool:
        """Whether the client has sent something that was not read yet: a request, most likely."""
        count = array.array("i", [0])
        try:
            fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.FIONREAD, count)
        except (OSError, ValueError):  # closed
            return False
        return count[0] > 0

    def _make_room(self) -> None:
        """Ends this connection for a newer one; a client that may be about to ask learns why."""
        if not self._has_asked:
            self._refuse_or_cut("made room")
        elif self.idle and not self.transport.get_write_buffer_size():
            self._cancel_deadline()
            metrics.REFUSED.labels("made room").inc()
            self.transport.close()
        else:
            self._cut("made room")

    def _refuse_or_cut(self, reason: str) -> None:
        """503, as long as there are not too many that wait for their refusal to be read."""
        limits = self.config.limits
        if len(self.connections) > limits.connections + limits.refused_connections:
            self._cut(reason)
        else:
            self._refuse(Busy(TOO_MANY, of=reason))

    @property
    def _is_unauthenticated(self) -> bool:
        """Whether it had no request yet, or its latest was turned away or not yet authenticated."""
        return not self._has_asked or self._was_turned_away

    @property
    def _has_asked(self) -> bool:
        """Whether the head of a request has come."""
        return bool(self.cycle)

    @property
    def _was_turned_away(self) -> bool:
        """Whether it asked without a token: what it sends beyond that protects it no more."""
        return self._has_asked and is_unauthenticated(self.scope)

    @property
    def _is_evictable(self) -> bool:
        return self.idle or self._is_unauthenticated

    def _count(self) -> None:
        metrics.CONNECTIONS.labels(self._peer.side).set(len(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        if self._stalled is not None:
            self._stalled.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        self._count()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._lingering = False
            self._cancel_deadline()
            if self._last_request:
                self.cycle.keep_alive = False
        elif self.idle and not self.transport.is_closing():
            if self._lingering and self.conn.their_state is not h11.SEND_BODY:  # all thrown away: an idle connection
                self._lingering = False
                self._set_deadline(self.timeout_keep_alive, "keep-alive")
            elif self._waiting is None:
                self._set_deadline(self.config.limits.headers_timeout_s, "headers")

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._since = self.loop.time()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._lingering = True
            self._set_deadline(self.config.limits.linger_s, "linger")

    def shutdown(self) -> None:
        """The server stops. A request that is under way, or was sent and not read yet, is still answered."""
        if self._refused or self.transport.is_closing():
            return
        is_new = not self._has_asked and self.loop.time() - self._since < FIRST_REQUEST_S
        if self.idle and (is_new or self._has_unread()):
            self._last_request = True
            self.transport.resume_reading()  # it may have waited for a place
            self._set_deadline(FIRST_REQUEST_S, "stopping")
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        super().pause_writing()
        limits = self.config.limits
        watching = self.scope is not None and self.scope["path"] == Route.EVENTS
        seconds = limits.events_stall_s if watching else limits.read_stall_s
        self._stalled = self.loop.call_later(seconds, self._cut, "not reading")

    def resume_writing(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        metrics.REFUSED.labels("not HTTP").inc()
        self._refuse(BadRequest(f"{msg.rstrip('.')}: it is not HTTP/1.1, or its head is too long."))

    @property
    def idle(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def _set_deadline(self, seconds: float, what: str) -> None:
        """Cut the connection off when it has not done `what` in time."""
        self._cancel_deadline()
        self._waiting = self.loop.call_later(seconds, self._cut, what)

    def _cancel_deadline(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _cut(self, reason: str) -> None:
        """Abort, not close: closing waits for a client to read, which is what it does not do."""
        self._cancel_deadline()
        metrics.REFUSED.labels(reason).inc()
        self.transport.abort()

    def _refuse(self, error: RequestError) -> None:
        """Answer without an app. What the client still sends is thrown away for a moment: closing on it loses the answer."""
        self._refused = True
        self.transport.resume_reading()  # it may have waited for a place
        answer = responses.problem_response(error, {"Connection": "close"})
        try:
            head = h11.Response(status_code=answer.status_code, headers=answer.raw_headers)
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # a response is already on its way: all that is left is to close
            self.transport.close()
            return
        self.transport.write_eof()
        self._set_deadline(self.config.limits.linger_s, "linger")
