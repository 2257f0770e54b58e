# ruff: noqa: PTH118, PTH119, PTH120, PTH208
# Paths are bytes here, which pathlib does not take.
"""Rules that select the followed files of a tree: the globs of the configuration and the default exclusions."""

import os
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from pathspec import GitIgnoreSpec

from consumers.folder.tree.default_exclusions import (
    CACHE_SIGNATURE,
    CACHE_TAG,
    Exclusion,
    by_marker,
    by_name,
    is_marker,
    marker_in,
)
from consumers.openat import open_file

BY_EXCLUDE = Exclusion("exclude", since=0)
"""The reason if a pattern of `exclude` matches."""
BY_INCLUDE = Exclusion("include", since=0)
"""The reason if no pattern of `include` matches."""


class FollowRules:
    """`include`, `exclude` and the default exclusions of one folder. Paths are absolute. The methods for paths look at the disk
    for markers. Raises ValueError for an invalid pattern.

    A pattern of `exclude` takes precedence over the default exclusions: with a leading `!`, it includes files that a default
    exclusion leaves out. The root is never excluded.
    """

    def __init__(self, root: bytes, include: Sequence[str], exclude: Sequence[str]) -> None:
        self.root = root
        self._skip = len(root.rstrip(b"/")) + 1
        self._all = "**" in include and not any(pattern.startswith("!") for pattern in include)
        self._include = _compile(include, "include")
        self._exclude = _compile(exclude, "exclude") if exclude else None

    def follows(self, path: bytes) -> bool:
        """Whether the file at `path` is followed."""
        return self.exclusion(path, folder=False) is None

    def enters(self, path: bytes) -> bool:
        """Whether the directory at `path` is searched for files."""
        return self.exclusion(path, folder=True) is None

    def exclusion(self, path: bytes, *, folder: bool) -> Exclusion | None:
        """Returns the exclusion of the file or directory at `path` or of a directory above it."""
        for directory in self._directories_above(path):
            if found := self._of_directory(directory):
                return found
        if folder:
            return self._of_directory(path) if len(path) >= self._skip else None
        return self.of_entry(path, folder=False)

    def of_entry(self, path: bytes, *, folder: bool, siblings: AbstractSet[bytes] | None = None) -> Exclusion | None:
        """Returns the exclusion of an entry of a followed directory. Ignores markers inside the entry.

        `siblings` holds the names in the directory; if None, the disk is searched for markers.
        """
        stated = self._stated(path, folder=folder)
        if stated is not None:
            return BY_EXCLUDE if stated else None
        name = os.fsdecode(os.path.basename(path))
        if found := by_name(name, folder=folder):
            return found
        if folder:
            above = os.path.dirname(path)
            rows = (row for row in by_marker(name) if _has(above, row.beside, siblings))
            return next(rows, None)
        return None if self._all or self._include.match_file(self._relative(path)) else BY_INCLUDE

    def by_content(self, path: bytes, names: AbstractSet[bytes] | None = None) -> Exclusion | None:
        """Returns the exclusion of a directory by a marker inside it. `names` holds the directory's entries; if None, the disk
        is searched."""
        if len(path) < self._skip:
            return None
        for row in by_marker(os.fsdecode(os.path.basename(path))):
            if not _has(path, row.inside, names) or (CACHE_TAG in row.inside and not _is_cache(path, self.root)):
                continue
            return row if self._stated(path, folder=True) is None else None
        return None

    def may_be_marked(self, name: bytes) -> bool:
        """Whether a marker next to a directory of this name can exclude it."""
        return any(row.beside for row in by_marker(os.fsdecode(name)))

    def is_marked(self, path: bytes) -> bool:
        """Whether a marker excludes the directory at `path`."""
        found = self._of_directory(path)
        return found is not None and found.needs_marker

    def is_marker(self, path: bytes) -> bool:
        """Whether the file or directory at `path` is a marker: it can exclude its own directory or a sibling directory."""
        return is_marker(os.fsdecode(os.path.basename(path)))

    def _of_directory(self, path: bytes) -> Exclusion | None:
        return self.of_entry(path, folder=True) or self.by_content(path)

    def _directories_above(self, path: bytes) -> Iterator[bytes]:
        end = path.find(b"/", self._skip)
        while end != -1:
            yield path[:end]
            end = path.find(b"/", end + 1)

    def _stated(self, path: bytes, *, folder: bool) -> bool | None:
        """Returns True if `exclude` leaves the path out, False if it includes the path explicitly, None if no pattern
        matches."""
        if self._exclude is None:
            return None
        return self._exclude.check_file(self._relative(path) + ("/" if folder else "")).include

    def _relative(self, path: bytes) -> str:
        # A glob's `**` does not cross a newline. No pattern can contain a newline, so another character can replace it for
        # matching.
        return os.fsdecode(path[self._skip :]).replace("\n", "\N{SYMBOL FOR NEWLINE}")


def _has(directory: bytes, markers: Sequence[str], names: AbstractSet[bytes] | None) -> bool:
    """Whether one of the markers is in the directory. `names` holds the directory's entries, if known."""
    exact = [os.fsencode(marker) for marker in markers if "*" not in marker]
    if names is None and any(os.path.lexists(os.path.join(directory, marker)) for marker in exact):
        return True
    if names is not None and any(marker in names for marker in exact):
        return True
    patterns = [marker for marker in markers if "*" in marker]
    if not patterns:
        return False
    try:
        listed = os.listdir(directory) if names is None else names
    except OSError:
        return False
    return marker_in(patterns, map(os.fsdecode, listed)) is not None


def _is_cache(directory: bytes, root: bytes) -> bool:
    """Whether the `CACHE_TAG` in the directory begins with the signature."""
    try:
        tag = open_file(os.path.join(directory, os.fsencode(CACHE_TAG)), root=root, follow=False)
    except OSError:
        return False
    try:
        # Reading a named pipe returns no bytes; reading a directory raises OSError.
        return os.read(tag, len(CACHE_SIGNATURE)) == CACHE_SIGNATURE
    except OSError:
        return False
    finally:
        os.close(tag)


def _compile(patterns: Sequence[str], key: str) -> GitIgnoreSpec:
    for pattern in patterns:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError as error:
            raise ValueError(
                f"{key}: {pattern!r} is not a glob; write it as in a .gitignore file, for example '*.md' or 'notes/**'."
            ) from error
    return GitIgnoreSpec.from_lines(patterns)
