# ruff: noqa: PTH116
# Paths are bytes here, which pathlib does not take.
"""Checks a folder's root: an unmounted drive must not look like removed files."""

import os
import stat
from dataclasses import dataclass

from consumers.folder.tree.file_status import FileStatus, refused_status
from consumers.folder.tree.walk import Inode


@dataclass(frozen=True, slots=True)
class RootCheck:
    """The result of a check: `status` is set if the root can be scanned; else `problem` says why not and what to do."""

    status: FileStatus | None
    inode: Inode | None = None
    problem: str = ""


def check_root(path: bytes, known: int, trusted: Inode | None) -> RootCheck:
    """Checks whether the root can be scanned. `known` is the number of its files in the ledger.

    If the root is empty although the ledger has files, it was either cleared or unmounted. The root counts as cleared only if
    it is the directory that this process scanned before (`trusted`: device, inode). After a restart, or on another device, the
    files are kept until the root contains an entry.
    """
    try:
        found = os.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            return RootCheck(None, problem="it is not a folder; configure the folder that contains the files")
        with os.scandir(path) as listing:
            empty = next(listing, None) is None
    except (FileNotFoundError, NotADirectoryError):
        return RootCheck(None, problem="the folder is not there; create it, mount its drive, or correct its path")
    except OSError as error:
        return RootCheck(None, problem=refused_status(error, "folder").reason)
    inode = (found.st_dev, found.st_ino)
    if empty and known and inode != trusted:
        problem = (
            f"the folder is empty, but the memory has {known} files of it, so its drive may not be mounted; "
            "mount it, or put any file into the folder if the files are really gone"
        )
        return RootCheck(None, problem=problem)
    return RootCheck(FileStatus("directory", found, link=True), inode)
