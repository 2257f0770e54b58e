# ruff: noqa: PTH118
# Paths are bytes here, which pathlib does not take.
"""Walks a directory tree, each directory's watch set before it is listed."""

import os
from collections.abc import Callable, Iterator

from consumers.failures import FailureCode
from consumers.folder.file_status import FileStatus, file_status, refused_status
from consumers.folder.globs import GlobRules
from consumers.folder.mounts import MountedDrives

Inode = tuple[int, int]
"""(device, inode)."""


class Walker:
    """What it takes to walk one folder. `enter` is called with each directory before it is listed."""

    def __init__(
        self, rules: GlobRules, *, follow: bool, max_bytes: int, enter: Callable[[bytes, Inode, bool], None]
    ) -> None:
        self._rules = rules
        self._follow = follow
        self._max_bytes = max_bytes
        self._enter = enter
        self.drives = MountedDrives()
        # Where each directory was entered, both ways. Kept only if links are followed: a link to one of them is not.
        self._visited: dict[Inode, bytes] = {}
        self._inodes: dict[bytes, Inode] = {}

    def walk(self, top: bytes, first: FileStatus) -> Iterator[tuple[bytes, FileStatus]]:
        """Everything followed at and below the directory `top`: files, what is refused, no directories.

        Directories come before the links that lead to them, so each is followed once and no link leads round in a
        circle. A directory that cannot be listed is a refused look that is worth another try.
        """
        stack: list[tuple[bytes, FileStatus]] = [(top, first)]
        links: list[tuple[bytes, FileStatus]] = []
        while stack or links:
            if not stack:
                links.sort(reverse=True, key=lambda item: item[0])
                stack.append(links.pop())
            path, here = stack.pop()
            twice = self._seen_elsewhere(path, here)
            if twice is not None:
                yield path, twice
                continue
            assert here.stat is not None
            inode = (here.stat.st_dev, here.stat.st_ino)
            if path == top and path != self._rules.root:
                self.drives.meet(path, here.stat.st_dev)
            if self._follow:
                self._visited[inode] = path
                self._inodes[path] = inode
            self._enter(path, inode, here.link)
            try:
                with os.scandir(path) as listing:
                    names = [entry.name for entry in listing]
            except FileNotFoundError:
                continue
            except OSError as error:
                yield path, refused_status(error, "directory")
                continue
            for name in names:
                child = os.path.join(path, name)
                found = self.status_of(child)
                if found.kind != "directory":
                    if found.kind != "gone" and self._rules.follows(child):
                        yield child, found
                elif self._rules.enters(child):
                    assert found.stat is not None
                    self.drives.meet(child, found.stat.st_dev, here.stat.st_dev)
                    (links if found.link else stack).append((child, found))

    def status_of(self, path: bytes) -> FileStatus:
        return file_status(path, follow=self._follow, max_bytes=self._max_bytes)

    def leave(self, top: bytes) -> bool:
        """`top` is not there any more. Returns whether other links to what it held may have to be followed now."""
        if top not in self._inodes:
            return False
        prefix = top + b"/"
        for path in [path for path in self._inodes if path == top or path.startswith(prefix)]:
            inode = self._inodes.pop(path)
            if self._visited.get(inode) == path:
                del self._visited[inode]
        return True

    def forget(self) -> None:
        """The walk that comes next is that of the whole tree."""
        self._visited.clear()
        self._inodes.clear()

    def _seen_elsewhere(self, path: bytes, found: FileStatus) -> FileStatus | None:
        if not found.link or found.stat is None:
            return None
        other = self._visited.get((found.stat.st_dev, found.stat.st_ino))
        if other is None or other == path:
            return None
        where = os.fsdecode(other)
        return FileStatus(
            "refused",
            found.stat,
            True,
            f"a symbolic link to {where!r}, which is followed already",
            code=FailureCode.LINK,
        )
