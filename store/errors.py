"""Why a store cannot be opened or written: one sentence each, and what to do."""


class StoreError(Exception):
    """The store cannot do what was asked; the message says why and what to do."""


class StoreLocked(StoreError):
    """Another process has the store open. `pid` is that process, `None` when it did not say."""

    def __init__(self, message: str, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid


class EncoderMismatch(StoreError):
    """The store's vectors were made by another encoder."""


class NewerFormat(StoreError):
    """The store was written by a newer hippod."""


class OlderFormat(StoreError):
    """The store was written by a hippod so old that this one cannot migrate it."""


class IncompleteBatch(StoreError):
    """A batch lacks a text or a vector; a purge may have taken it since the store was asked. Complete the batch again."""


class StoreDamaged(StoreError):
    """A table lacks what the last commit says it holds."""
