"""Hard links: the names of a file in the followed folders. A file that also has a name outside these folders is not
followed."""

import os
from collections.abc import Callable, Iterable
from threading import Lock

from consumers.folder.tree.walk import Inode

LINKED_ELSEWHERE = (
    "a hard link: not all of its {count} names are in followed folders with the same labels; copy the file, or set "
    "follow_symlinks = true"
)
READ_ELSEWHERE = "a hard link to {name!r}, which is followed already"


class HardLinks:
    """The names of files with several hard links, as found by walks. Files with one name take no memory here. Thread-safe.

    Folders whose documents have the same labels may share one instance. A file with names in several folders is then read only
    in the folder of its first name in path order.
    """

    def __init__(self) -> None:
        self._names: dict[Inode, set[bytes]] = {}
        self._inodes: dict[bytes, Inode] = {}
        self._announced: dict[Inode, frozenset[bytes]] = {}
        """By inode: the file's names when the folders were last notified."""
        self._folders: dict[bytes, Callable[[bytes], None]] = {}
        self._unscanned: set[bytes] = set()
        self._lock = Lock()

    def join(self, root: bytes, look: Callable[[bytes], None]) -> None:
        """Adds a folder. `look(path)` makes the folder examine one of its files; it may be called on any thread."""
        self._folders[_below(root)] = look
        self._unscanned.add(_below(root))

    def scanned(self, root: bytes) -> None:
        """Marks the folder as scanned: the names in it are known, or cannot be read at present."""
        self._unscanned.discard(_below(root))

    def are_known(self, root: bytes) -> bool:
        """Whether all folders except `root` were scanned."""
        return not self._unscanned - {_below(root)}

    def are_shared(self) -> bool:
        """Whether several folders share this instance."""
        return len(self._folders) > 1

    def forget(self, root: bytes) -> None:
        """Forgets the names in a folder. Call it before a walk of the whole folder, which records them again."""
        with self._lock:
            for path in [path for path in self._inodes if path.startswith(_below(root))]:
                self._drop(path)

    def add(self, path: bytes, found: os.stat_result | None) -> None:
        """Records `path` as a name of the file `found`."""
        if found is not None and found.st_nlink > 1:
            with self._lock:
                self._record(path, (found.st_dev, found.st_ino))

    def names(self, path: bytes, found: os.stat_result, known: Iterable[bytes]) -> frozenset[bytes]:
        """Returns the names of the file at `path`: recorded names and those in `known` that still lead to the file."""
        self.add(path, found)
        inode = (found.st_dev, found.st_ino)
        with self._lock:
            recorded = set(self._names.get(inode, ()))
        living = frozenset(name for name in recorded.union(known) if _leads_to(name, inode))
        with self._lock:
            for name in recorded - living:
                if self._inodes.get(name) == inode:
                    self._drop(name)
            for name in living:
                self._record(name, inode)
        return living

    def announce(self, found: os.stat_result, names: frozenset[bytes], root: bytes) -> None:
        """Makes the other folders examine the file's names if these have changed."""
        inode = (found.st_dev, found.st_ino)
        with self._lock:
            before, self._announced[inode] = self._announced.get(inode), names
        if before != names:
            self._look_at(names, root)

    def removed(self, path: bytes, root: bytes) -> None:
        """Drops `path`, which is not followed any more, and makes the other folders examine the file's other names."""
        with self._lock:
            inode = self._inodes.get(path)
            self._drop(path)
            left = set(self._names.get(inode, ())) if inode is not None else set()
            if inode is not None:
                self._announced.pop(inode, None)
        self._look_at(left, root)

    def _look_at(self, names: Iterable[bytes], root: bytes) -> None:
        for prefix, look in self._folders.items():
            if prefix != _below(root):
                for name in names:
                    if name.startswith(prefix):
                        look(name)

    def _record(self, path: bytes, inode: Inode) -> None:
        if self._inodes.get(path) != inode:
            self._drop(path)
            self._inodes[path] = inode
            self._names.setdefault(inode, set()).add(path)

    def _drop(self, path: bytes) -> None:
        inode = self._inodes.pop(path, None)
        if inode is not None:
            self._names[inode].discard(path)
            if not self._names[inode]:
                del self._names[inode]
                self._announced.pop(inode, None)


def _below(root: bytes) -> bytes:
    return root.rstrip(b"/") + b"/"


def _leads_to(path: bytes, inode: Inode) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == inode
