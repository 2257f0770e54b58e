"""How a call to a model fails. Messages are one line and name no key; they may repeat what the server said, so they are for
those who may read the memory. The log gets `loggable`."""


class ModelError(Exception):
    """The common parent."""

    def __init__(self, message: str, loggable: str | None = None) -> None:
        """`loggable`: the message without what the server said, whose refusals may quote what it was asked."""
        super().__init__(message)
        self.loggable = message if loggable is None else loggable
        self.prompt_tokens = self.completion_tokens = 0
        """Tokens of the tries that were answered, which are paid for: as the server counts them, 0 where it does not."""


class ModelDown(ModelError):
    """The server cannot be used now: it is unreachable, hangs, is overloaded, or refuses this configuration.

    `unavailable`: it took no call at all (nobody listened, or it said that it is not ready), so no call is at fault.
    """

    def __init__(self, message: str, loggable: str | None = None, unavailable: bool = False) -> None:
        super().__init__(message, loggable)
        self.unavailable = unavailable


class ModelRefused(ModelError):
    """The server works and refuses this very request. `too_long`: because of its length."""

    def __init__(self, message: str, too_long: bool = False, loggable: str | None = None) -> None:
        super().__init__(message, loggable)
        self.too_long = too_long


class BadAnswer(ModelError):
    """The model answered, and the answer holds nothing usable. `kind` is a short fixed word for counting."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
