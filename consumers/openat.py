"""Opens a file of a followed folder without following a link out of the folder, even if the link is created concurrently."""

import errno
import os

_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""With O_NONBLOCK, because opening a named pipe without a writer would block forever."""
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


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
    `checked_inode`, whose names the reconciler has all found in followed folders. If `checked_inode` is None, the file is in no
    followed folder and needs no check.
    """
    return checked_inode is not None and found.st_nlink > 1 and found.st_ino != checked_inode
