# ruff: noqa: PTH116, PTH120
# Paths are bytes here, which pathlib does not take.
"""Drives mounted below a followed folder: an unmounted drive must not look like removed files."""

import os
from collections.abc import Iterable


class MountedDrives:
    """Mount points in the folder, and which of them are unmounted. `root.py` does this check for the root.

    An empty mount point on another device than before counts as unmounted. A mount point that contains an entry has become an
    ordinary directory.
    """

    def __init__(self) -> None:
        self._devices: dict[bytes, int] = {}
        self.absent: set[bytes] = set()
        """Unmounted mount points. `take_returned` removes mount points whose drive is mounted again."""

    def record(self, path: bytes, device: int, parent_device: int | None = None) -> None:
        """Records that the directory `path` is on `device`, and its parent on `parent_device`."""
        known = self._devices.get(path)
        if known == device or (known is not None and _empty(path)):
            return
        if parent_device is None:
            parent_device = _device(os.path.dirname(path))
        if device != parent_device:
            self._devices[path] = device
        elif known is not None:
            del self._devices[path]

    def is_on_absent_drive(self, path: bytes) -> bool:
        """Whether `path` lies on a drive that is not mounted now."""
        return bool(self._devices) and not self.on_present_drives([path])

    def on_present_drives(self, paths: Iterable[bytes]) -> list[bytes]:
        """Returns the paths that are not on an unmounted drive."""
        present = list(paths)
        for point, device in self._devices.items():
            remaining = [path for path in present if path != point and not path.startswith(point + b"/")]
            if len(remaining) < len(present) and _is_absent(point, device):
                self.absent.add(point)
                present = remaining
        return present

    def take_returned(self) -> list[bytes]:
        """Returns the mount points whose drive was mounted again since the last call."""
        found = [
            point for point in self.absent if point not in self._devices or not _is_absent(point, self._devices[point])
        ]
        self.absent.difference_update(found)
        return sorted(found)


def _is_absent(point: bytes, device: int) -> bool:
    return _device(point) != device and _empty(point)


def _device(path: bytes) -> int | None:
    try:
        return os.stat(path).st_dev
    except OSError:
        return None


def _empty(path: bytes) -> bool:
    """Whether an existing directory has no entry. True also if the drive fails."""
    try:
        with os.scandir(path) as listing:
            return next(listing, None) is None
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
