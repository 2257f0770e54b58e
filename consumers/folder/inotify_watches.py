"""Inotify watches, one a directory, over watchdog's reader.

watchdog's own observer is not used: it hides a full queue and a reached watch limit from its handlers, walks symbolic
links in circles, and holds every event back up to half a second behind an unmatched rename. Its `InotifyFD`, which
owns the descriptor and its thread and parses what the kernel says, has none of this.
"""

import errno
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from watchdog.observers.inotify_c import CallbackId, InotifyEvent, InotifyFD, Mask, WatchDescriptor
from watchdog.observers.inotify_c import InotifyConstants as In

CONTENT = In.IN_MODIFY | In.IN_CLOSE_WRITE
APPEARED = In.IN_CREATE | In.IN_MOVED_TO
VANISHED = In.IN_DELETE | In.IN_MOVED_FROM
SELF = In.IN_DELETE_SELF | In.IN_MOVE_SELF | In.IN_UNMOUNT | In.IN_IGNORED
_STRICT = In.IN_ONLYDIR | In.IN_DONT_FOLLOW
_MASK = CONTENT | APPEARED | VANISHED | In.IN_ATTRIB | In.IN_DELETE_SELF | In.IN_MOVE_SELF


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One inotify event; `wd` -1 with IN_Q_OVERFLOW says that events were lost."""

    wd: int
    mask: int
    name: bytes = b""


OVERFLOW = WatchEvent(-1, In.IN_Q_OVERFLOW)


class WatchLimitError(Exception):
    """The system allows no further inotify watch or instance; the message says which setting to raise."""


@dataclass(frozen=True, slots=True)
class _KernelWatch:
    """A watch in the kernel. The kernel has one watch per inode, however many links lead to it."""

    callback: CallbackId
    paths: dict[bytes, None] = field(default_factory=dict)
    """In the order they came."""


class Watches:
    """Watches by path. `push` is called on watchdog's reader thread and must not block; all else on one thread."""

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
        """The paths that lead to what was watched: several where links share a target."""
        watch = self._watches.get(wd)
        return tuple(watch.paths) if watch is not None else ()

    def covers(self, path: bytes, inode: tuple[int, int]) -> bool:
        """Whether the directory (device, inode) is watched under this path."""
        covered = self._inode_by_path.get(path)
        return covered is not None and covered[1] == inode

    def add(self, path: bytes, inode: tuple[int, int], *, link: bool = False) -> None:
        """Watch a directory, or what a link leads to. Raises WatchLimitError; who looks next meets any other error."""
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
        if wd == -1:  # no permission: watchdog files it under -1 and says nothing
            self._reader.remove_callbacks([(wd, callback)])
            return
        watch = self._watches.get(wd)
        if watch is None:
            watch = self._watches[wd] = _KernelWatch(callback)
        else:  # watchdog would tell of each event once for every callback
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
        """Forget the watches at and below a directory that went elsewhere; takes time with the number of watches."""
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

    # What watchdog calls, on its thread.

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
