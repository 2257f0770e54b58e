# ruff: noqa: PTH118
# Paths are bytes here, which pathlib does not take.
"""Turns inotify events, and hints of the daemon, into calls to the follower: where it is to look."""

import os
from dataclasses import dataclass

from watchdog.observers.inotify_c import InotifyConstants as In

from consumers.folder.follower import Follower
from consumers.folder.inotify_watches import APPEARED, SELF, VANISHED, Watches, WatchEvent
from consumers.types import Fingerprint


@dataclass(frozen=True, slots=True)
class FileHint:
    """What the daemon says about a file: that it was committed, or that it is to be read again."""

    path: bytes
    committed: bool = False
    fingerprint: Fingerprint | None = None


def apply_event(item: WatchEvent | FileHint, watches: Watches | None, follower: Follower) -> bool:
    """Passes the item on to the follower. Returns whether the whole folder must be scanned."""
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
            scan |= _apply_to_watched(item.mask, watched, watches, follower)
        elif item.mask & In.IN_ISDIR:
            _apply_to_directory(item.mask, path, watches, follower)
        else:
            _apply_to_file(item.mask, path, watches, follower)
    return scan


def _apply_to_watched(mask: int, path: bytes, watches: Watches, follower: Follower) -> bool:
    """An event of a watched path itself: the root, or a link's target outside of all watched directories."""
    if mask & In.IN_IGNORED:
        watches.drop(path)
    if path == follower.root:
        return bool(mask & (SELF | In.IN_ATTRIB))
    if mask & In.IN_CLOSE_WRITE:
        follower.file_saved(path)
    elif mask & In.IN_MODIFY:
        follower.file_written(path)
    else:
        follower.metadata_changed(path)
    return False


def _apply_to_directory(mask: int, path: bytes, watches: Watches, follower: Follower) -> None:
    if mask & VANISHED:
        if mask & In.IN_MOVED_FROM:  # its watches moved with it; a deleted directory has none left
            watches.drop_below(path)
        else:
            watches.drop(path)
        follower.path_vanished(path)
    elif mask & APPEARED or follower.ledger.get(path) is not None or path not in watches:
        follower.directory_appeared(path)


def _apply_to_file(mask: int, path: bytes, watches: Watches, follower: Follower) -> None:
    if mask & VANISHED:
        if path in watches:  # a link
            watches.drop_below(path)
        follower.path_vanished(path)
    elif mask & (In.IN_CLOSE_WRITE | In.IN_MOVED_TO):
        follower.file_saved(path)
    elif mask & (In.IN_CREATE | In.IN_MODIFY):
        follower.file_written(path)
    else:
        follower.metadata_changed(path)
