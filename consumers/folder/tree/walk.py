# ruff: noqa: PTH118, PTH208
# Paths are bytes here, which pathlib does not take.
"""Walks a directory tree. Each directory is watched before it is listed, so that no new file is missed in between."""

import os
from collections import Counter
from collections.abc import Callable, Iterator

from consumers.failure_codes import FailureCode
from consumers.folder.tree.file_status import FileStatus, Inode, file_status
from consumers.folder.tree.follow_rules import FollowRules
from consumers.folder.tree.mounts import MountedDrives
from consumers.openat import refusal_of_error
from consumers.types import FileRefusal


class Walker:
    """Walks one folder. `watch_directory(path, inode, is_link)` is called before a directory is listed."""

    def __init__(
        self, rules: FollowRules, *, follow: bool, watch_directory: Callable[[bytes, Inode, bool], None]
    ) -> None:
        self._rules = rules
        self._follow = follow
        self._watch_directory = watch_directory
        self.drives = MountedDrives()
        self.marked: set[bytes] = set()
        """Directories that a marker excluded when they were last examined."""
        self._excluded: dict[bytes, Counter[str]] = {}
        """Number of excluded entries by directory and reason."""
        self._all_excluded: Counter[str] = Counter()
        # Visited directories, by inode and by path. Filled only if links are followed: a link to a visited directory is
        # left out.
        self._visited: dict[Inode, bytes] = {}
        self._inodes: dict[bytes, Inode] = {}

    def walk(self, top: bytes, first: FileStatus) -> Iterator[tuple[bytes, FileStatus]]:
        """Yields the followed and the refused paths at and below the directory `top`; a directory only if it is refused. Counts
        the excluded entries.

        `top` must not be excluded by its name, by a marker next to it, or by a directory above it. Directories are visited
        before links to them. So each directory is followed once, and circular links end. A directory that cannot be listed is
        refused and may be retried.
        """
        stack: list[tuple[bytes, FileStatus]] = [(top, first)]
        links: list[tuple[bytes, FileStatus]] = []
        while stack or links:
            if not stack:
                links.sort(reverse=True, key=lambda item: item[0])
                stack.append(links.pop())
            path, directory = stack.pop()
            followed_already = self._followed_already(path, directory)
            if followed_already is not None:
                yield path, followed_already
                continue
            assert directory.stat is not None and directory.inode is not None
            inode = directory.inode
            if path == top and path != self._rules.root:
                self.drives.record(path, directory.stat.st_dev)
            if self._follow:
                self._visited[inode] = path
                self._inodes[path] = inode
            self._watch_directory(path, inode, directory.link)
            try:
                with os.scandir(path) as listing:
                    names = {entry.name for entry in listing}
            except FileNotFoundError:
                continue
            except OSError as error:
                yield path, FileStatus(refusal=refusal_of_error(error, "directory"))
                continue
            self._all_excluded.subtract(self._excluded.pop(path, ()))
            self.marked.discard(path)
            if (exclusion := self._rules.by_content(path, names)) is not None:
                self._count_excluded(path, exclusion.reason)
                self.marked.add(path)
                continue
            for name in names:
                child = os.path.join(path, name)
                found = self.status_of(child)
                if found.kind == "gone":
                    continue
                exclusion = self._rules.of_entry(child, folder=found.kind == "directory", siblings=names)
                if exclusion is not None:
                    self._count_excluded(path, exclusion.reason)
                    if exclusion.needs_marker:
                        self.marked.add(child)
                elif found.kind == "directory":
                    assert found.stat is not None
                    self.drives.record(child, found.stat.st_dev, directory.stat.st_dev)
                    (links if found.link else stack).append((child, found))
                else:
                    yield child, found

    def marks_changed(self, directory: bytes) -> bool:
        """Whether the directories that markers exclude have changed since the last examination. Checks `directory` and the
        directories in it."""
        marked = self._rules.by_content(directory) is not None
        if marked or directory in self.marked:
            return marked != (directory in self.marked)
        try:
            names = os.listdir(directory)
        except OSError:
            return False
        children = (os.path.join(directory, name) for name in names if self._rules.may_be_marked(name))
        return any(self._rules.is_marked(child) != (child in self.marked) for child in children)

    def excluded(self) -> dict[str, int]:
        """Returns the number of excluded files and directories, by reason. Entries of an excluded directory are not
        counted. Any thread may call it."""
        return {reason: count for reason, count in dict(self._all_excluded).items() if count}

    def _count_excluded(self, directory: bytes, reason: str) -> None:
        self._excluded.setdefault(directory, Counter())[reason] += 1
        self._all_excluded[reason] += 1

    def status_of(self, path: bytes) -> FileStatus:
        return file_status(path, follow=self._follow)

    def forget_below(self, top: bytes) -> bool:
        """Forgets the visited directories at and below `top`, which is gone. Returns whether a directory was forgotten, so that
        other links to it may have to be followed."""
        if top not in self._inodes:
            return False
        prefix = top + b"/"
        for path in [path for path in self._inodes if path == top or path.startswith(prefix)]:
            inode = self._inodes.pop(path)
            if self._visited.get(inode) == path:
                del self._visited[inode]
        return True

    def forget_all(self) -> None:
        """Forgets all visited directories and counts. Call it before a walk of the whole tree."""
        self._visited.clear()
        self._inodes.clear()
        self._excluded.clear()
        self._all_excluded.clear()
        self.marked.clear()

    def _followed_already(self, path: bytes, found: FileStatus) -> FileStatus | None:
        if not found.link or found.inode is None:
            return None
        other = self._visited.get(found.inode)
        if other is None or other == path:
            return None
        reason = f"a symbolic link to {os.fsdecode(other)!r}, which is followed already"
        return FileStatus(found.stat, link=True, refusal=FileRefusal(reason, FailureCode.LINK))
