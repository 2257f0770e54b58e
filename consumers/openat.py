# Paths are bytes here, which pathlib does not take.
"""Opening a file of a followed folder so that no link, not even one that is swapped in meanwhile, leads out of it."""

import errno
import os

_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""O_NONBLOCK: opening a named pipe without a writer would wait for ever."""
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


def open_file(path: bytes, *, root: bytes | None, follow: bool) -> int:
    """A descriptor of the file at `path`, for reading. Raises OSError.

    Unless `follow`, no directory between `root` and the file and not the file itself may be a symbolic link: each is opened
    from the one above it, so a link that takes a directory's place after somebody looked is an error (ENOTDIR, ELOOP)
    and not a way out. Links above `root`, and `root` itself, are the administrator's own. Without a root only the file
    itself must be none.
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
    """Whether an open file has further names (hard links) that nobody has looked at.

    A second name may lie anywhere on the disk. So such a file is read only where its inode is `checked_inode`: the one
    whose names the reconciler found all inside the folder. None: the file is in no followed folder; nothing is checked.
    """
    return checked_inode is not None and found.st_nlink > 1 and found.st_ino != checked_inode
