"""Hard links: records the names of files in the followed folders, and decides whether a folder may read a file with several
names. A file that also has a name outside these folders is not followed."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock

from consumers.failure_codes import FailureCode
from consumers.folder.due_paths import MAX_UNSETTLED_S
from consumers.folder.ledger import Entry, Ledger
from consumers.folder.tree.file_status import FileStatus, Inode
from consumers.types import FileRefusal

LINKED_ELSEWHERE = (
    "a hard link: not all of its {count} names are in followed folders with the same labels; copy the file, or set "
    "follow_symlinks = true"
)
READ_ELSEWHERE = "a hard link to {name!r}, which is followed already"

LINK_GRACE_S, LINK_LOOK_S = 1.0, 0.1
"""How long a hard link waits for other folders to find its other names, and the interval of checks during this wait."""


class HardLinks:
    """The names of files with several hard links, as found by walks. Files with a single name are not stored. Thread-safe.

    Folders whose documents have the same labels may share one instance. A file with names in several folders is then read only
    in the folder of its first name in path order.
    """

    def __init__(self) -> None:
        self._names: dict[Inode, set[bytes]] = {}
        self._inodes: dict[bytes, Inode] = {}
        self._announced: dict[Inode, frozenset[bytes]] = {}
        """The names of each file (by inode) when the folders were last notified."""
        self._folders: dict[bytes, Callable[[bytes], None]] = {}
        self._unscanned: set[bytes] = set()
        self._lock = Lock()

    def join(self, root: bytes, look: Callable[[bytes], None]) -> None:
        """Adds a folder. `look(path)` makes the folder examine one of its files; it may be called on any thread."""
        self._folders[_below(root)] = look
        self._unscanned.add(_below(root))

    def scanned(self, root: bytes) -> None:
        """Marks the folder as scanned: all names in the folder that can be read at present are known."""
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
        """Drops `path`, which is no longer followed, and makes the other folders examine the file's other names."""
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


def _refusal(reason: str) -> FileRefusal:
    return FileRefusal(reason, FailureCode.LINK)


def _below(root: bytes) -> bytes:
    return root.rstrip(b"/") + b"/"


def _leads_to(path: bytes, inode: Inode) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == inode


@dataclass(frozen=True, slots=True)
class LinkVerdict:
    """The result of a check: the file is refused, must wait, or may be read. `names` are all names of the file."""

    refusal: FileRefusal | None = None
    waits: bool = False
    names: frozenset[bytes] = frozenset()


MAY_READ = LinkVerdict()


class LinkCheck:
    """The check for the folder `root`. `links` is shared with other folders."""

    def __init__(self, root: bytes, ledger: Ledger, links: HardLinks, *, follow: bool) -> None:
        self._root = root
        self._ledger = ledger
        self._links = links
        self._follow = follow

    def check(self, path: bytes, found: FileStatus, entry: Entry | None, waited_s: float) -> LinkVerdict:
        """Returns the verdict on a file. Refuses a file that has a name outside the followed folders or that another folder
        reads.

        A symbolic link that leads out of the followed folders is refused for the same reason. The file waits if its names are
        not known yet. A file that was already read is kept if it gets a name outside: a backup that hard-links a whole drive
        must not empty the memory. `consumers.openat` checks the names again when the file is opened.
        """
        assert found.stat is not None
        if self._follow or found.stat.st_nlink <= 1:
            return MAY_READ
        names = self._links.names(path, found.stat, self._ledger.with_inode(found.stat.st_ino))
        if len(names) < found.stat.st_nlink:
            if entry is not None and entry.was_read and entry.fingerprint.inode == found.stat.st_ino:
                return MAY_READ
            if (entry is None or entry.refused is None) and self._may_learn_names(waited_s):
                return LinkVerdict(waits=True)
            return LinkVerdict(_refusal(LINKED_ELSEWHERE.format(count=found.stat.st_nlink)))
        self._links.announce(found.stat, names, self._root)
        first = min(names)
        if not first.startswith(self._root.rstrip(b"/") + b"/"):
            return LinkVerdict(_refusal(READ_ELSEWHERE.format(name=os.fsdecode(first))))
        return LinkVerdict(names=names)

    def is_shared(self, found: FileStatus) -> bool:
        """Whether the file may have names in other followed folders, so that another folder may have to read it."""
        return self._links.are_shared() and found.stat is not None and found.stat.st_nlink > 1

    def _may_learn_names(self, waited_s: float) -> bool:
        """Whether another folder may still report further names of a file that has waited `waited_s` seconds."""
        if not self._links.are_shared() or waited_s >= MAX_UNSETTLED_S:
            return False
        return waited_s < LINK_GRACE_S or not self._links.are_known(self._root)
