"""Why texts cannot be encoded."""


class EncoderUnavailable(Exception):
    """The configured encoder cannot be loaded; the message says which, where it was looked for, and what to do."""


class EncoderServerDown(EncoderUnavailable, ConnectionError):
    """The server does not answer, or not with vectors. A commit that meets this is tried again."""
