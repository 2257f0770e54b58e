# ruff: noqa: PTH118
# Paths are bytes here, which pathlib does not take.
"""From one inotify event, or one word of the daemon, to where the follower is to look."""

import os
from dataclasses import dataclass

from watchdog.observers.inotify_c import InotifyConstants as In

from consumers.folder.follower import Follower
from consumers.folder.inotify_watches import APPEARED, SELF, VANISHED, Watches, WatchEvent
from consumers.types import Fingerprint


@dataclass(frozen=True, slots=True)
class FileHint:
    """What the daemon says of a file: that it was committed, or else that it is to be looked at again."""

    path: bytes
    committed: bool = False
    fingerprint: Fingerprint | None = None


def apply_event(item: WatchEvent | FileHint, watches: Watches | None, follower: Follower) -> bool:
    """Pass the item on; returns whether the whole folder must be scanned."""
    if isinstance(item, FileHint):
        if item.committed:
            follower.committed(item.path, item.fingerprint)
        else:
            follower.recheck(item.path)
        return False
    if watches is None:
        return False
    scan = False
    for watched in watches.paths(item.wd):
        path = os.path.join(watched, item.name)
        if not item.name:
            scan |= _of_itself(item.mask, watched, watches, follower)
        elif item.mask & In.IN_ISDIR:
            _directory(item.mask, path, watches, follower)
        else:
            _file(item.mask, path, watches, follower)
    return scan


def _of_itself(mask: int, path: bytes, watches: Watches, follower: Follower) -> bool:
    """An event of what is watched: the root, or what a link leads to, which no watched directory may hold."""
    if mask & In.IN_IGNORED:
        watches.drop(path)
    if path == follower.root:
        return bool(mask & (SELF | In.IN_ATTRIB))
    if mask & In.IN_CLOSE_WRITE:
        follower.saved(path)
    elif mask & In.IN_MODIFY:
        follower.written(path)
    else:
        follower.touched(path)
    return False


def _directory(mask: int, path: bytes, watches: Watches, follower: Follower) -> None:
    if mask & VANISHED:
        if mask & In.IN_MOVED_FROM:  # its watches went with it; those of a deleted one are gone
            watches.drop_below(path)
        else:
            watches.drop(path)
        follower.gone(path)
    elif mask & APPEARED or follower.ledger.get(path) is not None or path not in watches:
        follower.appeared(path)


def _file(mask: int, path: bytes, watches: Watches, follower: Follower) -> None:
    if mask & VANISHED:
        if path in watches:  # a link
            watches.drop_below(path)
        follower.gone(path)
    elif mask & (In.IN_CLOSE_WRITE | In.IN_MOVED_TO):
        follower.saved(path)
    elif mask & (In.IN_CREATE | In.IN_MODIFY):
        follower.written(path)
    else:
        follower.touched(path)
