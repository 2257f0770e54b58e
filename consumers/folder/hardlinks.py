# Paths are bytes here, which pathlib does not take.
"""The names (hard links) that a file has in the folder. A file that also has names elsewhere does not belong to the folder."""

import os
from collections.abc import Iterable

from consumers.folder.walk import Inode

LINKED_ELSEWHERE = (
    "a hard link: not all of its {count} names are followed here; copy the file, or set follow_symlinks = true"
)


class HardLinks:
    """The names that a walk met of files with more than one. A file with a single name costs nothing here."""

    def __init__(self) -> None:
        self._met: dict[Inode, set[bytes]] = {}

    def forget(self) -> None:
        """Call it before a walk of the whole tree, which meets all names anew."""
        self._met.clear()

    def meet(self, path: bytes, found: os.stat_result | None) -> None:
        """`path` leads to the file `found`."""
        if found is not None and found.st_nlink > 1:
            self._met.setdefault((found.st_dev, found.st_ino), set()).add(path)

    def elsewhere(self, path: bytes, found: os.stat_result, known: Iterable[bytes]) -> bool:
        """Whether the file at `path` has a name that was not met, nor `known`. Names that lead elsewhere are forgotten."""
        if found.st_nlink <= 1:
            return False
        self.meet(path, found)
        inode = (found.st_dev, found.st_ino)
        living = {name for name in self._met[inode].union(known) if _leads_to(name, inode)}
        self._met[inode] = living
        return len(living) < found.st_nlink

    def others(self, path: bytes, found: os.stat_result) -> Iterable[bytes]:
        """The file's other names."""
        return self._met.get((found.st_dev, found.st_ino), set()) - {path} if found.st_nlink > 1 else ()


def _leads_to(path: bytes, inode: Inode) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == inode
