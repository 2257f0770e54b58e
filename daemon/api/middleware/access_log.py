"""Counts and logs every answer: one line each, of which most are shown at debug only."""

from time import monotonic
from typing import Any

import structlog
from starlette.types import Scope

from daemon.api.middleware.peers import Peer
from daemon.contract.http.routes import Route
from daemon.observe import metrics

log = structlog.get_logger(__name__)
UNTIMED_ROUTES = (Route.EVENTS, Route.EXPORT, Route.WAIT)
"""Their duration is up to the client, so no histogram has it."""

AUDITED_REQUESTS = frozenset(
    {
        ("POST", Route.DOCUMENTS),
        ("DELETE", Route.DOCUMENTS),
        ("POST", Route.RETRY),
        ("POST", Route.CONFIRM),
        ("POST", Route.REMOVE_SOURCE),
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


class AccessLog:
    def __init__(self) -> None:
        self._refusals_logged: dict[tuple[str, int], float] = {}

    def answered(self, scope: Scope, status: int, took_s: float, peer: Peer) -> None:
        """One answer is sent, or cut off."""
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
                log.warning("turned_away", **fields, again_s=REFUSAL_LOG_INTERVAL_S)
        elif (method, route) in AUDITED_REQUESTS:
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
    """The name of the `[[client]]` that asks, where there are any."""
    name = getattr(scope.get("state", {}).get("client"), "name", "")
    return {"client": name} if name else {}


def route_of(scope: Scope) -> str:
    """The route as it is declared: what a path names (a phrase, say) may be a document's content."""
    route: Any = scope.get("route")
    return getattr(route, "path_format", None) or "other"


def _count(scope: Scope, status: int, seconds: float) -> None:
    route = route_of(scope)
    method = scope["method"] if route != "other" else "other"
    metrics.REQUESTS.labels(method, route, str(status)).inc()
    if route not in UNTIMED_ROUTES:
        metrics.REQUEST.labels(route).observe(seconds)
