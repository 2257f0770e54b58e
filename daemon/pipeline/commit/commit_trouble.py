"""Classifies errors of commits: whether they are transient, how often they repeat, and how they are logged."""

import time
from dataclasses import dataclass

import structlog

from daemon.observe.logs import loggable
from daemon.observe.redaction import raised_at, system_error
from memory.encoder.errors import EncoderRefused, EncoderServerDown
from store.types import EncoderIdentity

MAX_SAME_ERRORS = 5
"""Number of identical errors in a row after which a batch's documents are considered the cause. Transient errors (of the disk,
the system or a server) never count as the documents' fault."""

SAME_ERROR_LOG_PAUSE_S = 60.0
"""Interval at which a repeated error is logged."""

RETRY_PAUSE_S = 2.0
"""Pause before a refused commit, for example on a full disk, is tried again."""

log = structlog.get_logger()

ErrorKind = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class CommitTrouble:
    """Why the last commit was refused. `loggable` is the reason without document content. `encoder_away` means that the
    embedding server is unavailable, not the store."""

    reason: str
    loggable: str
    encoder_away: bool


class TroubleLog:
    """Logs why batches are refused: each kind of error at most once per `SAME_ERROR_LOG_PAUSE_S`."""

    def __init__(self, encoder: EncoderIdentity) -> None:
        self._encoder = encoder
        self._logged_at: dict[ErrorKind, float] = {}

    def refused(self, error: Exception, documents: int) -> CommitTrouble:
        """Logs that a batch of `documents` documents could not be committed and will be retried; returns the reason."""
        encoder_away = isinstance(error, EncoderServerDown) and not isinstance(error, EncoderRefused)
        now, kind = time.monotonic(), _error_kind(error)
        if now - self._logged_at.get(kind, -SAME_ERROR_LOG_PAUSE_S) >= SAME_ERROR_LOG_PAUSE_S:
            self._logged_at[kind] = now
            if encoder_away:
                log.warning("encoder_away", encoder=self._encoder.name, dim=self._encoder.dim, error=error)
            else:
                log.error("commit_failed", error=error, documents=documents, retry_s=RETRY_PAUSE_S)
        return CommitTrouble(f"{type(error).__name__}: {error}", loggable(error), encoder_away)


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
