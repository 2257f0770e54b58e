"""Checksums of the tables' files. Lance never changes a file once it is written, so each file needs one checksum.

A change of the tables records the checksums of its new files and flushes the files (`sync`), because Lance writes without
flushing. The file `checksums` in the store's folder has one line for each file of the tables. Each line ends with its own
checksum.
"""

import os
import threading
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from store.durable_files import checksum_of, durable_file, sync
from store.errors import RESTORE, StoreDamaged
from store.lance.io_threads import at_once
from store.lance.layout import TABLE_SUFFIX, file_names, table_folder
from store.lance.schema import TABLES

NAME = "checksums"
"""Name of the file in the store's folder."""

SUFFIXES = (".lance", ".arrow", ".bin", ".txn", ".manifest")
"""Suffixes of the files that Lance never changes: rows, deleted rows (two formats), transactions, manifests."""

UNVERIFIED = b"unverified"
"""An administrator writes this content into the file to use the tables without checksums."""

REWRITE_MIN_LINES = 1_000
"""The file is rewritten once at least this many lines, and at least half of all lines, are about deleted files."""


@dataclass(frozen=True, slots=True)
class FileChecksum:
    """Size and checksum of a file. `value` is a CRC-32, or None if the correct content is unknown."""

    size: int
    value: int | None


