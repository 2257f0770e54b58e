"""Joins a trusted folder with an untrusted name, such as one in a backup's list of files or a checkpoint's manifest.

Modules that store files must use this module for every such join; `tests/store/test_untrusted_names.py` finds other joins.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from store.errors import StoreError

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""O_NONBLOCK: opening a named pipe must not wait for a writer."""


class UnsafeName(StoreError, ValueError):
    """A name that leads out of its folder, or to something that is neither a file nor a folder."""


def inside(root: Path, name: str) -> Path:
    """Returns the path of `name` below `root`. Raises UnsafeName.

    `name` must be relative and must not contain `..`, an empty component or NUL. Each existing component must be a folder; the
    last one may also be a regular file. Symbolic links, devices, pipes and sockets are refused. `root` itself may be a symbolic
    link, because the administrator chose it. If other processes may change the folder concurrently, open the file with
    `open_inside`.
    """
    path = root
    exists = True
    parts = components(name)
    for number, part in enumerate(parts, 1):
        path = path / part
        try:
            mode = path.lstat().st_mode if exists else None
        except FileNotFoundError:
            mode = None
        exists = mode is not None
        if mode is not None and not (stat.S_ISDIR(mode) or (number == len(parts) and stat.S_ISREG(mode))):
            raise UnsafeName(f"{name!r} is not a usable name in {root}: {part!r} is {_kind(mode)}")
    return path


def open_inside(root: Path, name: str, *, create: bool = False) -> int:
    """Opens the regular file `name` below `root` for reading and returns its descriptor. Raises UnsafeName or OSError.

    With `create`, creates the file and the folders above it for writing; an existing file is an error. Each folder is opened
    relative to its parent folder, so a symbolic link that replaces a folder meanwhile is not followed.
    """
    *folders, last = components(name)
    at = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for folder in folders:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(folder, 0o700, dir_fd=at)
            below = os.open(folder, _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        if create:
            return os.open(last, _FILE | os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=at)
        descriptor = os.open(last, _FILE | os.O_RDONLY, dir_fd=at)
    finally:
        os.close(at)
    if not stat.S_ISREG(mode := os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnsafeName(f"{name!r} is not a usable name in {root}: it is {_kind(mode)}")
    return descriptor


def components(name: str) -> list[str]:
    """Returns the components of a relative path. Raises UnsafeName."""
    components = name.split("/")
    if "\0" in name or not {"", ".", ".."}.isdisjoint(components):
        raise UnsafeName(f"{name!r} is not a usable name: it must be a relative path without empty parts, '..' and NUL")
    return components


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFREG: "a file, and a folder is needed",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
