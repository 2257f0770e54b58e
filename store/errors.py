"""Errors of opening or writing a store. Each message is one sentence with the reason and what to do."""

import errno
import re
from pathlib import Path

REFUSALS = {
    errno.ENOSPC: "the disk is full: make room, then start hippod again",
    errno.EDQUOT: "the quota is used up: make room, then start hippod again",
    errno.EACCES: "give the folder and all in it to the user that hippod runs as: `chown -R USER:GROUP FOLDER`",
    errno.EPERM: "give the folder and all in it to the user that hippod runs as: `chown -R USER:GROUP FOLDER`",
    errno.EROFS: "it is read-only here: mount it writable, or name it in ReadWritePaths= of hippod's unit",
    errno.EIO: "the disk cannot be read: the system's log (dmesg) has details",
    errno.EMFILE: "hippod has too many files open: raise LimitNOFILE= of its unit, or `ulimit -n`",
    errno.ENFILE: "the system has too many files open: end other programs, or raise fs.file-max",
    errno.ENOMEM: "the memory is used up: end other programs, or raise MemoryMax= of hippod's unit",
    errno.ESTALE: "the folder is no longer mounted: mount it again",
}
"""What to do if the system refuses an operation, which does not damage the store."""

DAMAGE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL}
"""Errors of the system that a missing or truncated file causes."""


def refusal(error: BaseException) -> str | None:
    """Returns what to do if the system refused the operation; None if the store itself may be at fault."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (said := re.search(r"\(os error (\d+)\)", str(error))):  # the format of Lance's own errors
        number = int(said[1])
    if isinstance(error, MemoryError):
        number = errno.ENOMEM
    if not number or number in DAMAGE:
        return None
    return REFUSALS.get(number, "the system refuses it, which is no damage: remove the cause, then start hippod again")


RESTORE = "restore a backup with `hippod --restore DIR`"
"""What to do about damage."""


def describe_error(error: BaseException) -> str:
    """Returns the type and the message in one short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


class StoreError(Exception):
    """The store cannot perform the operation; the message says why and what to do."""


class StoreRefused(StoreError):
    """The system refuses what the store needs: disk space, or the right to read or write."""


class StoreFolderLost(StoreError, OSError):
    """A folder of the open store was deleted, renamed or unmounted, or replaced by another one.

    It is an OSError, so that a commit is retried: the retry succeeds once the folder is back.
    """

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(
            f"{folder} is not the folder that hippod opened ({why}): it was deleted, renamed or unmounted while hippod runs. "
            "hippod writes nothing until it is back; restore it, or restart hippod"
        )
        self.folder, self.why = folder, why
        self.errno = errno.ESTALE


class StoreStopped(StoreError, OSError):
    """The store refuses all writes until it is opened again: it is closed, or memory and disk may differ since an error.

    It is an OSError, like StoreFolderLost, so that a commit is kept and retried.
    """

    def __init__(self, store: Path, why: str) -> None:
        super().__init__(f"the store {store} takes no more writes: {why}")
        self.errno = errno.EIO


class StoreLocked(StoreError):
    """Another process has the store open. `pid` is that process, or `None` if unknown."""

    def __init__(self, message: str, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid


class EncoderMismatch(StoreError):
    """The store's vectors were made by another encoder."""


class NotEncoded(StoreError):
    """A text of the store has no vector of the new encoder yet. Encode it, and switch again."""


class NewerFormat(StoreError):
    """The store was written by a newer hippod."""


class OlderFormat(StoreError):
    """The store was written by a hippod so old that this one cannot migrate it."""


class IncompleteBatch(StoreError):
    """A batch lacks a text or a vector; a purge may have deleted it after the store reported it as known.

    Complete the batch again.
    """


class StoreDamaged(StoreError):
    """A file of the store is missing, damaged, or not the one that the last commit needs; or a restore was interrupted."""
