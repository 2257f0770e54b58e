"""Errors of model calls.

Messages are one line without the key. They may contain the server's text, so only users who may see the memory get them. The
log gets `loggable`.
"""


def host_of(base_url: str) -> str:
    """Returns the host and port of a server's address, as messages name it: without user name and password."""
    return base_url.split("://", 1)[-1].split("/", 1)[0].rsplit("@", 1)[-1]


def one_line(text: str, key: str | None, max_chars: int) -> str:
    """Returns the beginning of `text` on one line, without the key."""
    line = " ".join(text.split())
    return (line.replace(key, "***") if key else line)[:max_chars]


class ModelError(Exception):
    """Base class of the errors of model calls."""

    def __init__(self, message: str, loggable: str | None = None) -> None:
        """`loggable` is the message without the server's text, because refusals may quote the request."""
        super().__init__(message)
        self.loggable = message if loggable is None else loggable
        self.prompt_tokens = self.completion_tokens = 0
        """Tokens of the answered tries, which are charged: as the server counts them, otherwise estimates."""


class ModelDown(ModelError):
    """The server cannot be used now: it is unreachable, hangs, is overloaded, or refuses this configuration.

    `unavailable`: it accepted no call at all (no listener, or it reported that it is not ready), so the request is not the
    cause.
    """

    def __init__(self, message: str, loggable: str | None = None, unavailable: bool = False) -> None:
        super().__init__(message, loggable)
        self.unavailable = unavailable


class ModelRefused(ModelError):
    """The server works but refuses this request. `too_long`: because of its length."""

    def __init__(self, message: str, too_long: bool = False, loggable: str | None = None) -> None:
        super().__init__(message, loggable)
        self.too_long = too_long


class BadAnswer(ModelError):
    """The model's answer contains nothing usable. `kind` is a short fixed word for counting."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
