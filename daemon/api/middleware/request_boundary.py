"""The outermost layer around a request: turns errors into responses, and counts and logs every response."""

from time import perf_counter

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon.api import responses
from daemon.api.middleware.access_log import REFUSED_STATUSES, AccessLog, route_of
from daemon.api.middleware.peers import mark_unauthenticated, request_peer
from daemon.api.middleware.rate_limit import RateLimiter
from daemon.api.request_body import BodyDeadline
from daemon.api.settings import ApiLimits
from daemon.errors import InternalError, RequestError

log = structlog.get_logger(__name__)
CLIENT_DISCONNECTED = 499
"""Status that is counted and logged for a request whose client disconnected before it was answered."""


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
