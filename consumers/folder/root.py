# ruff: noqa: PTH116
# Paths are bytes here, which pathlib does not take.
"""Whether a folder's root can be trusted: a drive that is not there must not look like files that were removed."""

import os
import stat
from dataclasses import dataclass

from consumers.folder.file_status import FileStatus, refused_status
from consumers.folder.walk import Inode


@dataclass(frozen=True, slots=True)
class Root:
    """`look` is set for a root that can be scanned; `problem` says why not and what to do."""

    look: FileStatus | None
    inode: Inode | None = None
    problem: str = ""


def check_root(path: bytes, known: int, trusted: Inode | None) -> Root:
    """The root as it is now.

    A root without a single entry, though `known` files were told of, is an empty mount point as likely as a folder that
    was cleared. It is believed only if it is the very directory (`trusted`: device, inode) that was scanned before in
    this process; after a restart, and on another device, the files are kept until anything at all is in it.
    """
    try:
        found = os.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            return Root(None, problem="it is not a folder; configure the folder that holds the files")
        with os.scandir(path) as listing:
            empty = next(listing, None) is None
    except (FileNotFoundError, NotADirectoryError):
        return Root(None, problem="the folder is not there; create it, mount its drive, or correct its path")
    except OSError as error:
        return Root(None, problem=refused_status(error, "folder").reason)
    inode = (found.st_dev, found.st_ino)
    if empty and known and inode != trusted:
        problem = (
            f"the folder is empty, but {known} files of it are known, so its drive may not be mounted; "
            "mount it, or put any file into the folder if they are meant to be gone"
        )
        return Root(None, problem=problem)
    return Root(FileStatus("directory", found, link=True), inode)
