"""The outermost layer around a request: its errors become its answer, and every answer is counted and logged."""

from time import monotonic, perf_counter
from typing import Any

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon.api import responses
from daemon.api.middleware.peers import Peer, mark_unauthenticated, request_peer
from daemon.api.middleware.rate_limit import RateLimiter
from daemon.api.request_body import BodyDeadline
from daemon.api.settings import ApiLimits
from daemon.contract.routes import Route
from daemon.errors import InternalError, RequestError
from daemon.observe import metrics

log = structlog.get_logger(__name__)
UNTIMED_ROUTES = (Route.EVENTS, Route.EXPORT, Route.WAIT)
"""Their duration is up to the client, so no histogram has it."""

AUDITED_REQUESTS = frozenset(
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

REFUSED_STATUSES = (401, 403, 421, 429)
REFUSAL_LOG_INTERVAL_S = 60.0
"""A client that is refused for the same reason again is logged once in this time: it must not fill the log."""
REFUSALS_REMEMBERED_MAX = 1024


class RequestBoundary:
    """Counts the request against its client's rate, and gives its body a deadline. An error that the app raises becomes a
    problem; an unexpected one is logged once, with its traceback, and the client learns nothing of it.

    An error after a response has begun cannot be answered: the connection is cut, so that the client sees that it has
    not got all.
    """

    def __init__(self, app: ASGIApp, rates: RateLimiter, limits: ApiLimits) -> None:
        self._app = app
        self._rates = rates
        self._limits = limits
        self._refusals_logged: dict[tuple[str, int], float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = perf_counter()
        status = 0
        peer = request_peer(scope)

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status in REFUSED_STATUSES:
                    mark_unauthenticated(scope)
            await send(message)

        try:
            self._rates.count(peer.client)
            await self._app(scope, BodyDeadline(receive, self._limits, lambda: status != 0), watched)
        except ClientDisconnect:
            status = status or 499
        except RequestError as error:
            if status:
                log.warning("response_cut", route=_route(scope), error=error.detail)
            else:
                await responses.problem_response(error)(scope, receive, watched)
        except Exception:  # whatever is wrong with one request, the daemon goes on serving the others
            log.exception("request_failed", method=scope["method"], route=_route(scope))
            if not status:
                await responses.problem_response(internal_error())(scope, receive, watched)
        took = perf_counter() - began
        _count(scope, status, took)
        self._log(scope, status, took, peer)

    def _log(self, scope: Scope, status: int, took: float, peer: Peer) -> None:
        """The route as it is declared: what a path names (a phrase, say) may be a document's content."""
        method, route = scope["method"], _route(scope)
        fields = {"method": method, "route": route, "status": status, "took_ms": round(took * 1000, 3), **peer.fields()}
        if status in REFUSED_STATUSES:
            if self._is_first_in_interval((peer.client, status)):
                log.warning("turned_away", **fields, again_s=REFUSAL_LOG_INTERVAL_S)
        elif (method, route) in AUDITED_REQUESTS:
            log.info("request", **fields)
        else:
            log.debug("request", **fields)

    def _is_first_in_interval(self, what: tuple[str, int]) -> bool:
        now = monotonic()
        if now - self._refusals_logged.get(what, -REFUSAL_LOG_INTERVAL_S) < REFUSAL_LOG_INTERVAL_S:
            return False
        if len(self._refusals_logged) >= REFUSALS_REMEMBERED_MAX:
            self._refusals_logged.clear()
        self._refusals_logged[what] = now
        return True


def internal_error() -> InternalError:
    return InternalError("Something went wrong in the daemon; its log says what.")


def _route(scope: Scope) -> str:
    route: Any = scope.get("route")
    return getattr(route, "path_format", None) or "other"


def _count(scope: Scope, status: int, seconds: float) -> None:
    name = _route(scope)
    method = scope["method"] if name != "other" else "other"
    metrics.REQUESTS.labels(method, name, str(status)).inc()
    if name not in UNTIMED_ROUTES:
        metrics.REQUEST.labels(name).observe(seconds)
