"""Files that are either complete or absent after a power loss: each file is written under a temporary name, synced and renamed,
and then its folder is synced."""

import contextlib
import json
import os
import shutil
import time
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO

PART = ".part"
"""Suffix of a file that is being written. Files with this suffix may be deleted after a crash."""


_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def sync(path: Path) -> None:
    """Flushes a file's content, or a folder's entries, to the disk. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def unfinished_folder(place: Path) -> Iterator[None]:
    """Replaces `place` by an empty folder. The block fills and renames this folder. If the block fails, the folder is
    removed."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700, parents=True)
    try:
        yield
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def checksum_of(file: Path) -> int:
    """Returns the CRC-32 of a file's content. Raises OSError."""
    checksum = 0
    with file.open("rb") as content:
        while part := content.read(1 << 20):
            checksum = zlib.crc32(part, checksum)
    return checksum


def json_checksum(content: object) -> int:
    """Returns the CRC-32 of a JSON value; files with that value store it as `checksum`."""
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


@contextlib.contextmanager
def durable_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a temporary file that replaces `path` at the end of the block; on return, the new content is on the disk.

    On an error, `path` is unchanged and no part of the new file remains. If only the last step fails (syncing the folder), the
    new file may already be in place. Raises OSError.
    """
    part = path.with_name(path.name + PART)
    try:
        with os.fdopen(os.open(part, _NEW_FILE, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    sync(path.parent)


def new_folder_before_restore(store: Path) -> Path:
    """Creates a folder for files that a restore replaces: `before-restore-<UTC time>`, with a number at its end if another
    restore began in the same second."""
    name = time.strftime("before-restore-%Y%m%dT%H%M%S", time.gmtime())
    for number in count(1):
        folder = store / (name if number == 1 else f"{name}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            return folder
    raise AssertionError("unreachable")
