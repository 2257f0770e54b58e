# ruff: noqa: PTH100
# Paths are bytes here, which pathlib does not take.
"""What a followed folder is configured with, and what it says about itself."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class FolderSettings:
    """One `[[folder]]`.

    `include` and `exclude` are globs as in a .gitignore file, relative to the folder: `*.md` at any depth, `/notes/` at
    the top only, `**` for any folders; the last pattern that matches decides, `!` takes back. Upper and lower case
    differ, as they do for the file system. A file is followed if `include` matches it, and neither it nor a folder
    above it is excluded. `consumers.folder.tree.default_exclusions` is excluded too, if no pattern of `exclude` matches it:
    `!.*` follows hidden files.

    `polling` compares the tree every `poll_interval_s` seconds (more for a tree that takes long to walk): network drives
    tell of no change. `follow_symlinks` follows links out of the folder too; a directory is followed under one name.
    `settle_ms`: how long a file must be unchanged before it is read when nobody said that it is complete.
    `max_bytes`: of a larger file only the beginning is read. `name` is the events' `source`; the path where it is empty.
    `confirm_loss`: a scan that would forget more than half of the documents waits for `FolderWatcher.confirm`.
    """

    path: Path
    include: tuple[str, ...] = ("**",)
    exclude: tuple[str, ...] = ()
    settle_ms: int = 200
    polling: bool = False
    poll_interval_s: float = 2.0
    follow_symlinks: bool = False
    max_bytes: int = 64 * 1024 * 1024
    name: str = ""
    confirm_loss: bool = True

    @property
    def root(self) -> bytes:
        return os.path.abspath(os.fsencode(self.path))

    @property
    def source(self) -> str:
        return self.name or os.fspath(self.path)


StateName = Literal["starting", "scanning", "watching", "polling", "missing", "error", "stopped"]


@dataclass(frozen=True)
class FolderState:
    """How a followed folder is doing.

    `missing`: the folder is not there, or is empty where files were expected; what is known of it is kept.
    `polling` with a `detail` is a fall-back that says what to raise; else a `detail` says which drive below it is away.
    `pending` files are waiting until they settle.
    `last_scan_at` is in Unix seconds.
    """

    state: StateName
    detail: str = ""
    files: int = 0
    pending: int = 0
    watches: int = 0
    last_scan_at: float | None = None
    unconfirmed: int = 0
    """Documents that a scan did not find any more, or that a new default exclusion leaves out, and that are kept until
    somebody confirms it."""
    newly_excluded: Mapping[str, int] = field(default_factory=dict)
    """Those of them that a new default exclusion leaves out, by its reason."""
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Number of excluded files and directories, by reason. An excluded directory counts as one."""
