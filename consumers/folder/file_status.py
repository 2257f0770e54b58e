# ruff: noqa: PTH116
# Paths are bytes here, which pathlib does not take.
"""What is at a path now. Nothing but a regular file is ever opened."""

import errno
import os
import stat
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from consumers.failures import FailureCode
from consumers.openat import open_file
from consumers.types import Fingerprint, Stamp

_BLOCK = 1 << 20
_SPECIAL = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


@dataclass(frozen=True, slots=True)
class FileStatus:
    """`stat` is set for a file and a directory; `reason` and `failed` (worth another try) where it is refused."""

    kind: Literal["gone", "file", "directory", "refused"]
    stat: os.stat_result | None = None
    link: bool = False
    reason: str = ""
    failed: bool = False
    code: FailureCode = FailureCode.UNREADABLE

    @property
    def stamp(self) -> Stamp | None:
        """What can be seen of the file without reading it."""
        return (self.stat.st_size, self.stat.st_mtime_ns, self.stat.st_ino) if self.stat else None

    @property
    def unknown(self) -> bool:
        """It, or what it holds, could not be looked at: what is there is unknown."""
        return self.kind == "refused" and self.stat is None and not self.link


GONE = FileStatus("gone")


def file_status(path: bytes, *, follow: bool, max_bytes: int) -> FileStatus:
    """What stands at `path`; a symbolic link counts as what it leads to if `follow`, else it is refused."""
    try:
        found = os.lstat(path)
        link = stat.S_ISLNK(found.st_mode)
        if link and not follow:
            return FileStatus(
                "refused",
                link=True,
                reason="a symbolic link; set follow_symlinks = true to follow it",
                code=FailureCode.LINK,
            )
        if link:
            found = _target(path)
    except (FileNotFoundError, NotADirectoryError):
        return GONE
    except OSError as error:
        return refused_status(error)
    except _BrokenLinkError as error:
        return FileStatus("refused", link=True, reason=str(error), failed=True, code=FailureCode.LINK)
    return _classify(found, link, max_bytes)


def refused_status(error: OSError, what: str = "file") -> FileStatus:
    """A refused look that says what to do about `error`."""
    hint = {
        errno.EACCES: f"no permission to read the {what}; give hippod's user read access to it and to the folders above",
        errno.EPERM: f"the system forbids reading the {what}; give hippod's user read access",
        errno.ENAMETOOLONG: "its path is longer than the system allows; move it up or shorten the names above it",
        errno.ELOOP: "its symbolic links lead in a circle; remove one of them",
    }.get(error.errno or 0)
    reason = hint or f"the {what} could not be read ({os.strerror(error.errno or 0)}); check the drive it is on"
    code = {
        errno.EACCES: FailureCode.PERMISSION,
        errno.EPERM: FailureCode.PERMISSION,
        errno.ELOOP: FailureCode.LINK,
    }.get(error.errno or 0, FailureCode.UNREADABLE)
    return FileStatus("refused", reason=reason, failed=error.errno not in (errno.ENAMETOOLONG, errno.ELOOP), code=code)


class SwappedError(Exception):
    """Another file took the name of the one that was looked at, or that one was given another name meanwhile."""


def read_fingerprint(
    path: bytes, root: bytes, *, follow: bool, seen: os.stat_result | None = None
) -> tuple[Fingerprint, bool]:
    """The file's fingerprint with its digest, and whether it stood still meanwhile. Raises OSError.

    Unless `follow` it must be the file that was `seen`, with no more names and no fewer, or it raises SwappedError: what was
    found out about that one's names says nothing of another, and who has a fingerprint's inode is let read.
    """
    handle = open_file(path, root=root, follow=follow)
    try:
        before = os.fstat(handle)
        if seen is not None and not follow and _names(before) != _names(seen):
            raise SwappedError
        if not stat.S_ISREG(before.st_mode):
            return Fingerprint(before.st_size, before.st_mtime_ns, before.st_ino), False
        digest = blake2b(digest_size=16)
        left = before.st_size
        # Not beyond the size it had: a file that grows as fast as it is read would never end.
        while left > 0 and (block := os.read(handle, min(left, _BLOCK))):
            digest.update(block)
            left -= len(block)
        after = os.fstat(handle)
    finally:
        os.close(handle)
    steady = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns) and left == 0
    return Fingerprint(after.st_size, after.st_mtime_ns, after.st_ino, digest.hexdigest()), steady


def _names(found: os.stat_result) -> tuple[int, ...]:
    """Which file it is and how many names it has, and, with several, since when (a link and a renaming set its ctime)."""
    return found.st_dev, found.st_ino, found.st_nlink, found.st_ctime_ns if found.st_nlink > 1 else 0


class _BrokenLinkError(Exception):
    """A symbolic link that leads nowhere."""


def _target(path: bytes) -> os.stat_result:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _BrokenLinkError("a symbolic link to nothing; restore its target or remove the link") from error


def _classify(found: os.stat_result, link: bool, max_bytes: int) -> FileStatus:
    if stat.S_ISDIR(found.st_mode):
        return FileStatus("directory", found, link)
    if not stat.S_ISREG(found.st_mode):
        special = _SPECIAL.get(stat.S_IFMT(found.st_mode), "something special")
        return FileStatus(
            "refused",
            found,
            link,
            f"{special}, not a regular file; move it elsewhere or exclude it",
            code=FailureCode.NOT_A_FILE,
        )
    if found.st_size > max_bytes:
        reason = f"larger than max_bytes ({max_bytes}); raise max_bytes or exclude it"
        return FileStatus("refused", found, link, reason, code=FailureCode.TOO_LARGE)
    return FileStatus("file", found, link)
