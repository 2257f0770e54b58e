"""Which files of a tree are followed, by globs."""

import os
from collections.abc import Sequence

from pathspec import GitIgnoreSpec

from consumers.folder.settings import DEFAULT_EXCLUDE


class GlobRules:
    """`include` and `exclude` of one folder; paths are absolute. Raises ValueError for a pattern that is none."""

    def __init__(self, root: bytes, include: Sequence[str], exclude: Sequence[str]) -> None:
        self.root = root
        self._skip = len(root.rstrip(b"/")) + 1
        self._all = "**" in include and not any(pattern.startswith("!") for pattern in include)
        self._include = _compile(include, "include")
        self._exclude = _compile((*DEFAULT_EXCLUDE, *exclude), "exclude")

    def follows(self, path: bytes) -> bool:
        """Whether the file at `path` is followed, as far as its own name and the folders above it say."""
        name = self._relative(path)
        return not self._exclude.match_file(name) and (self._all or self._include.match_file(name))

    def enters(self, path: bytes) -> bool:
        """Whether the directory at `path` is looked into."""
        return len(path) < self._skip or not self._exclude.match_file(self._relative(path) + "/")

    def _relative(self, path: bytes) -> str:
        # A glob's `**` does not cross a newline, and no pattern can hold one: any other character does for matching.
        return os.fsdecode(path[self._skip :]).replace("\n", "\N{SYMBOL FOR NEWLINE}")


def _compile(patterns: Sequence[str], key: str) -> GitIgnoreSpec:
    for pattern in patterns:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError as error:
            raise ValueError(
                f"{key}: {pattern!r} is not a glob; write it as in a .gitignore file, for example '*.md' or 'notes/**'."
            ) from error
    return GitIgnoreSpec.from_lines(patterns)