class Checksums:
    """Checksums of one store's files, by the files' paths relative to the store. Thread-safe."""

    def __init__(self, store: Path, marked: bool) -> None:
        """Reads the file `checksums`. A new store must not have tables yet. Raises StoreDamaged or OSError.

        `marked`: whether the store has a mark (`store.log.mark`). If the store has a mark, the file has a line for every table
        file that the mark needs. A table file without an intact line gets a checksum without a value, because its correct
        content is unknown: either the line is damaged, or an interrupted change wrote the file.

        A store without a mark is new or was written by an earlier hippod. If such a store has no checksums, its table files are
        recorded without a value. In a store with checksums, the next `sync` adds a line for each table file that has none.
        """
        self._store = store
        self.path = store / NAME
        self._lock = threading.Lock()
        present = self._present(TABLES)
        content = self.path.read_bytes() if self.path.exists() else b""
        unverified = content.strip() == UNVERIFIED
        if not unverified and not content.endswith(b"\n"):  # a crash truncated the last line
            content = content[: content.rfind(b"\n") + 1]
            with suppress(FileNotFoundError):
                os.truncate(self.path, len(content))
        known, self._damaged = _parsed(content)
        self._known = {name: checksum for name, checksum in known.items() if name in present}
        self._lines = content.count(b"\n")
        unknown = {name: FileChecksum((store / name).stat().st_size, None) for name in present - self._known.keys()}
        if known:
            self._known |= unknown if marked else {}
        elif marked and not unverified:
            raise StoreDamaged(
                f"the file {self.path} is missing or has no intact line, so the tables cannot be verified; "
                f"{RESTORE}, or, to use them unverified, run `echo {UNVERIFIED.decode()} > {self.path}`"
            )
        else:
            self.path.touch(0o600)
            self._flush([store / name for name in unknown])
            with durable_file(self.path) as file:
                _write(file, unknown)
            self._known, self._lines, self._damaged = unknown, len(unknown), []

    def _present(self, tables: Iterable[str]) -> set[str]:
        found = set()
        for table in tables:
            folder = table_folder(self._store, table)
            for part, names in file_names(folder).items():
                found |= {f"{folder.name}/{part}/{name}" for name in names if name.endswith(SUFFIXES)}
        return found

    def get(self, name: str) -> FileChecksum | None:
        """Returns the checksum of a file; None if the file has no line."""
        with self._lock:
            return self._known.get(name)

    def by_table(self) -> dict[str, list[str]]:
        """Returns the names of all files by table: recorded files, and files on the disk without a record."""
        present = self._present(TABLES)
        with self._lock:
            names = sorted(self._known.keys() | present)
        return {table: [name for name in names if name.startswith(f"{table}{TABLE_SUFFIX}/")] for table in TABLES}

    def check(self, name: str) -> None:
        """Raises StoreDamaged if the file differs from its checksum, or OSError."""
        known = self.get(name)
        if known is not None and known.value is not None and checksum_of(self._store / name) != known.value:
            raise StoreDamaged(
                f"the file {self._store / name} is damaged: its checksum differs from the recorded one; {RESTORE}"
            )

    def check_all(self) -> None:
        """Raises StoreDamaged if a file differs from its checksum, or OSError. Takes O(bytes) time."""
        for name in list(self._known):
            self.check(name)

    def damaged_lines(self) -> list[int]:
        """Returns the numbers (from 1) of the lines whose own checksum is wrong. Raises OSError."""
        with self._lock:
            return _parsed(self.path.read_bytes())[1]

    def sync(self, tables: Iterable[str]) -> None:
        """Records the checksums of all new files of the tables, and flushes the files and their folders. Raises OSError.

        All files are flushed concurrently, because the file system then writes its journal once for all of them (30 files on
        ext4: 3 instead of 105 ms).
        """
        with self._lock:
            known = set(self._known)
        new = {name: self._store / name for name in self._present(tables) - known}
        if not new:
            return
        self._record(new)
        try:
            self._flush(new.values())
        except BaseException:
            self.forget(new)  # the next call flushes them again
            raise

    def flush_all(self) -> None:
        """Flushes all files of the tables. Raises OSError."""
        self._flush(self._store / name for name in self._present(TABLES))

    def _flush(self, files: Iterable[Path]) -> None:
        """Flushes files of tables, their folders, and the file `checksums`. Raises OSError."""
        files = list(files)
        folders = {folder for path in files for folder in (path.parent, path.parent.parent)}
        at_once(sync, [*files, *folders, self._store, self.path])

    def forget(self, names: Iterable[str]) -> None:
        """Drops the checksums of files that were deleted or not flushed. A later file of the same name gets a new line."""
        with self._lock:
            for name in names:
                self._known.pop(name, None)

    def _record(self, new: Mapping[str, Path]) -> None:
        found: dict[str, FileChecksum] = {}

        def read(name: str) -> None:
            with suppress(FileNotFoundError):
                found[name] = FileChecksum(new[name].stat().st_size, checksum_of(new[name]))

        at_once(read, new)
        self._append(found)

    def _append(self, found: dict[str, FileChecksum]) -> None:
        if not found:
            return
        with self._lock, self.path.open("ab", buffering=0) as file:
            end = file.tell()
            try:
                _write(file, found)
            except OSError:
                file.truncate(end)
                raise
            self._lines += len(found)
            self._known |= found

    def drop_missing(self) -> None:
        """Drops the checksums of deleted files, and damaged lines. Rewrites the file if there are enough of these lines. Takes
        O(files) time."""
        with self._lock, suppress(OSError):  # a full disk: the file keeps its lines
            present = self._present(TABLES)
            self._known = kept = {name: checksum for name, checksum in self._known.items() if name in present}
            if not self._damaged and self._lines - len(kept) < max(REWRITE_MIN_LINES, len(kept)):
                return
            with durable_file(self.path) as file:
                _write(file, kept)
            self._lines, self._damaged = len(kept), []


def _parsed(content: bytes) -> tuple[dict[str, FileChecksum], list[int]]:
    """Parses the lines. Returns the checksums by file name, and the numbers of damaged lines. If several lines name the same
    file, the last line counts."""
    known: dict[str, FileChecksum] = {}
    damaged = []
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        body, _, checksum = line.rpartition(b" ")
        if checksum != b"%08x" % zlib.crc32(body):
            damaged.append(number)
            continue
        size, value, name = body.split(b" ", 2)
        known[name.decode()] = FileChecksum(int(size), None if value == b"-" else int(value, 16))
    return known, damaged


def _write(file: IO[bytes], found: Mapping[str, FileChecksum]) -> None:
    lines = []
    for name, checksum in sorted(found.items()):
        value = "-" if checksum.value is None else f"{checksum.value:08x}"
        body = f"{checksum.size} {value} {name}".encode()
        lines.append(b"%s %08x\n" % (body, zlib.crc32(body)))
    left = memoryview(b"".join(lines))
    while left:
        left = left[file.write(left) :]
