"""Why a model did not help. Messages are one line, name no key, and can be shown to anybody."""


class ModelError(Exception):
    """The common parent."""


class ModelDown(ModelError):
    """The server cannot be had at present: unreachable, hanging, overloaded, or it refuses this configuration."""


class ModelRefused(ModelError):
    """The server works and refuses this very request. `too_long`: because of its length."""

    def __init__(self, message: str, too_long: bool = False) -> None:
        super().__init__(message)
        self.too_long = too_long


class BadAnswer(ModelError):
    """The model answered, and nothing in it is of use. `kind` is a short fixed word for counting."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
