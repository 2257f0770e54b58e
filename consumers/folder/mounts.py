# ruff: noqa: PTH116, PTH120
# Paths are bytes here, which pathlib does not take.
"""Drives that are mounted below a followed folder: one that is not there must not look like files that were removed."""

import os
from collections.abc import Iterable


class MountedDrives:
    """Where drives were met, and which of them are away. `consumers.folder.root` has the same for the folder itself.

    A mount point that is empty, and on another device than before, is one whose drive is away. One that holds anything is
    what it looks like.
    """

    def __init__(self) -> None:
        self._devices: dict[bytes, int] = {}
        self.absent: set[bytes] = set()
        """Mount points that were found without their drive, until `back` finds it."""

    def meet(self, path: bytes, device: int, above: int | None = None) -> None:
        """The directory `path` is on `device`, the one that holds it on `above`."""
        known = self._devices.get(path)
        if known == device or (known is not None and _empty(path)):
            return
        if above is None:
            above = _device(os.path.dirname(path))
        if device != above:
            self._devices[path] = device
        elif known is not None:
            del self._devices[path]

    def away(self, path: bytes) -> bool:
        """Whether `path` lies on a drive that is away."""
        return bool(self._devices) and not self.there([path])

    def there(self, paths: Iterable[bytes]) -> list[bytes]:
        """Those of the paths that lie on no drive that is away."""
        kept = list(paths)
        for point, device in self._devices.items():
            left = [path for path in kept if path != point and not path.startswith(point + b"/")]
            if len(left) < len(kept) and _left(point, device):
                self.absent.add(point)
                kept = left
        return kept

    def back(self) -> list[bytes]:
        """The mount points that were without their drive and are not any more; each is told of once."""
        found = [point for point in self.absent if point not in self._devices or not _left(point, self._devices[point])]
        self.absent.difference_update(found)
        return sorted(found)


def _left(point: bytes, device: int) -> bool:
    return _device(point) != device and _empty(point)


def _device(path: bytes) -> int | None:
    try:
        return os.stat(path).st_dev
    except OSError:
        return None


def _empty(path: bytes) -> bool:
    """Whether nothing can be seen in a directory that is there: a drive that fails shows nothing either."""
    try:
        with os.scandir(path) as listing:
            return next(listing, None) is None
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
