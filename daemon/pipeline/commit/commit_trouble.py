"""Why a batch was refused: whether that passes by itself, how often it has happened, and what is said of it."""

import time
from dataclasses import dataclass

import structlog

from daemon.observe.logs import loggable
from daemon.observe.redaction import raised_at, system_error
from memory.encoder.errors import EncoderRefused, EncoderServerDown
from store.types import EncoderIdentity

MAX_SAME_ERRORS = 5
"""How often in a row a batch meets the same error before its documents are thought to be at fault, unless the error is one
that passes: of the disk, the system or a server."""

SAME_ERROR_LOG_PAUSE_S = 60.0
"""An error that goes on is logged this often."""

RETRY_PAUSE_S = 2.0
"""How long to rest after a commit that the store refused (a full disk, say) before it is tried again."""

log = structlog.get_logger()

ErrorKind = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class CommitTrouble:
    """Why the last commit was refused. `loggable`: the reason as it may stand in the log. `encoder_away`: the embeddings'
    server is waited for, not the store."""

    reason: str
    loggable: str
    encoder_away: bool


class TroubleLog:
    """Logs why batches are refused, each kind of error once in `SAME_ERROR_LOG_PAUSE_S`."""

    def __init__(self, encoder: EncoderIdentity) -> None:
        self._encoder = encoder
        self._logged_at: dict[ErrorKind, float] = {}

    def refused(self, error: Exception, documents: int) -> CommitTrouble:
        """A batch of so many documents could not be committed, and will be tried again."""
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
    """Counts how often in a row one batch has met the same error."""

    def __init__(self) -> None:
        self._kind: ErrorKind | None = None
        self._count = 0

    def is_documents_fault(self, error: Exception) -> bool:
        """Counts the error. True where it has come too often to be anything but the documents' fault."""
        kind = _error_kind(error)
        self._count = self._count + 1 if kind == self._kind else 1
        self._kind = kind
        return self._count >= MAX_SAME_ERRORS and not _is_transient(error)


def internal_reason(error: Exception) -> str:
    """Why a document failed that hippod itself fails on."""
    return f"internal error: {error!r}; see the log"


def _is_transient(error: Exception) -> bool:
    """Whether it is the disk, the system or a server that refuses, whatever stands in the batch."""
    if isinstance(error, EncoderRefused):
        return False
    return isinstance(error, ConnectionError | TimeoutError) or system_error(error) is not None


def _error_kind(error: Exception) -> ErrorKind:
    """What makes two errors the same. Not the message: it may name a file or an amount that is another each time."""
    return type(error), raised_at(error), system_error(error)
