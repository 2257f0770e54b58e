"""Errors that refuse a request. The API sends them as problem+json documents.

Status 500 or 502 means an error of hippod or of a server that it needs; 503 means a temporary state and has `Retry-After`. A
request that is valid but impossible in the present state gets 409; `type` gives the reason.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from daemon.contract.base import FieldError, Problem
from daemon.contract.http.routes import ProblemType

STORE_LOST = (
    "The folder of the memory ([store] path) was deleted, renamed or unmounted while hippod runs, so nothing can be stored: "
    "restore the folder, or restart hippod."
)
"""Message for every client. Omits the folder's path, which only `status` and the log show."""


class RequestError(Exception):
    """A refused request. `detail` is a sentence for the client's user, without internal details."""

    type: ClassVar[ProblemType]
    title: ClassVar[str]
    status: ClassVar[int]
    retry_default_s: ClassVar[int | None] = None
    """Default of `retry_after_s`, the seconds after which the client may try again; None: trying again does not help."""

    def __init__(
        self,
        detail: str,
        *,
        errors: Sequence[FieldError] | Mapping[str, str] = (),
        retry_after_s: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`errors` names the wrong fields, or maps them to messages."""
        super().__init__(detail)
        self.detail = detail
        if isinstance(errors, Mapping):
            errors = [FieldError(field=field, message=message) for field, message in errors.items()]
        self.errors = list(errors)
        self.retry_after_s = self.retry_default_s if retry_after_s is None else retry_after_s
        self.headers = dict(headers or {})

    @property
    def reason(self) -> str:
        """Returns the reason as a short fixed word for counters."""
        return self.type.rpartition(":")[2]

    def problem(self) -> Problem:
        return Problem(
            type=self.type,
            title=self.title,
            status=self.status,
            detail=self.detail,
            errors=self.errors or None,
            retry_after_s=self.retry_after_s,
        )


class BadRequest(RequestError):
    """The request cannot be read at all."""

    type, title, status = ProblemType.BAD_REQUEST, "The request cannot be read", 400


class Unauthorised(RequestError):
    """A request over TCP has no valid token."""

    type, title, status = ProblemType.UNAUTHORISED, "A bearer token is needed", 401


class Forbidden(RequestError):
    """The client lacks the right, another site's page sent the request, or the request is allowed on the Unix socket only."""

    type, title, status = ProblemType.FORBIDDEN, "Not allowed", 403


class NotFound(RequestError):
    """The path, or the thing that the request names, does not exist."""

    type, title, status = ProblemType.NOT_FOUND, "Not found", 404


class MethodNotAllowed(RequestError):
    """The path does not support the method."""

    type, title, status = ProblemType.METHOD_NOT_ALLOWED, "Method not allowed", 405


class Conflict(RequestError):
    """The request is valid, but the present state does not allow it."""

    type, title, status = ProblemType.CONFLICT, "Not possible in the present state", 409


class NotConfigured(RequestError):
    """The request needs another configuration; `detail` names the key to set."""

    type, title, status = ProblemType.NOT_CONFIGURED, "Not configured", 409


class TimedOut(RequestError):
    """The event that the request waits for did not happen within the client's time limit."""

    type, title, status = ProblemType.TIMED_OUT, "Timed out", 409


class TooSlow(RequestError):
    """The body did not arrive in time."""

    type, title, status = ProblemType.TOO_SLOW, "The request arrived too slowly", 408


class TooLarge(RequestError):
    """The body is longer than allowed."""

    type, title, status = ProblemType.TOO_LARGE, "The request is too large", 413


class UnsupportedMediaType(RequestError):
    """The route does not accept the body's media type."""

    type, title, status = ProblemType.UNSUPPORTED_MEDIA_TYPE, "Unsupported media type", 415


class WrongHost(RequestError):
    """A request over TCP names another host than this daemon's, perhaps because a web page sent it."""

    type, title, status = ProblemType.WRONG_HOST, "This host is not served here", 421


class Invalid(RequestError):
    """The request contains values that are not allowed; `errors` name the fields and the allowed values."""

    type, title, status = ProblemType.INVALID, "The request is not valid", 422


class TooManyRequests(RequestError):
    """The client sent more requests per second than it may."""

    type, title, status, retry_default_s = ProblemType.TOO_MANY_REQUESTS, "Too many requests", 429, 1


class InternalError(RequestError):
    """An internal error of the daemon, which only the log describes."""

    type, title, status = ProblemType.INTERNAL, "Internal error", 500


class UpstreamFailed(RequestError):
    """A model server failed, or sent an answer that cannot be used."""

    type, title, status = ProblemType.UPSTREAM, "The model server failed", 502


class Busy(RequestError):
    """The limit of concurrent requests of this kind is reached."""

    type, title, status, retry_default_s = ProblemType.BUSY, "Busy", 503, 1

    def __init__(self, detail: str, *, resource: str = "busy", retry_after_s: int | None = None) -> None:
        """`resource`: the exhausted resource, a short fixed word for counters."""
        super().__init__(detail, retry_after_s=retry_after_s)
        self._resource = resource

    @property
    def reason(self) -> str:
        return self._resource


class NotReady(RequestError):
    """The daemon is starting or stopping."""

    type, title, status, retry_default_s = ProblemType.NOT_READY, "Not ready", 503, 2
