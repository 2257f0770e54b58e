# ruff: noqa: PTH120
# Paths are bytes here, which pathlib does not take.
"""The ledger: the source's last report about each file. One owner, one thread."""

import os.path
from collections.abc import Iterator
from dataclasses import dataclass

from consumers.folder.tree.file_status import FileStatus
from consumers.types import Fingerprint


@dataclass(slots=True)
class Entry:
    """The last report of a file. `refused` is the reason if the file is not read."""

    fingerprint: Fingerprint
    refused: str | None = None
    committed: bool = False
    racy: bool = False
    """The file was read so soon after its last change that a further change may have the same mtime."""
    must_repeat: bool = False
    """The daemon could not read the file (for example because its drive was unmounted), so it must be reported again."""
    scan: int = 0
    """Number of the last scan that found the file."""

    @property
    def is_taken_in(self) -> bool:
        """Whether the daemon has read the content or will read it."""
        return self.refused is None and not self.must_repeat

    @property
    def was_read(self) -> bool:
        """Whether the content was read, now or before a restart. A refused file that was loaded from the memory is recognised
        by its missing digest."""
        return self.refused is None and self.fingerprint.digest is not None

    def matches(self, found: FileStatus) -> bool:
        """Whether the file is unchanged since its report, judging by its stamp alone."""
        known = self.is_taken_in and self.fingerprint.digest is not None and not self.racy
        return known and found.kind == "file" and found.stamp == self.fingerprint.stamp


class Ledger:
    """Entries by path, kept as a tree: listing the paths below a directory does not visit other entries."""

    def __init__(self) -> None:
        self._entries: dict[bytes, Entry] = {}
        self._children: dict[bytes, set[bytes]] = {}
        self._inodes: dict[int, tuple[bytes, ...]] = {}
        self.refused = 0

    def __contains__(self, path: object) -> bool:
        return path in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._entries)

    def get(self, path: bytes) -> Entry | None:
        return self._entries.get(path)

    def put(self, path: bytes, entry: Entry) -> None:
        before = self._entries.get(path)
        self.refused += (entry.refused is not None) - (before is not None and before.refused is not None)
        self._entries[path] = entry
        if before is None or before.fingerprint.inode != entry.fingerprint.inode:
            if before is not None:
                self._drop_inode(path, before)
            inode = entry.fingerprint.inode
            self._inodes[inode] = (*self._inodes.get(inode, ()), path)
        while path != b"/":
            parent = os.path.dirname(path)
            names = self._children.setdefault(parent, set())
            if path in names:
                break
            names.add(path)
            path = parent

    def pop(self, path: bytes) -> Entry | None:
        entry = self._entries.pop(path, None)
        if entry is None:
            return None
        self.refused -= entry.refused is not None
        self._drop_inode(path, entry)
        while path != b"/" and path not in self._entries and not self._children.get(path):
            self._children.pop(path, None)
            parent = os.path.dirname(path)
            self._children[parent].discard(path)
            path = parent
        return entry

    def with_inode(self, inode: int) -> tuple[bytes, ...]:
        """Returns the paths that were reported with this inode."""
        return self._inodes.get(inode, ())

    def _drop_inode(self, path: bytes, entry: Entry) -> None:
        inode = entry.fingerprint.inode
        left = tuple(other for other in self._inodes[inode] if other != path)
        if left:
            self._inodes[inode] = left
        else:
            del self._inodes[inode]

    def below(self, path: bytes) -> Iterator[bytes]:
        """Yields the paths of all entries at and below `path`. The ledger must not change during the iteration."""
        stack = [path]
        while stack:
            current = stack.pop()
            if current in self._entries:
                yield current
            stack.extend(self._children.get(current, ()))
