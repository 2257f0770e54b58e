# Paths are bytes here, which pathlib does not take.
"""Hard links: the names that a file has in the folder. A file that also has a name elsewhere does not belong to the folder."""

import os
from collections.abc import Iterable

from consumers.folder.tree.walk import Inode

LINKED_ELSEWHERE = (
    "a hard link: not all of its {count} names are followed here; copy the file, or set follow_symlinks = true"
)


class HardLinks:
    """The names that a walk found of files with several. A file with one name takes no memory here."""

    def __init__(self) -> None:
        self._names: dict[Inode, set[bytes]] = {}

    def forget(self) -> None:
        """To be called before a walk of the whole tree, which finds all names anew."""
        self._names.clear()

    def add(self, path: bytes, found: os.stat_result | None) -> None:
        """`path` is a name of the file `found`."""
        if found is not None and found.st_nlink > 1:
            self._names.setdefault((found.st_dev, found.st_ino), set()).add(path)

    def has_other_names(self, path: bytes, found: os.stat_result, known: Iterable[bytes]) -> bool:
        """Whether the file at `path` has a name that is neither recorded here nor in `known`. Stale names are forgotten."""
        if found.st_nlink <= 1:
            return False
        self.add(path, found)
        inode = (found.st_dev, found.st_ino)
        living = {name for name in self._names[inode].union(known) if _leads_to(name, inode)}
        self._names[inode] = living
        return len(living) < found.st_nlink

    def names_besides(self, path: bytes, found: os.stat_result) -> Iterable[bytes]:
        """The file's recorded names other than `path`."""
        return self._names.get((found.st_dev, found.st_ino), set()) - {path} if found.st_nlink > 1 else ()


def _leads_to(path: bytes, inode: Inode) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == inode
