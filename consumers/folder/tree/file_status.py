# ruff: noqa: PTH116
# Paths are bytes here, which pathlib does not take.
"""Determines what is at a path. Opens only regular files."""

import os
import stat
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from consumers.failure_codes import FailureCode
from consumers.openat import open_file, refusal_of_error, refusal_of_special_file
from consumers.types import FileRefusal, Fingerprint, Stamp, content_digest

_BLOCK = 1 << 20


Inode = tuple[int, int]
"""(device, inode)."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """The state of a path. `stat` is that of the target if a link is followed; None if the path does not exist, and for some
    refused paths."""

    stat: os.stat_result | None = None
    link: bool = False
    refusal: FileRefusal | None = None

    @property
    def kind(self) -> Literal["gone", "file", "directory", "refused"]:
        if self.refusal is not None:
            return "refused"
        if self.stat is None:
            return "gone"
        return "directory" if stat.S_ISDIR(self.stat.st_mode) else "file"

    @property
    def inode(self) -> Inode | None:
        return (self.stat.st_dev, self.stat.st_ino) if self.stat else None

    @property
    def stamp(self) -> Stamp | None:
        """Size, mtime (ns) and inode: identifies a version of the file without reading it."""
        return (self.stat.st_size, self.stat.st_mtime_ns, self.stat.st_ino) if self.stat else None

    @property
    def unknown(self) -> bool:
        """Whether the path could not be examined, so that its content is unknown."""
        return self.refusal is not None and self.stat is None and not self.link


def file_status(path: bytes, *, follow: bool) -> FileStatus:
    """Returns what is at `path`. A symbolic link counts as its target if `follow` is set; else it is refused."""
    link = False
    try:
        found = os.lstat(path)
        link = stat.S_ISLNK(found.st_mode)
        if link and not follow:
            reason = "a symbolic link; set follow_symlinks = true to follow it"
            return FileStatus(link=True, refusal=FileRefusal(reason, FailureCode.LINK))
        if link:
            found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        if not link:
            return FileStatus()
        reason = "a symbolic link to nothing; restore its target or remove the link"
        return FileStatus(link=True, refusal=FileRefusal(reason, FailureCode.LINK, may_recover=True))
    except OSError as error:
        return FileStatus(refusal=refusal_of_error(error))
    readable = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return FileStatus(found, link, None if readable else refusal_of_special_file(found.st_mode))


class SwappedError(Exception):
    """Between check and opening, another file replaced the file, or the file got a further name."""


def read_fingerprint(
    path: bytes, root: bytes, *, follow: bool, seen: os.stat_result | None = None, max_bytes: int | None = None
) -> tuple[Fingerprint, bool]:
    """Reads the file. Returns its fingerprint with the digest, and whether the file stayed unchanged while it was read. Raises
    OSError.

    Of a file larger than `max_bytes`, only the first `max_bytes` are read, and growth does not count as a change. Unless
    `follow` is set, raises SwappedError if the opened file or its number of names differs from `seen`: only the names in `seen`
    were checked, and the fingerprint's inode later permits reading the file.
    """
    handle = open_file(path, root=root, follow=follow)
    try:
        before = os.fstat(handle)
        if seen is not None and not follow and _link_state(before) != _link_state(seen):
            raise SwappedError
        if not stat.S_ISREG(before.st_mode):
            return Fingerprint(before.st_size, before.st_mtime_ns, before.st_ino), False
        digest = blake2b(digest_size=16)
        is_cut = max_bytes is not None and before.st_size > max_bytes
        left = before.st_size if max_bytes is None else min(before.st_size, max_bytes)
        # Reads no further than the size at the start: a file may grow as fast as it is read.
        while left > 0 and (block := os.read(handle, min(left, _BLOCK))):
            digest.update(block)
            left -= len(block)
        after = os.fstat(handle)
    finally:
        os.close(handle)
    same = after.st_size >= before.st_size if is_cut else _version(before) == _version(after)
    content = content_digest(digest.hexdigest(), after.st_size, max_bytes)
    return Fingerprint(after.st_size, after.st_mtime_ns, after.st_ino, content), same and left == 0


def _version(found: os.stat_result) -> tuple[int, int]:
    return found.st_size, found.st_mtime_ns


def _link_state(found: os.stat_result) -> tuple[int, ...]:
    """Returns (device, inode, number of names, ctime). Linking and renaming change the ctime, which is given as 0 for a file
    with one name."""
    return found.st_dev, found.st_ino, found.st_nlink, found.st_ctime_ns if found.st_nlink > 1 else 0
