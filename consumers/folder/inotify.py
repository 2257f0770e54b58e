# ruff: noqa: PTH118
# Paths are bytes here, which pathlib does not take.
"""Inotify watches, one per directory, and the calls of the reconciler for their events.

watchdog's own observer is not used: it hides a full queue and a reached watch limit from its handlers, follows circular
symbolic links endlessly, and delays every event by up to half a second after an unmatched rename. watchdog's `InotifyFD` has no
such fault. It owns the descriptor and its thread and parses the kernel's events.
"""

import errno
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from watchdog.observers.inotify_c import CallbackId, InotifyEvent, InotifyFD, Mask, WatchDescriptor
from watchdog.observers.inotify_c import InotifyConstants as In

from consumers.folder.reconciler import Reconciler

CONTENT = In.IN_MODIFY | In.IN_CLOSE_WRITE
APPEARED = In.IN_CREATE | In.IN_MOVED_TO
VANISHED = In.IN_DELETE | In.IN_MOVED_FROM
SELF = In.IN_DELETE_SELF | In.IN_MOVE_SELF | In.IN_UNMOUNT | In.IN_IGNORED
_STRICT = In.IN_ONLYDIR | In.IN_DONT_FOLLOW
_MASK = CONTENT | APPEARED | VANISHED | In.IN_ATTRIB | In.IN_DELETE_SELF | In.IN_MOVE_SELF


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One inotify event. `wd` -1 with IN_Q_OVERFLOW means that events were lost."""

    wd: int
    mask: int
    name: bytes = b""


OVERFLOW = WatchEvent(-1, In.IN_Q_OVERFLOW)


class WatchLimitError(Exception):
    """The system allows no further inotify watch or instance. The message names the setting to raise."""


@dataclass(frozen=True, slots=True)
class _KernelWatch:
    """A watch in the kernel. The kernel has one watch per inode, however many links lead to it."""

    callback: CallbackId
    paths: dict[bytes, None] = field(default_factory=dict)
    """The watched paths, in the order of addition."""


class Watches:
    """Inotify watches by path. `push` is called on watchdog's reader thread and must not block; one other thread calls all
    methods."""

    def __init__(self, push: Callable[[WatchEvent], None]) -> None:
        self._push = push
        self._callback_ids = itertools.count(1)
        self._watches: dict[int, _KernelWatch] = {}
        self._inode_by_path: dict[bytes, tuple[WatchDescriptor, tuple[int, int]]] = {}
        try:
            self._reader = InotifyFD()
        except OSError as error:
            raise _limit(error) from error
        self._reader.start()

    def __len__(self) -> int:
        return len(self._inode_by_path)

    @property
    def alive(self) -> bool:
        return self._reader.is_alive()

    def __contains__(self, path: bytes) -> bool:
        return path in self._inode_by_path

    def paths(self, wd: int) -> tuple[bytes, ...]:
        """Returns the paths that lead to the watched inode; several if links share a target."""
        watch = self._watches.get(wd)
        return tuple(watch.paths) if watch is not None else ()

    def covers(self, path: bytes, inode: tuple[int, int]) -> bool:
        """Whether the inode (device, inode number) is watched under this path."""
        covered = self._inode_by_path.get(path)
        return covered is not None and covered[1] == inode

    def add(self, path: bytes, inode: tuple[int, int], *, link: bool = False) -> None:
        """Watches a directory or the target of a link. Raises WatchLimitError. Ignores other errors: the next examination of
        the path reports them."""
        if self.covers(path, inode):
            return
        self.drop(path)
        callback = CallbackId(next(self._callback_ids))
        try:
            wd = self._reader.add_callback(path, Mask(_MASK if link else _MASK | _STRICT), self, callback)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EMFILE, errno.ENOMEM):
                raise _limit(error) from error
            return
        if wd == -1:  # no permission: watchdog stores the callback under -1 and reports nothing
            self._reader.remove_callbacks([(wd, callback)])
            return
        watch = self._watches.get(wd)
        if watch is None:
            watch = self._watches[wd] = _KernelWatch(callback)
        else:  # watchdog would call every callback of the inode for each event
            self._reader.remove_callbacks([(wd, callback)])
        watch.paths[path] = None
        self._inode_by_path[path] = (wd, inode)

    def drop(self, path: bytes) -> None:
        dropped = self._inode_by_path.pop(path, None)
        if dropped is None:
            return
        wd = dropped[0]
        watch = self._watches[wd]
        del watch.paths[path]
        if not watch.paths:
            del self._watches[wd]
            self._reader.remove_callbacks([(wd, watch.callback)])

    def drop_below(self, path: bytes) -> None:
        """Drops the watches at and below a directory that was moved away. Takes time proportional to the number of watches."""
        prefix = path + b"/"
        for watched in [other for other in self._inode_by_path if other == path or other.startswith(prefix)]:
            self.drop(watched)

    def clear(self) -> None:
        self._reader.remove_callbacks([(WatchDescriptor(wd), watch.callback) for wd, watch in self._watches.items()])
        self._inode_by_path.clear()
        self._watches.clear()

    def close(self) -> None:
        self._reader.stop()
        self._reader.join(timeout=5)

    # watchdog calls these methods on its thread.

    def on_event(self, event: InotifyEvent) -> None:
        self._push(WatchEvent(event.wd, event.mask, event.name))

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        self._push(WatchEvent(wd, In.IN_IGNORED))

    def on_queue_overflow(self) -> None:
        self._push(OVERFLOW)


def _limit(error: OSError) -> WatchLimitError:
    if error.errno == errno.EMFILE:
        return WatchLimitError(
            "no inotify instance is left: raise fs.inotify.max_user_instances with sysctl and restart hippod"
        )
    return WatchLimitError(
        "no inotify watch is left, and each directory needs one: "
        "raise fs.inotify.max_user_watches with sysctl and restart hippod"
    )


def apply_event(event: WatchEvent, watches: Watches, reconciler: Reconciler) -> bool:
    """Passes an event to the reconciler. Returns whether the whole folder must be scanned."""
    scan = False
    for watched in watches.paths(event.wd):
        path = os.path.join(watched, event.name)
        if not event.name:
            scan |= _apply_to_watched(event.mask, watched, watches, reconciler)
        elif event.mask & In.IN_ISDIR:
            _apply_to_directory(event.mask, path, watches, reconciler)
        else:
            _apply_to_file(event.mask, path, watches, reconciler)
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
        if mask & In.IN_MOVED_FROM:  # a moved directory keeps its watches; a deleted directory has lost them
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
