"""Errors of opening or writing a store. Each message states the reason and what to do."""

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
"""Advice by error number, for errors of the system that refuse an operation but do not damage the store."""

DAMAGE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL}
"""Error numbers of the system that a missing or truncated file causes."""


def refusal(error: BaseException) -> str | None:
    """Returns what to do if the system refused the operation; None if the store itself may be damaged."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (
        system_error := re.search(r"\(os error (\d+)\)", str(error))
    ):  # the format of Lance's own errors
        number = int(system_error[1])
    if isinstance(error, MemoryError):
        number = errno.ENOMEM
    if not number or number in DAMAGE:
        return None
    return REFUSALS.get(number, "the system refused it, nothing is damaged: remove the cause, then start hippod again")


RESTORE = "restore a backup with `hippod --restore DIR`"
"""Advice for a damaged store."""


def describe_error(error: BaseException) -> str:
    """Returns the error's type and message in one short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


class StoreError(Exception):
    """The store cannot perform the operation; the message says why and what to do."""


class StoreRefused(StoreError):
    """The system refuses a resource that the store needs: disk space, or permission to read or write."""


class StoreFolderLost(StoreError, OSError):
    """A folder of the open store was deleted, renamed, unmounted, or replaced by another folder.

    Derives from OSError so that a commit is retried: the retry succeeds once the folder is back.
    """

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(
            f"{folder} is not the folder that hippod opened ({why}): it was deleted, renamed or unmounted while hippod runs. "
            "hippod writes nothing until it is back; restore it, or restart hippod"
        )
        self.folder, self.why = folder, why
        self.errno = errno.ESTALE


class StoreStopped(StoreError, OSError):
    """The store refuses all writes until it is opened again: it is closed, or memory and disk may differ after an error.

    Derives from OSError, like StoreFolderLost, so that a commit is kept and retried.
    """

    def __init__(self, store: Path, why: str) -> None:
        super().__init__(f"the store {store} refuses all writes: {why}")
        self.errno = errno.EIO


class StoreLocked(StoreError):
    """Another process has the store open. `pid` is that process, or `None` if unknown."""

    def __init__(self, message: str, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid


class EncoderMismatch(StoreError):
    """The store's vectors were made by another encoder."""


class NotEncoded(StoreError):
    """A text in the store has no vector of the new encoder yet. Encode the text, then switch again."""


class NewerFormat(StoreError):
    """The store was written by a newer hippod."""


class OlderFormat(StoreError):
    """The store's format is too old for this version to migrate."""


class IncompleteBatch(StoreError):
    """A batch lacks a text or a vector that is not stored. A purge may have deleted it after the store reported it.

    Complete the batch again.
    """


class StoreDamaged(StoreError):
    """A file of the store is missing, damaged, or does not belong to the last commit; or a restore was interrupted."""
