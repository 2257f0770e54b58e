# ruff: noqa: PTH116, PTH120
# Paths are bytes here, which pathlib does not take.
"""Distinguishes removed files from files on an unmounted drive, which must not be treated as removed.

Three cases: the folder's root, a drive that is mounted below the root, and a file that is missing while it is read. A directory
that is empty or unreadable may be the mount point of an unmounted drive.
"""

import os
from collections.abc import Iterable
from enum import Enum, auto
from pathlib import Path

from consumers.failure_codes import FailureCode
from consumers.folder.tree.file_status import FileStatus, Inode
from consumers.openat import refusal_of_error
from consumers.types import FileRefusal


def check_root(path: bytes, known: int, trusted: Inode | None) -> FileStatus:
    """Returns the status of a folder's root, refused if it cannot be scanned. `known` is the number of its files in the ledger.

    If the root is empty although the ledger has files, it was either cleared or unmounted. The root counts as cleared only if
    this process has scanned this directory before (`trusted`: its device and inode). After a restart, or on another device, the
    files are kept until the root contains an entry.
    """
    try:
        root = FileStatus(os.stat(path), link=True)
        if root.kind != "directory":
            return _refused("it is not a folder; configure the folder that contains the files")
        empty = not _has_entry(path)
    except (FileNotFoundError, NotADirectoryError):
        return _refused("the folder is not there; create it, mount its drive, or correct its path")
    except OSError as error:
        return FileStatus(refusal=refusal_of_error(error, "folder"))
    if empty and known and root.inode != trusted:
        return _refused(
            f"the folder is empty, but the memory has {known} files of it, so its drive may not be mounted; "
            "mount it, or put any file into the folder if the files are really gone"
        )
    return root


def _refused(reason: str) -> FileStatus:
    return FileStatus(refusal=FileRefusal(reason, FailureCode.GONE, may_recover=True))


class Absence(Enum):
    """Why a file is not at its path."""

    REMOVED = auto()
    UNMOUNTED = auto()
    """The drive may be unmounted, or everything next to the file was deleted too; the folder's source handles both cases."""


def absence_of(path: bytes, root: bytes) -> Absence | None:
    """Returns why the file does not exist; None if it exists. Examines the nearest existing folder above the file, up to
    `root`."""
    if os.path.lexists(path):
        return None
    for above in map(os.fsencode, Path(os.fsdecode(path)).parents):
        unmounted = _may_be_unmounted(above)
        if unmounted is not None:
            return Absence.UNMOUNTED if unmounted else Absence.REMOVED
        if len(above) <= len(root):
            break
    return Absence.UNMOUNTED


class MountedDrives:
    """The folder's mount points and their states.

    An empty mount point on another device than before counts as unmounted. A mount point on another device that contains an
    entry has become an ordinary directory.
    """

    def __init__(self) -> None:
        self._devices: dict[bytes, int] = {}
        self.unmounted: set[bytes] = set()
        """Unmounted mount points. `take_returned` removes mount points whose drive is mounted again."""

    def record(self, path: bytes, device: int, parent_device: int | None = None) -> None:
        """Records that the directory `path` is on `device`, and its parent on `parent_device`."""
        known = self._devices.get(path)
        if known == device or (known is not None and _may_be_unmounted(path)):
            return
        if parent_device is None:
            parent_device = _device(os.path.dirname(path))
        if device != parent_device:
            self._devices[path] = device
        elif known is not None:
            del self._devices[path]

    def is_on_unmounted_drive(self, path: bytes) -> bool:
        """Whether `path` lies on a drive that is not mounted now."""
        return bool(self._devices) and not self.on_mounted_drives([path])

    def on_mounted_drives(self, paths: Iterable[bytes]) -> list[bytes]:
        """Returns the paths that are not on an unmounted drive."""
        mounted = list(paths)
        for point, device in self._devices.items():
            remaining = [path for path in mounted if path != point and not path.startswith(point + b"/")]
            if len(remaining) < len(mounted) and _is_unmounted(point, device):
                self.unmounted.add(point)
                mounted = remaining
        return mounted

    def take_returned(self) -> list[bytes]:
        """Returns the mount points whose drive was mounted again since the last call."""
        found = [
            point
            for point in self.unmounted
            if point not in self._devices or not _is_unmounted(point, self._devices[point])
        ]
        self.unmounted.difference_update(found)
        return sorted(found)


def _is_unmounted(point: bytes, device: int) -> bool:
    return _device(point) != device and bool(_may_be_unmounted(point))


def _device(path: bytes) -> int | None:
    try:
        return os.stat(path).st_dev
    except OSError:
        return None


def _may_be_unmounted(directory: bytes) -> bool | None:
    """Returns whether the directory is empty or unreadable; None if it does not exist."""
    try:
        return not _has_entry(directory)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return True


def _has_entry(directory: bytes) -> bool:
    with os.scandir(directory) as listing:
        return next(listing, None) is not None
