"""Errors of model calls.

Messages have one line and do not contain the key. They may contain the server's text, so only users who may see the memory get
them. The log gets `loggable` instead.
"""


def host_of(base_url: str) -> str:
    """Returns host and port of a server's address for messages, without user name and password."""
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
        """Tokens of the answered tries, counted by the server or else estimated. They are charged."""


class ModelDown(ModelError):
    """The server cannot be used now: it is unreachable, hangs, is overloaded, or refuses this configuration.

    `unavailable`: the server accepted no call at all (no listener, or it reported that it is not ready), so the request is not
    the cause.
    """

    def __init__(self, message: str, loggable: str | None = None, unavailable: bool = False) -> None:
        super().__init__(message, loggable)
        self.unavailable = unavailable


class ModelRefused(ModelError):
    """The server works but refuses this request. `too_long`: it refuses the request's length."""

    def __init__(self, message: str, too_long: bool = False, loggable: str | None = None) -> None:
        super().__init__(message, loggable)
        self.too_long = too_long


class BadAnswer(ModelError):
    """The model's answer contains nothing that hippod can use. `kind` is a short fixed word for counting."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
