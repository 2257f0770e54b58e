# ruff: noqa: PTH120
# Paths are bytes here, which pathlib does not take.
"""The ledger: what the source has told the daemon about each file. One owner, one thread."""

import os.path
from collections.abc import Iterator
from dataclasses import dataclass

from consumers.folder.tree.file_status import FileStatus
from consumers.types import Fingerprint


@dataclass(slots=True)
class Entry:
    """A file as it was last reported. `refused` is the reason where it is not read."""

    fingerprint: Fingerprint
    refused: str | None = None
    committed: bool = False
    racy: bool = False
    """It was read so soon after its last change that a further change might have the same mtime."""
    must_repeat: bool = False
    """The daemon could not read it (its drive went away, say), so it must be reported again."""
    scan: int = 0
    """The number of the last scan that found it."""

    @property
    def is_taken_in(self) -> bool:
        """Whether the daemon knows the content, or is about to read it."""
        return self.refused is None and not self.must_repeat

    @property
    def was_read(self) -> bool:
        """Whether the content was looked at, now or before the start: what the daemon keeps of a refused file has no digest."""
        return self.refused is None and self.fingerprint.digest is not None

    def matches(self, found: FileStatus) -> bool:
        """Whether the file is as it was reported, as far as can be seen without reading it."""
        known = self.is_taken_in and self.fingerprint.digest is not None and not self.racy
        return known and found.kind == "file" and found.stamp == self.fingerprint.stamp


class Ledger:
    """Entries by path, kept as a tree: finding what is below a directory does not go through all other entries."""

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
        """The paths that were reported with this inode."""
        return self._inodes.get(inode, ())

    def _drop_inode(self, path: bytes, entry: Entry) -> None:
        inode = entry.fingerprint.inode
        left = tuple(other for other in self._inodes[inode] if other != path)
        if left:
            self._inodes[inode] = left
        else:
            del self._inodes[inode]

    def below(self, path: bytes) -> Iterator[bytes]:
        """The paths of all entries at and below `path`. Do not change the ledger while iterating."""
        stack = [path]
        while stack:
            here = stack.pop()
            if here in self._entries:
                yield here
            stack.extend(self._children.get(here, ()))
