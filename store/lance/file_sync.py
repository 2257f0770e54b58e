"""Flushes table files to the disk, because Lance writes without fsync, and records their checksums."""

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from store.lance.checksums import Checksums
from store.lance.io_threads import at_once
from store.lance.layout import DATA, DELETIONS, TRANSACTIONS, VERSIONS, appended_files, table_folder


@dataclass(slots=True)
class _TableFiles:
    """Sync state of one table's files."""

    synced: dict[Path, set[str]] = field(default_factory=dict)
    """Names of files that are surely on the disk, by folder."""
    appended: list[int] = field(default_factory=list)
    """Versions created by appends since the last sync. Their manifests name their files."""
    changes: int = 0
    """Number of other writes. Only a listing of the folders shows their files."""
    listed: int = -1
    """Value of `changes` when the folders were last listed."""


class FileSync:
    """Tracks which files of a store's tables are surely on the disk.

    After many commits a folder contains thousands of names, and listing it would take a fifth of a commit. Most commits
    only append, and the manifests of appends name their files.
    """

    def __init__(self, store: Path, checksums: Checksums | None = None) -> None:
        """`checksums` records new files; None for tables that are never written."""
        self._store = store
        self._checksums = checksums
        self._tables: dict[str, _TableFiles] = {}
        self._lock = threading.Lock()

    def note_written(self, name: str, appended: int | None) -> None:
        """Notes a write to a table: an append that created the version `appended`, or any other write (None)."""
        with self._lock:
            table = self._tables.setdefault(name, _TableFiles())
            if appended is None:
                table.changes += 1
            else:
                table.appended.append(appended)

    def assume_synced(self, tables: Iterable[str]) -> None:
        """Marks all present files as synced. Called at opening: the last commit has synced its files."""
        for name in tables:
            found = {folder: names for folder in self._folders(name) if (names := _names(folder)) is not None}
            with self._lock:
                table = self._tables.setdefault(name, _TableFiles())
                table.synced, table.listed = found, table.changes

    def sync(self, tables: Iterable[str]) -> None:
        """Flushes every file that the tables gained since the last call, then their folders.

        All files are flushed concurrently, because the file system then writes its journal once for all of them (3 instead
        of 105 ms for the files of a commit, measured on ext4). No part of a commit counts before its last file is on the
        disk. May run concurrently with commits: Lance renames a file into place once it is complete.
        """
        begun = [_Sync(name, self._begin(name)) for name in tables]
        for each in begun:
            self._find(each)
        wanted = [path for each in begun for path in each.wanted]
        if self._checksums is not None and wanted:
            self._checksums.record(wanted)
            # Also if another call recorded them, because that call may not have flushed them yet.
            wanted.append(self._checksums.path)
        at_once(_fsync, wanted)
        # Not earlier: a concurrent call must flush the same files.
        for each in begun:
            self._end(each)

    def _begin(self, name: str) -> _TableFiles:
        with self._lock:
            now = self._tables.setdefault(name, _TableFiles())
            return _TableFiles(now.synced, list(now.appended), now.changes, now.listed)

    def _find(self, sync: "_Sync") -> None:
        known = sync.table
        if known.listed == known.changes:
            found = [appended_files(table_folder(self._store, sync.name), version) for version in known.appended]
            files = [path for each in found if each is not None for path in each]
            if None not in found and all(path.parent in known.synced for path in files):
                sync.wanted = [*files, *{path.parent for path in files}]
                return
        sync.listed = {folder: names for folder in self._folders(sync.name) if (names := _names(folder)) is not None}
        for folder, names in sync.listed.items():
            before = known.synced.get(folder, set())
            if folder not in known.synced or names - before:
                sync.wanted += [*(folder / file for file in names - before), folder]

    def _end(self, sync: "_Sync") -> None:
        done = set(sync.table.appended)
        with self._lock:
            table = self._tables[sync.name]
            table.appended = [version for version in table.appended if version not in done]
            if sync.listed is not None:
                table.synced, table.listed = sync.listed, sync.table.changes
            else:
                for path in sync.wanted:
                    if path.parent in table.synced:
                        table.synced[path.parent].add(path.name)

    def _folders(self, name: str) -> tuple[Path, ...]:
        table = table_folder(self._store, name)
        return (table / DATA, table / DELETIONS, table / TRANSACTIONS, table / VERSIONS, table)


@dataclass(slots=True)
class _Sync:
    """One table in one call of `sync`: its state at the beginning, the paths to flush, and the listing, if one was made."""

    name: str
    table: _TableFiles
    wanted: list[Path] = field(default_factory=list)
    listed: dict[Path, set[str]] | None = None


def _names(folder: Path) -> set[str] | None:
    """Returns the names in `folder`, or None if it does not exist."""
    try:
        return set(os.listdir(folder))  # noqa: PTH208  (creating Path objects takes longer than reading the names)
    except FileNotFoundError:
        return None


def _fsync(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # Lance replaced it meanwhile (a transaction file after its commit); its replacement is in the folder too.
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
