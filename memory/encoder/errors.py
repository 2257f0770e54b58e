"""Errors of encoding."""


class EncoderUnavailable(Exception):
    """The configured encoder cannot be loaded; the message gives its name, where it was looked for, and what to do."""

    def __init__(self, message: str, loggable: str | None = None) -> None:
        """`loggable`: the message for the log, without the server's words, because a refusal may quote texts."""
        super().__init__(message)
        self.loggable = message if loggable is None else loggable


class EncoderServerDown(EncoderUnavailable, ConnectionError):
    """The server does not answer, or its answer contains no vectors. The commit is retried."""

    def __init__(self, message: str, loggable: str | None = None, status: int | None = None) -> None:
        """`status`: the HTTP status of the answer; None without an answer."""
        super().__init__(message, loggable)
        self.status = status


class EncoderRefused(EncoderServerDown):
    """The server works, but refuses these texts or fails on them."""
