"""Opens a file of a followed folder without following a link out of the folder, even if the link is created concurrently.
Returns the refusal of a path that cannot be opened or is not a regular file."""

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.types import FileRefusal

_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""With O_NONBLOCK, because opening a named pipe without a writer would block forever."""
NO_INODE = -1
"""A `checked_inode` that no file has: a file with several names is then refused."""
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC

_SPECIAL_FILES = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class FileAccess:
    """Which file may be opened at a path, and how much of it is read."""

    follow_symlinks: bool = False
    root: bytes | None = None
    """The followed folder that the file must lie in; None if the file may lie anywhere."""
    checked_inode: int | None = None
    """See `has_unchecked_links`."""
    max_bytes: int | None = None
    """Maximum bytes to read. A larger file is cut, or refused if its format cannot be cut."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"root": None if self.root is None else os.fsdecode(self.root)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "FileAccess":
        return cls(**{**value, "root": None if value["root"] is None else os.fsencode(value["root"])})


ANY_FILE = FileAccess()


def open_file(path: bytes, *, root: bytes | None, follow: bool) -> int:
    """Opens the file at `path` for reading and returns its descriptor. Raises OSError.

    Unless `follow` is set, neither the file nor a directory between `root` and the file may be a symbolic link. Each directory
    is opened relative to its parent, so a link that replaces a directory after a check causes an error (ENOTDIR, ELOOP) and
    cannot lead out of the folder. `root` and the directories above it may be links, because the administrator configured them.
    If `root` is None, only the file itself must not be a link.
    """
    if follow:
        return os.open(path, _FILE)
    if root is None:
        return os.open(path, _FILE | os.O_NOFOLLOW)
    top = root.rstrip(b"/")
    *folders, name = path[len(top) + 1 :].split(b"/")
    if not path.startswith(top + b"/") or not {b"", b".", b".."}.isdisjoint((*folders, name)):
        raise OSError(errno.EXDEV, "it does not lie in the followed folder")
    at = os.open(root, _STEP)
    try:
        for folder in folders:
            below = os.open(folder, _STEP | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        return os.open(name, _FILE | os.O_NOFOLLOW, dir_fd=at)
    finally:
        os.close(at)


def has_unchecked_links(found: os.stat_result, checked_inode: int | None) -> bool:
    """Whether an open file has further names (hard links) that were not checked.

    A further name may be anywhere on the file system. So a file with several names is read only if its inode is
    `checked_inode`: the reconciler has found all names of this inode in followed folders. If `checked_inode` is None, the file
    is in no followed folder and needs no check.
    """
    return checked_inode is not None and found.st_nlink > 1 and found.st_ino != checked_inode


def refusal_of_error(error: OSError, what: str = "file") -> FileRefusal:
    """Returns the refusal for an error of the operating system. `what` is "file", "directory" or "folder"."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            reason = f"no permission to read the {what}; give hippod's user read access to it and to the folders above"
            return FileRefusal(reason, FailureCode.PERMISSION, may_recover=True)
        case errno.ENOENT | errno.ENOTDIR:
            reason = f"the {what} is not there any more, or a link replaced a folder above it"
            return FileRefusal(reason, FailureCode.GONE, may_recover=True)
        case errno.EXDEV:
            return FileRefusal("it does not lie in the followed folder", FailureCode.LINK)
        case errno.ELOOP:
            reason = (
                "a symbolic link, or links that lead in a circle; set follow_symlinks, remove the circle, or exclude it"
            )
            return FileRefusal(reason, FailureCode.LINK)
        case errno.ENXIO | errno.ENODEV:
            return refusal_of_special_file(stat.S_IFSOCK)
        case errno.ENAMETOOLONG:
            reason = "its path is longer than the system allows; move it up or shorten the names above it"
            return FileRefusal(reason, FailureCode.UNREADABLE)
        case number:
            reason = f"the {what} could not be read ({os.strerror(number or 0)}); check the drive it is on"
            return FileRefusal(reason, FailureCode.UNREADABLE, may_recover=True)


def refusal_of_special_file(mode: int) -> FileRefusal:
    """Returns the refusal of a file that is not a regular file. `mode` is its `st_mode`."""
    kind = next((name for test, name in _SPECIAL_FILES if test(mode)), "something special")
    return FileRefusal(f"{kind}, not a regular file; move it elsewhere or exclude it", FailureCode.NOT_A_FILE)
