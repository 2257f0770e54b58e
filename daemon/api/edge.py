"""The outermost layer: nothing a request does goes further than its own answer, and every answer is counted."""

from time import perf_counter
from typing import Any

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon import metrics
from daemon.api import respond
from daemon.api.errors import ApiError, Internal
from daemon.contract import Route

log = structlog.get_logger(__name__)
UNTIMED = (Route.EVENTS, Route.EXPORT, Route.WAIT)
"""How long these take is up to the client."""


class Edge:
    """Turns what the app raises into a problem; logs the unexpected once, with its traceback, and tells the client none of it.

    An error after a response has begun cannot be answered: the connection is cut, so that the client sees that it has
    not got all.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = perf_counter()
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            status = status or 499
        except ApiError as error:
            if status:
                log.warning("response cut short", path=scope["path"], reason=error.detail)
            else:
                await respond.problem(error)(scope, receive, watched)
        except Exception:  # whatever is wrong with one request, the daemon goes on serving the others
            log.exception("request failed", method=scope["method"], path=scope["path"])
            if not status:
                await respond.problem(internal())(scope, receive, watched)
        _count(scope, status, perf_counter() - began)


def internal() -> Internal:
    return Internal("Something went wrong in the daemon; its log says what.")


def _count(scope: Scope, status: int, seconds: float) -> None:
    route: Any = scope.get("route")
    name = getattr(route, "path_format", None) or "other"
    method = scope["method"] if name != "other" else "other"
    metrics.REQUESTS.labels(method, name, str(status)).inc()
    if name not in UNTIMED:
        metrics.REQUEST.labels(name).observe(seconds)
