"""Flushes the files of tables to the disk, as Lance writes without fsync, and has their checksums recorded."""

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
    """What is known of one table's files."""

    synced: dict[Path, set[str]] = field(default_factory=dict)
    """Names by folder that are on the disk for sure."""
    appended: list[int] = field(default_factory=list)
    """Versions that appends have made since. Which files they wrote their manifests tell."""
    changes: int = 0
    """How often something else was written, of which only a listing tells the files."""
    listed: int = -1
    """How often it had been when the folders were last listed."""


class FileSync:
    """Knows which files of a store's tables are on the disk for sure.

    Where many commits come a folder has thousands of names, and to find those of a commit's files among them would take a fifth
    of the commit. Appends are all that most commits do, and their manifests name the files.
    """

    def __init__(self, store: Path, checksums: Checksums | None = None) -> None:
        """`checksums`: where new files are recorded; None for tables that nothing writes to."""
        self._store = store
        self._checksums = checksums
        self._tables: dict[str, _TableFiles] = {}
        self._lock = threading.Lock()

    def note_written(self, name: str, appended: int | None) -> None:
        """A table was written to: by an append that made the version `appended`, or otherwise."""
        with self._lock:
            table = self._tables.setdefault(name, _TableFiles())
            if appended is None:
                table.changes += 1
            else:
                table.appended.append(appended)

    def assume_synced(self, tables: Iterable[str]) -> None:
        """At opening: what the last commit names was synced then; only what comes now has to be."""
        for name in tables:
            found = {folder: names for folder in self._folders(name) if (names := _names(folder)) is not None}
            with self._lock:
                table = self._tables.setdefault(name, _TableFiles())
                table.synced, table.listed = found, table.changes

    def sync(self, tables: Iterable[str]) -> None:
        """Flushes every file that the tables gained since the last call, then their folders.

        All at once: the file system then writes its journal once for all of them (3 instead of 105 ms for the files of a
        commit, measured on ext4), and nothing of a commit counts before the last of them is on disk. May run beside commits:
        Lance gives a file its name when it is whole.
        """
        begun = [_Sync(name, self._begin(name)) for name in tables]
        for each in begun:
            self._find(each)
        wanted = [path for each in begun for path in each.wanted]
        if self._checksums is not None and wanted:
            self._checksums.record(wanted)
            # Also where another call recorded them, which may not have flushed them yet.
            wanted.append(self._checksums.path)
        at_once(_fsync, wanted)
        # Not before: whoever calls meanwhile has to flush the same.
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
    """One table of one call: as it was known when the call came, what is to be flushed, and what was listed, if it was."""

    name: str
    table: _TableFiles
    wanted: list[Path] = field(default_factory=list)
    listed: dict[Path, set[str]] | None = None


def _names(folder: Path) -> set[str] | None:
    """What lies in `folder`; None where there is no such folder."""
    try:
        return set(os.listdir(folder))  # noqa: PTH208  (a Path for each takes longer than to read their names)
    except FileNotFoundError:
        return None


def _fsync(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # Lance replaced it meanwhile (a transaction file after its commit); its successor is in the folder too.
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
