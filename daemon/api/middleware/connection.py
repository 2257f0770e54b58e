"""uvicorn's HTTP/1.1 connection, with a deadline on everything that a client can delay."""

import asyncio
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


REFUSED_CONNECTIONS_MAX = 64
"""How many connections beyond the limit are answered with a refusal at a time. Those beyond are closed without one."""


class HttpConnection(H11Protocol):
    """Cuts off a client that does not finish a request's head, goes on sending a refused body, or does not read.

    At the limit of connections, a new one replaces the one that has waited longest without a request. So a client that
    opens many and sends nothing loses its own, and so does one that has sent nothing but the beginning of a login. uvicorn
    itself has a deadline only for the time between two requests. Bodies have theirs in `daemon.api.request_body`.
    """

    config: HttpServerConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._lingering = False
        self._refused = False
        self._since = 0.0
        """The time of the connection, or of its last answer."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._peer = connection_peer(transport)
        self.app_state = {**self.app_state, "peer": self._peer}
        limit = self.config.limits.connections
        self._count()
        if len(self.connections) > limit and not self._evict_idle():
            if len(self.connections) > limit + REFUSED_CONNECTIONS_MAX:
                self._cut("connections")
            else:
                self._refuse(Busy("Too many connections are open; try again in a moment.", of="connections"))
        else:
            self._set_deadline(self.config.limits.headers_timeout_s, "headers")

    def _evict_idle(self) -> bool:
        """Ends the connection that has waited longest for a request; those that never made one, or whose last was turned
        away, come first."""
        others = [each for each in self.connections if isinstance(each, HttpConnection) and each is not self]
        evictable = [
            each for each in others if each._is_evictable and not each._refused and not each.transport.is_closing()
        ]
        if not evictable:
            return False
        min(evictable, key=lambda each: (not each._is_unauthenticated, each._since))._cut("made room")
        return True

    @property
    def _is_unauthenticated(self) -> bool:
        """Whether it had no request yet, or its latest was refused or not yet authenticated."""
        return self.cycle is None or is_unauthenticated(self.scope)

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
        answer = responses.problem_response(error, {"HttpConnection": "close"})
        try:
            head = h11.Response(status_code=answer.status_code, headers=answer.raw_headers)
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # a response is already on its way: all that is left is to close
            self.transport.close()
            return
        self.transport.write_eof()
        self._set_deadline(self.config.limits.linger_s, "linger")
