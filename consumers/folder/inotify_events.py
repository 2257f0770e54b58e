# ruff: noqa: PTH118
# Paths are bytes here, which pathlib does not take.
"""Turns inotify events and the daemon's hints into calls of the reconciler."""

import os
from dataclasses import dataclass

from watchdog.observers.inotify_c import InotifyConstants as In

from consumers.folder.inotify_watches import APPEARED, SELF, VANISHED, Watches, WatchEvent
from consumers.folder.reconciler import Reconciler
from consumers.types import Fingerprint


@dataclass(frozen=True, slots=True)
class FileHint:
    """A message about a file: the daemon committed it (`committed`), or another folder found or lost one of its names
    (`look`). With neither flag, the file is to be read again."""

    path: bytes
    committed: bool = False
    look: bool = False
    fingerprint: Fingerprint | None = None


def apply_event(item: WatchEvent | FileHint, watches: Watches | None, reconciler: Reconciler) -> bool:
    """Passes the item to the reconciler. Returns whether the whole folder must be scanned."""
    if isinstance(item, FileHint):
        if item.committed:
            reconciler.committed(item.path, item.fingerprint)
        elif item.look:
            reconciler.metadata_changed(item.path)
        else:
            reconciler.recheck(item.path)
        return False
    if watches is None:
        return False
    scan = False
    for watched in watches.paths(item.wd):
        path = os.path.join(watched, item.name)
        if not item.name:
            scan |= _apply_to_watched(item.mask, watched, watches, reconciler)
        elif item.mask & In.IN_ISDIR:
            _apply_to_directory(item.mask, path, watches, reconciler)
        else:
            _apply_to_file(item.mask, path, watches, reconciler)
    return scan


def _apply_to_watched(mask: int, path: bytes, watches: Watches, reconciler: Reconciler) -> bool:
    """Handles an event of a watched path itself: the root, or a link's target outside all watched directories. Returns
    whether the whole folder must be scanned."""
    if mask & In.IN_IGNORED:
        watches.drop(path)
    if path == reconciler.root:
        return bool(mask & (SELF | In.IN_ATTRIB))
    if mask & In.IN_CLOSE_WRITE:
        reconciler.file_saved(path)
    elif mask & In.IN_MODIFY:
        reconciler.file_written(path)
    else:
        reconciler.metadata_changed(path)
    return False


def _apply_to_directory(mask: int, path: bytes, watches: Watches, reconciler: Reconciler) -> None:
    if mask & VANISHED:
        if mask & In.IN_MOVED_FROM:  # a moved directory keeps its watches; those of a deleted directory are gone
            watches.drop_below(path)
        else:
            watches.drop(path)
        reconciler.path_vanished(path)
    elif mask & APPEARED or reconciler.ledger.get(path) is not None or path not in watches:
        reconciler.directory_appeared(path)


def _apply_to_file(mask: int, path: bytes, watches: Watches, reconciler: Reconciler) -> None:
    if mask & VANISHED:
        if path in watches:  # a link
            watches.drop_below(path)
        reconciler.path_vanished(path)
    elif mask & (In.IN_CLOSE_WRITE | In.IN_MOVED_TO):
        reconciler.file_saved(path)
    elif mask & (In.IN_CREATE | In.IN_MODIFY):
        reconciler.file_written(path)
    else:
        reconciler.metadata_changed(path)
