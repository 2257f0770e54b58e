"""Classifies a failed request: to be retried, refused for good, or to be repeated without an option."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from memory.llm.errors import ModelError, ModelRefused, host_of, one_line
from memory.llm.rate_headers import retry_after_s
from memory.llm.response_format import ServerCapabilities, is_too_long

if TYPE_CHECKING:
    import openai

CONFIGURATION_ERRORS = {
    401: "the key is missing or refused",
    403: "the key may not do this",
    404: "no such address or model",
    405: "no such address",
}
"""The meaning of the statuses that show a wrong configuration; the server's text is not used."""
NOT_READY = 503
"""Status of a server that is loading its model, and of a proxy whose server is not running."""
REFUSED_REQUEST_STATUSES = (400, 413, 422, 501)
REFUSED_FORMAT = "response_format"
"""llama-cpp-python's server answers 500 to an unsupported JSON format, with the option's name in its message."""
PROTOCOL_ERRORS = (ValueError, TypeError, AttributeError, LookupError)
"""Errors that OpenAI's client, or parsing its answer, raises if a body violates the protocol."""
MAX_MESSAGE_CHARS = 400


class TransientError(ModelError):
    """A try failed; another one may succeed. `outcome` is a fixed word for counting. `unavailable`: as in ModelDown."""

    def __init__(
        self,
        outcome: str,
        message: str,
        retry_after_s: float | None = None,
        loggable: str | None = None,
        unavailable: bool = False,
    ) -> None:
        super().__init__(message, loggable)
        self.outcome = outcome
        self.retry_after_s = retry_after_s
        self.unavailable = unavailable

    @property
    def rate_limited(self) -> bool:
        return self.outcome == "429"


class Failures:
    """Classifies failed requests to one server. No message contains the key."""

    def __init__(self, base_url: str, key: str | None, timeout_s: float, capabilities: ServerCapabilities) -> None:
        self._host = host_of(base_url)
        self._key = key
        self._timeout_s = timeout_s
        self._capabilities = capabilities

    def raise_unless_repeatable(self, error: Exception, reduce: Callable[[], bool]) -> None:
        """Returns normally if the request should be repeated immediately, without an option that was refused.

        Otherwise raises TransientError or ModelRefused. `reduce` is called if the request was too long; it returns whether to
        repeat the request with fewer answer tokens.
        """
        import openai

        if isinstance(error, openai.APITimeoutError | TimeoutError):
            raise self._transient("timeout", f"gave no answer within {self._timeout_s:g} s") from None
        cause, kind = f" ({_cause(error)})", f" ({_cause_without_content(error)})"
        if isinstance(error, openai.APIConnectionError):
            unheard = _not_connected(error)
            raise self._transient("connection", "cannot be reached", cause, kind, unavailable=unheard) from None
        if not isinstance(error, openai.APIStatusError):
            raise self._transient("protocol", "did not answer in the protocol", cause, kind) from None
        self._raise_for_status(error, reduce)

    def _raise_for_status(self, error: "openai.APIStatusError", reduce: Callable[[], bool]) -> None:
        status, complaint = error.status_code, str(error)
        after = retry_after_s(error.response.headers)
        if status == 429:
            raise self._transient("429", "accepts no more calls (429)", f": {complaint}", after=after) from None
        if 300 <= status < 400:
            # Following the redirect would send the passages to a server that the user did not configure.
            what = f"redirects to another address ({status}), which hippod does not follow"
            hint = f": set base_url to it if it is right: {error.response.headers.get('location', '')}"
            raise self._transient(str(status), what, hint) from None
        if status in CONFIGURATION_ERRORS:
            what, hint = f"refuses the configuration ({status})", f": {CONFIGURATION_ERRORS[status]}"
            raise self._transient(str(status), what, f": {complaint}", hint, after) from None
        if status in REFUSED_REQUEST_STATUSES or (status == 500 and REFUSED_FORMAT in complaint):
            too_long = is_too_long(complaint)
            if status != 413 and (reduce() if too_long else self._capabilities.drop_option(complaint)):
                return
            what = f"refuses the request ({status})"
            message = self._message(f"{what}: {complaint}")
            raise ModelRefused(message, status == 413 or too_long, self._message(what)) from None
        outcome = "5xx" if status >= 500 else str(status)
        what, unavailable = f"failed ({status})", status == NOT_READY
        raise self._transient(outcome, what, f": {complaint}", after=after, unavailable=unavailable) from None

    def broken_stream(self, error: Exception) -> TransientError:
        kind = type(error).__name__
        return self._transient("connection", "broke the connection", f": {error or kind}", f" ({kind})")

    def stalled_stream(self) -> TransientError:
        return self._transient("timeout", f"made no progress for {self._timeout_s:g} s")

    def unfinished_stream(self) -> TransientError:
        return TransientError("connection", self._message("broke off its answer"))

    def _transient(
        self,
        outcome: str,
        what: str,
        cause: str = "",
        loggable_cause: str = "",
        after: float | None = None,
        unavailable: bool = False,
    ) -> TransientError:
        """`cause` is the server's own text, for the message only; the log gets `loggable_cause`."""
        loggable = self._message(what + loggable_cause)
        return TransientError(outcome, self._message(what + cause), after, loggable, unavailable)

    def _message(self, what: str) -> str:
        """Returns the message on one line, without the key."""
        return one_line(f"the model server {self._host} {what}", self._key, MAX_MESSAGE_CHARS)


def _cause(error: Exception) -> str:
    inner: BaseException = error.__cause__ or error
    return str(inner) or type(inner).__name__


def _cause_without_content(error: Exception) -> str:
    """Returns the cause without the server's text. It is complete if no connection was made, because then no text was sent."""
    inner: BaseException = error.__cause__ or error
    return (str(inner) if _not_connected(error) else "") or type(inner).__name__


def _not_connected(error: Exception) -> bool:
    """Whether no connection was made, so that no text was sent."""
    import httpx2

    return isinstance(error.__cause__ or error, httpx2.ConnectError)
