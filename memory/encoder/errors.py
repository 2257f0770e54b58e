"""Why texts cannot be encoded."""


class EncoderUnavailable(Exception):
    """The configured encoder cannot be loaded; the message says which, where it was looked for, and what to do."""

    def __init__(self, message: str, loggable: str | None = None) -> None:
        """`loggable`: the message without what a server said, whose refusals may quote the texts. The log gets this."""
        super().__init__(message)
        self.loggable = message if loggable is None else loggable


class EncoderServerDown(EncoderUnavailable, ConnectionError):
    """The server does not answer, or not with vectors. A commit that meets this is tried again."""

    def __init__(self, message: str, loggable: str | None = None, status: int | None = None) -> None:
        """`status`: what it answered with, where it answered over HTTP."""
        super().__init__(message, loggable)
        self.status = status


class EncoderRefused(EncoderServerDown):
    """The server works, and refuses or fails on these very texts."""
