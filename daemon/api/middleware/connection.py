"""uvicorn's HTTP/1.1 connection, with a deadline on every step that a client can delay."""

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
    """uvicorn's configuration for the Unix socket or TCP: no signals, no logging set-up, no headers that name the server."""

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
        """Event-loop time of the last search that found no connection to evict."""


EVICTION_PAUSE_S = 0.01
"""Pause after a search that found no connection to evict: each search costs a system call per idle connection."""
PLACE_WAIT_S = 0.25
"""How long a new connection waits for another one to be evicted."""
FIRST_REQUEST_S = 0.5
"""How long a stopping server waits for the first request of a new connection."""
TOO_MANY = "Too many connections are open; try again in a moment."


class HttpConnection(H11Protocol):
    """Cuts off a client that does not finish a request's head, keeps sending a refused body, or does not read responses.

    At the connection limit, a new connection replaces the one that has waited longest without a request. So a client that opens
    many connections and sends nothing, or only the beginning of a login, loses its own connections. A connection whose request
    has arrived is kept, even if the request was not parsed yet: after a restart, all waiting clients connect at once. If no
    connection can be evicted within `PLACE_WAIT_S`, the new one is answered with 503.

    uvicorn itself limits only the time between two requests. `daemon.api.request_parsing` limits the time for bodies.
    """

    config: HttpServerConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._lingering = False
        self._refused = False
        self._last_request = False
        """Whether the connection closes after its next response because the server stops."""
        self._since = 0.0
        """Event-loop time at which the connection opened or its last response ended."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._peer = connection_peer(transport)
        self.app_state = {**self.app_state, "peer": self._peer}
        limit = self.config.limits.connections
        self._count()
        # Connections that are being refused do not count towards the limit.
        if len(self.connections) > limit and self._served() > limit and not self._evict_idle():
            self._wait_for_place(self._since + PLACE_WAIT_S)
        else:
            self._set_deadline(self.config.limits.headers_timeout_s, "headers")

    def _wait_for_place(self, until: float) -> None:
        """Waits, without reading, until another connection can be evicted; answers 503 at `until` or if too many wait.

        Waiting helps because connections that opened at the same moment may soon turn out to be idle.
        """
        limits = self.config.limits
        if len(self.connections) > limits.connections + limits.refused_connections or self.loop.time() >= until:
            self._refuse_or_cut("connections")
            return
        self.transport.pause_reading()
        self._waiting = self.loop.call_later(EVICTION_PAUSE_S, self._retry_place, until)

    def _retry_place(self, until: float) -> None:
        if self.transport.is_closing():
            return
        if self._served() > self.config.limits.connections and not self._evict_idle():
            self._wait_for_place(until)
            return
        self.transport.resume_reading()
        self._set_deadline(self.config.limits.headers_timeout_s, "headers")

    def _served(self) -> int:
        """Returns the number of connections, including this one, that were not refused."""
        return sum(not (isinstance(each, HttpConnection) and each._refused) for each in self.connections)

    def _evict_idle(self) -> bool:
        """Evicts the connection that has waited longest for a request; returns whether there was one.

        Connections without any request, and those whose last request was not authenticated, are evicted first.
        """
        now = self.loop.time()
        if now - self.config.none_evictable_at < EVICTION_PAUSE_S:
            return False
        others = [each for each in self.connections if isinstance(each, HttpConnection) and each is not self]
        idle = [each for each in others if each._is_evictable and not each._refused and not each.transport.is_closing()]
        for each in sorted(idle, key=lambda each: (not each._is_unauthenticated, each._since)):
            if each._failed_authentication or not each._has_unread():
                each._evict()
                return True
        self.config.none_evictable_at = now
        return False

    def _has_unread(self) -> bool:
        """Returns whether the client sent bytes, most likely a request, that were not read yet."""
        count = array.array("i", [0])
        try:
            fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.FIONREAD, count)
        except (OSError, ValueError):  # closed
            return False
        return count[0] > 0

    def _evict(self) -> None:
        """Closes this connection in favour of a newer one. A client that never sent a request receives 503 with the reason."""
        if not self._has_request:
            self._refuse_or_cut("made room")
        elif self.idle and not self.transport.get_write_buffer_size():
            self._cancel_deadline()
            metrics.REFUSED.labels("made room").inc()
            self.transport.close()
        else:
            self._cut("made room")

    def _refuse_or_cut(self, reason: str) -> None:
        """Answers 503. Cuts the connection off instead if too many refused clients have not read their answer yet."""
        limits = self.config.limits
        if len(self.connections) > limits.connections + limits.refused_connections:
            self._cut(reason)
        else:
            self._refuse(Busy(TOO_MANY, resource=reason))

    @property
    def _is_unauthenticated(self) -> bool:
        """Whether the connection has had no request yet, or its latest request is not authenticated."""
        return not self._has_request or self._failed_authentication

    @property
    def _has_request(self) -> bool:
        """Whether the head of a request has arrived."""
        return bool(self.cycle)

    @property
    def _failed_authentication(self) -> bool:
        """Whether the latest request is not authenticated. Unread bytes do not protect such a connection from eviction."""
        return self._has_request and is_unauthenticated(self.scope)

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
            if self._lingering and self.conn.their_state is not h11.SEND_BODY:  # the whole body was discarded: now idle
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
        """Stops the connection. A request in progress, or sent and not read yet, is still answered."""
        if self._refused or self.transport.is_closing():
            return
        is_new = not self._has_request and self.loop.time() - self._since < FIRST_REQUEST_S
        if self.idle and (is_new or self._has_unread()):
            self._last_request = True
            self.transport.resume_reading()  # reading is paused if it waited for a place
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
        self._refuse(BadRequest(f"{msg.rstrip('.')}: the request is not HTTP/1.1, or its head is too long."))

    @property
    def idle(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def _set_deadline(self, seconds: float, what: str) -> None:
        """Cuts the connection off after `seconds`. `what`: the reason, as the metric's label."""
        self._cancel_deadline()
        self._waiting = self.loop.call_later(seconds, self._cut, what)

    def _cancel_deadline(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _cut(self, reason: str) -> None:
        """Aborts the connection. A close would wait for the client to read, which it may never do."""
        self._cancel_deadline()
        metrics.REFUSED.labels(reason).inc()
        self.transport.abort()

    def _refuse(self, error: RequestError) -> None:
        """Sends a response without the app, then discards incoming bytes for a moment: an immediate close would lose the
        response."""
        self._refused = True
        self.transport.resume_reading()  # reading is paused if it waited for a place
        answer = responses.problem_response(error, {"Connection": "close"})
        try:
            head = h11.Response(status_code=answer.status_code, headers=answer.raw_headers)
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # another response has begun, so the connection can only be closed
            self.transport.close()
            return
        self.transport.write_eof()
        self._set_deadline(self.config.limits.linger_s, "linger")
