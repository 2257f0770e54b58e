"""Counts every response and writes one log line for it; most of these lines have level debug."""

from time import monotonic
from typing import Any

import structlog
from starlette.types import Scope

from daemon.api.middleware.peers import Peer
from daemon.contract.http.routes import Route
from daemon.observe import metrics

log = structlog.get_logger(__name__)
UNTIMED_ROUTES = (Route.EVENTS, Route.EXPORT, Route.WAIT)
"""Routes whose duration the client determines; they are left out of the duration histogram."""

REFUSED_STATUSES = (401, 403, 421, 429)
REFUSAL_LOG_INTERVAL_S = 60.0
"""A repeated refusal of the same client with the same status is logged once per interval, so that it cannot fill the log."""
REFUSALS_REMEMBERED_MAX = 1024


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
                log.warning("turned_away", **fields, again_s=REFUSAL_LOG_INTERVAL_S)
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
