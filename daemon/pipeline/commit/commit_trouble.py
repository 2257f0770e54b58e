"""Classifies errors of commits: whether they are transient, and whether a document causes them."""

from daemon.observe.redaction import raised_at, system_error
from memory.encoder.errors import EncoderRefused

MAX_SAME_ERRORS = 5
"""Number of identical errors in a row after which a batch's documents are considered the cause. Transient errors (of the disk,
the system or a server) never count as the documents' fault."""

ErrorKind = tuple[object, ...]


class RepeatedErrors:
    """Counts how often in a row one batch has met the same kind of error."""

    def __init__(self) -> None:
        self._kind: ErrorKind | None = None
        self._count = 0

    def is_documents_fault(self, error: Exception) -> bool:
        """Counts the error. Returns whether it is not transient and has occurred so often that a document must cause it."""
        kind = _error_kind(error)
        self._count = self._count + 1 if kind == self._kind else 1
        self._kind = kind
        return self._count >= MAX_SAME_ERRORS and not _is_transient(error)


def internal_reason(error: Exception) -> str:
    """Returns the error text of a document that makes hippod itself fail."""
    return f"internal error: {error!r}; see the log"


def _is_transient(error: Exception) -> bool:
    """Whether the disk, the system or a server caused the error, independently of the batch's content."""
    if isinstance(error, EncoderRefused):
        return False
    return isinstance(error, ConnectionError | TimeoutError) or system_error(error) is not None


def _error_kind(error: Exception) -> ErrorKind:
    """Returns what identifies a kind of error. The message is left out: it may contain a varying file name or amount."""
    return type(error), raised_at(error), system_error(error)
