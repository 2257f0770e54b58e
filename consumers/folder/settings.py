# ruff: noqa: PTH100
# Paths are bytes here, which pathlib does not take.
"""Settings and state of a followed folder."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class FolderSettings:
    """One `[[folder]]` table of the configuration.

    `include` and `exclude` are globs as in a .gitignore file, relative to the folder: `*.md` at any depth, `/notes/` at the top
    only, `**` for any folders. The last matching pattern decides; a pattern that begins with `!` reverts an earlier pattern.
    Matching is case-sensitive. A file is followed if `include` matches it, and neither the file nor a folder above it is
    excluded. The table in `consumers.folder.tree.default_exclusions` also excludes files, unless a pattern of `exclude` matches
    them: `!.*` follows hidden files.

    `polling` compares the tree every `poll_interval_s` seconds, or less often if a walk takes long; network drives need it
    because they report no changes. `follow_symlinks` follows links, also out of the folder; a directory with several names is
    followed under one of them. `settle_ms` is how long a file must be unchanged before it is read, unless an event says that it
    is complete. Of a file larger than `max_bytes`, only the beginning is read. With `confirm_loss`, a scan that would remove
    more than half of the documents waits for `FolderWatcher.confirm`.
    """

    path: Path
    include: tuple[str, ...] = ("**",)
    exclude: tuple[str, ...] = ()
    settle_ms: int = 200
    polling: bool = False
    poll_interval_s: float = 2.0
    follow_symlinks: bool = False
    max_bytes: int = 64 * 1024 * 1024
    confirm_loss: bool = True

    @property
    def root(self) -> bytes:
        return os.path.abspath(os.fsencode(self.path))

    @property
    def source(self) -> str:
        """The `source` of the events."""
        return os.fspath(self.path)


StateName = Literal["starting", "scanning", "watching", "polling", "missing", "error", "stopped"]


@dataclass(frozen=True)
class FolderState:
    """State of a followed folder.

    State `missing`: the folder does not exist, or is empty although files were expected; its documents are kept. State
    `polling` with a `detail`: polling replaces inotify, and the detail says which limit to raise. In other states `detail`
    says which drive below the folder is unmounted or which documents wait for confirmation. `pending` is the number of
    files that have not settled. `last_scan_at` is in Unix seconds.
    """

    state: StateName
    detail: str = ""
    files: int = 0
    pending: int = 0
    watches: int = 0
    last_scan_at: float | None = None
    unconfirmed: int = 0
    """Number of documents that are kept until an operator confirms their removal: a scan did not find them, or a new
    default exclusion leaves them out."""
    newly_excluded: Mapping[str, int] = field(default_factory=dict)
    """Number of documents in `unconfirmed` that a new default exclusion leaves out, by the exclusion's reason."""
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Number of excluded files and directories, by reason. An excluded directory counts once, whatever it contains."""
