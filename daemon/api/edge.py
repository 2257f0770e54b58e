"""The outermost layer: nothing a request does goes further than its own answer, and every answer is counted and logged."""

from time import monotonic, perf_counter
from typing import Any

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon import metrics
from daemon.api import respond
from daemon.api.body import Pace
from daemon.api.errors import ApiError, Internal
from daemon.api.peers import Peer, call_stranger, peer_in
from daemon.api.rates import Rates
from daemon.api.settings import Limits
from daemon.contract import Route

log = structlog.get_logger(__name__)
UNTIMED = (Route.EVENTS, Route.EXPORT, Route.WAIT)
"""How long these take is up to the client."""

AUDITED = frozenset(
    {
        ("POST", Route.DOCUMENTS),
        ("DELETE", Route.DOCUMENTS),
        ("POST", Route.RETRY),
        ("POST", Route.IMPORT),
        ("POST", Route.REEXTRACT),
        ("POST", Route.BACKFILL),
        ("POST", Route.BACKUP),
        ("GET", Route.EXPORT),
        ("DELETE", Route.SESSIONS),
    }
)
"""Requests that change the memory or carry it off: who made them is logged at info. All others are logged at debug."""

TURNED_AWAY = (401, 403, 421, 429)
QUIET_S = 60.0
"""A client that is turned away for the same reason again is logged once in this time: it must not fill the log."""
REMEMBERED = 1024


class Edge:
    """Turns what the app raises into a problem; logs the unexpected once, with its traceback, and tells the client none of it.
    Puts the deadline on every request's body.

    An error after a response has begun cannot be answered: the connection is cut, so that the client sees that it has
    not got all.
    """

    def __init__(self, app: ASGIApp, rates: Rates, limits: Limits) -> None:
        self._app = app
        self._rates = rates
        self._limits = limits
        self._told: dict[tuple[str, int], float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = perf_counter()
        status = 0
        peer = peer_in(scope)

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status in TURNED_AWAY:
                    call_stranger(scope)
            await send(message)

        try:
            self._rates.count(peer.client)
            await self._app(scope, Pace(receive, self._limits, lambda: status != 0), watched)
        except ClientDisconnect:
            status = status or 499
        except ApiError as error:
            if status:
                log.warning("response_cut", route=_route(scope), error=error.detail)
            else:
                await respond.problem(error)(scope, receive, watched)
        except Exception:  # whatever is wrong with one request, the daemon goes on serving the others
            log.exception("request_failed", method=scope["method"], route=_route(scope))
            if not status:
                await respond.problem(internal())(scope, receive, watched)
        took = perf_counter() - began
        _count(scope, status, took)
        self._log(scope, status, took, peer)

    def _log(self, scope: Scope, status: int, took: float, peer: Peer) -> None:
        """The route as it is declared: what a path names (a phrase, say) may be a document's content."""
        method, route = scope["method"], _route(scope)
        fields = {"method": method, "route": route, "status": status, "took_ms": round(took * 1000, 3), **peer.fields()}
        if status in TURNED_AWAY:
            if self._is_news((peer.client, status)):
                log.warning("turned_away", **fields, again_s=QUIET_S)
        elif (method, route) in AUDITED:
            log.info("request", **fields)
        else:
            log.debug("request", **fields)

    def _is_news(self, what: tuple[str, int]) -> bool:
        now = monotonic()
        if now - self._told.get(what, -QUIET_S) < QUIET_S:
            return False
        if len(self._told) >= REMEMBERED:
            self._told.clear()
        self._told[what] = now
        return True


def internal() -> Internal:
    return Internal("Something went wrong in the daemon; its log says what.")


def _route(scope: Scope) -> str:
    route: Any = scope.get("route")
    return getattr(route, "path_format", None) or "other"


def _count(scope: Scope, status: int, seconds: float) -> None:
    name = _route(scope)
    method = scope["method"] if name != "other" else "other"
    metrics.REQUESTS.labels(method, name, str(status)).inc()
    if name not in UNTIMED:
        metrics.REQUEST.labels(name).observe(seconds)
