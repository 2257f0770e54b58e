"""The outermost layer around a request: turns errors into responses, and counts and logs every response.

Each response makes one log line, most of them at level debug.
"""

from time import monotonic, perf_counter
from typing import Any

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon.api import responses
from daemon.api.middleware.peers import Peer, mark_unauthenticated, request_peer
from daemon.api.middleware.request_limits import RateLimiter
from daemon.api.request_parsing import BodyDeadline
from daemon.api.settings import ApiLimits
from daemon.contract.http.routes import Route
from daemon.errors import InternalError, RequestError
from daemon.observe import metrics

UNTIMED_ROUTES = (Route.EVENTS, Route.EXPORT, Route.WAIT)
"""Routes whose duration the client determines; they are left out of the duration histogram."""

REFUSED_STATUSES = (401, 403, 421, 429)
REFUSAL_LOG_INTERVAL_S = 60.0
"""A repeated refusal of the same client with the same status is logged once per interval, so that it cannot fill the log."""
REFUSALS_REMEMBERED_MAX = 1024
log = structlog.get_logger(__name__)
CLIENT_DISCONNECTED = 499
"""Status that is counted and logged for a request whose client disconnected before it was answered."""


class AccessLog:
    def __init__(self) -> None:
        self._refusals_logged: dict[tuple[str, int], float] = {}

    def answered(self, scope: Scope, status: int, took_s: float, peer: Peer) -> None:
        """Records one response that was sent completely or cut off."""
        _count(scope, status, took_s)
        method, route = scope["method"], route_of(scope)
        fields = {
            "method": method,
            "route": route,
            "status": status,
            "took_ms": round(took_s * 1000, 3),
            **peer.fields(),
            **_client(scope),
        }
        if status in REFUSED_STATUSES:
            if self._is_first_in_interval((peer.client, status)):
                log.warning("request_refused", **fields, again_s=REFUSAL_LOG_INTERVAL_S)
        elif getattr(getattr(scope.get("route"), "endpoint", None), "audited", False):
            log.info("request", **fields)
        else:
            log.debug("request", **fields)

    def _is_first_in_interval(self, refusal: tuple[str, int]) -> bool:
        now = monotonic()
        if now - self._refusals_logged.get(refusal, -REFUSAL_LOG_INTERVAL_S) < REFUSAL_LOG_INTERVAL_S:
            return False
        if len(self._refusals_logged) >= REFUSALS_REMEMBERED_MAX:
            self._refusals_logged.clear()
        self._refusals_logged[refusal] = now
        return True


def _client(scope: Scope) -> dict[str, str]:
    """Returns the name of the request's `[[client]]` as a log field, or nothing if it has no name."""
    name = getattr(scope.get("state", {}).get("client"), "name", "")
    return {"client": name} if name else {}


def route_of(scope: Scope) -> str:
    """Returns the declared pattern of the route. The actual path may contain a document's content, such as a phrase."""
    route: Any = scope.get("route")
    return getattr(route, "path_format", None) or "other"


def _count(scope: Scope, status: int, seconds: float) -> None:
    route = route_of(scope)
    method = scope["method"] if route != "other" else "other"
    metrics.REQUESTS.labels(method, route, str(status)).inc()
    if route not in UNTIMED_ROUTES:
        metrics.REQUEST.labels(route).observe(seconds)


class RequestBoundary:
    """Counts the request against its client's rate, sets a deadline for its body, and turns errors into problems.

    An unexpected error is logged once with its traceback; the client gets no details. If an error occurs after the response
    has begun, the connection is cut, so that the client notices that the response is incomplete.
    """

    def __init__(self, app: ASGIApp, rate_limiter: RateLimiter, limits: ApiLimits) -> None:
        self._app = app
        self._rate_limiter = rate_limiter
        self._limits = limits
        self._access_log = AccessLog()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = perf_counter()
        status = 0
        peer = request_peer(scope)

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status in REFUSED_STATUSES:
                    mark_unauthenticated(scope)
            await send(message)

        try:
            if not peer.is_own_process:  # hippod forwards other clients' requests, which `ClientMiddleware` counts
                self._rate_limiter.count(peer.client)
            await self._app(scope, BodyDeadline(receive, self._limits, lambda: status != 0), send_and_note)
            status = status or CLIENT_DISCONNECTED
        except ClientDisconnect:
            status = status or CLIENT_DISCONNECTED
        except RequestError as error:
            if status:
                log.warning("response_cut", route=route_of(scope), error=error.detail)
            else:
                await responses.problem_response(error, path=scope["path"])(scope, receive, send_and_note)
        except Exception:  # one failed request must not stop the daemon
            log.exception("request_failed", method=scope["method"], route=route_of(scope))
            if not status:
                await responses.problem_response(internal_error(), path=scope["path"])(scope, receive, send_and_note)
        self._access_log.answered(scope, status, perf_counter() - began, peer)


def internal_error() -> InternalError:
    return InternalError("An internal error occurred in the daemon; its log has details.")
