"""The reasons for refusing a request. The API answers with each as one problem+json.

A status of 500 and above means an error of hippod or of a server that it needs (500, 502), or a temporary state (503, with
`Retry-After`). A request that is valid but impossible in the present state is 409; `type` gives the reason.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from daemon.contract.http.problem import FieldError, Problem
from daemon.contract.http.problem_type import ProblemType

STORE_LOST = (
    "The folder of the memory ([store] path) was deleted, renamed or unmounted while hippod runs, so nothing can be stored: "
    "restore the folder, or restart hippod."
)
"""For every client: without the folder's path, which `status` and the log show."""


class RequestError(Exception):
    """A refused request. `detail` is a sentence for the client's user, without internal details."""

    type: ClassVar[ProblemType]
    title: ClassVar[str]
    status: ClassVar[int]

    def __init__(
        self,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        retry_after_s: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = list(errors)
        self.retry_after_s = retry_after_s
        self.headers = dict(headers or {})

    @property
    def reason(self) -> str:
        """Returns a short fixed word for counters."""
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
    """Over TCP, without the right token."""

    type, title, status = ProblemType.UNAUTHORISED, "A bearer token is needed", 401


class Forbidden(RequestError):
    """A page of another site asks, or what is asked for is for the Unix socket alone."""

    type, title, status = ProblemType.FORBIDDEN, "Not allowed here", 403


class NotFound(RequestError):
    """Nothing there."""

    type, title, status = ProblemType.NOT_FOUND, "Not found", 404


class MethodNotAllowed(RequestError):
    """The path exists, the method does not."""

    type, title, status = ProblemType.METHOD_NOT_ALLOWED, "Method not allowed", 405


class Conflict(RequestError):
    """The request is sound, and what is there now stands against it."""

    type, title, status = ProblemType.CONFLICT, "Not possible as things stand", 409


class NotConfigured(RequestError):
    """The daemon could do this with another configuration; `detail` names the key."""

    type, title, status = ProblemType.NOT_CONFIGURED, "Not configured", 409


class TimedOut(RequestError):
    """What the client wanted to wait for did not happen in the time it gave."""

    type, title, status = ProblemType.TIMED_OUT, "Timed out", 409


class TooSlow(RequestError):
    """The body did not arrive in time."""

    type, title, status = ProblemType.TOO_SLOW, "The request arrived too slowly", 408


class TooLarge(RequestError):
    """The body is longer than allowed."""

    type, title, status = ProblemType.TOO_LARGE, "The request is too large", 413


class UnsupportedMediaType(RequestError):
    """The body is of another kind than the route reads."""

    type, title, status = ProblemType.UNSUPPORTED_MEDIA_TYPE, "Unsupported media type", 415


class WrongHost(RequestError):
    """Over TCP, under a name that is not this daemon's: a web page may be behind it."""

    type, title, status = ProblemType.WRONG_HOST, "This host is not served here", 421


class Invalid(RequestError):
    """The request can be read and asks for something that is not allowed; `errors` say which field and what is."""

    type, title, status = ProblemType.INVALID, "The request is not valid", 422


class TooManyRequests(RequestError):
    """More requests in a second than one client may make."""

    type, title, status = ProblemType.TOO_MANY_REQUESTS, "Too many requests", 429

    def __init__(self, detail: str, *, retry_after_s: int = 1) -> None:
        super().__init__(detail, retry_after_s=retry_after_s)


class InternalError(RequestError):
    """An error of the daemon's own; what it was is in the log only."""

    type, title, status = ProblemType.INTERNAL, "Internal error", 500


class UpstreamFailed(RequestError):
    """A model server that the daemon asks did not answer as it should."""

    type, title, status = ProblemType.UPSTREAM, "The model server failed", 502


class Busy(RequestError):
    """More requests of this kind at a time than are served."""

    type, title, status = ProblemType.BUSY, "Busy", 503

    def __init__(self, detail: str, *, of: str = "busy", retry_after_s: int = 1) -> None:
        """`of`: the exhausted resource, a short fixed word for counters."""
        super().__init__(detail, retry_after_s=retry_after_s)
        self._of = of

    @property
    def reason(self) -> str:
        return self._of


class NotReady(RequestError):
    """The daemon is starting or stopping."""

    type, title, status = ProblemType.NOT_READY, "Not ready", 503

    def __init__(self, detail: str, *, retry_after_s: int = 2) -> None:
        super().__init__(detail, retry_after_s=retry_after_s)
