"""The write-ahead log: files with the rows of the commits that the tables do not contain yet.

A commit is one record: a header with a checksum, then the commit's rows as Arrow IPC record batches, by table. A commit is
durable once its record is appended and the file is flushed, which takes one flush. Each file begins with a record of the
tables' schemas, so that the file can be read without knowing its format. Once the tables contain all commits of a file
(`store.log.mark`), the file is deleted.

If a process or a computer stops, the last record may be incomplete; such a record was never acknowledged. Opening moves an
incomplete record to the folder `torn` and changes nothing else. Other damage is an error. The file `head` contains the number
of the last acknowledged commit. If the file is missing or names an earlier commit, as after a power loss, an incomplete last
record counts as never acknowledged.
"""

import os
import secrets
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from store.durable_files import durable_file, sync
from store.errors import RESTORE, StoreDamaged
from store.lance.tables import RowsByTable
from store.lance.versions import FOLDER as TORN

FOLDER = "log"
"""Name of the log's folder in the store's folder."""

SUFFIX = ".records"
"""Suffix of the log's files. A file's name consists of the number of its first commit, and its salt in hexadecimal digits."""

HEAD = "head"
"""Name of the file with the number of the last commit, in the store's folder."""

_RECORD_MAGIC = b"HPLR"
_SALT_BYTES = 8
_RECORD_HEADER = struct.Struct("<12sIQQ")
"""Header of a record: magic bytes with the file's salt, CRC-32 of the rest, commit (0: the schemas), number of bytes after the
header.

The salt is random, so copies of a record in a document's text or in a reused block of the disk do not count as records of the
file. The salt is also in the file's name, which damage of the content cannot change.
"""
_CHECKED = struct.Struct("<QQ")
_PART = struct.Struct("<HQ")
"""Header of each table: number of bytes of its name, number of bytes of its rows."""


@dataclass(frozen=True, slots=True)
class Record:
    """The rows of a commit and their number of bytes in the log."""

    commit: int
    rows: RowsByTable
    bytes: int


class Head:
    """The file `head` with the number of the last commit. If the log ends before that commit, it has lost commits.

    The file is not synced: after a power loss it may name an earlier commit, or be empty or missing. The file is overwritten in
    place. Truncating it at each commit made the file system write it on closing, which took longer than the commit.
    """

    def __init__(self, store: Path) -> None:
        """Reads the file. Raises OSError."""
        self._path = store / HEAD
        self._file: int | None = None
        self.acknowledged = 0
        """The commit that the file named at opening; 0 if the file was missing, empty or damaged."""
        with suppress(FileNotFoundError):
            written = self._path.read_bytes()
            self.acknowledged = int(written) if written.isdigit() else 0

    def write(self, commit: int) -> None:
        """Writes the number of a commit that is already on the disk. Raises OSError."""
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.pwrite(self._file, b"%020d" % commit, 0)

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


class WriteAheadLog:
    """The log of one open store. Only one thread at a time may append."""

    def __init__(
        self,
        store: Path,
        schemas: Mapping[str, pa.Schema],
        acknowledged: int,
        must_succeed: Callable[[str], AbstractContextManager[None]] = lambda _failure: nullcontext(),
    ) -> None:
        """Reads the records, and moves an incomplete record after the commit `acknowledged` to the folder `torn`. Raises
        StoreDamaged or OSError and then leaves the log unchanged.

        `must_succeed` has the contract of `WriteLock.must_succeed`.
        """
        self._store = store
        self._must_succeed = must_succeed
        self._folder = store / FOLDER
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self.schemas = schemas
        """The tables' schemas, which are written at the beginning of each file."""
        self._file: int | None = None
        self._path = self._folder
        self._begun = 0
        """Offset of the end of the file's first record, which contains the schemas."""
        self._end = 0
        self.records: Sequence[Record] = []
        """The records found at opening."""
        self.torn: list[str] = []
        """Names, relative to the store, of the files to which opening moved incomplete records."""
        paths = _paths(self._folder)
        for path in paths:
            found, end = _read(path)
            if end < path.stat().st_size:
                commit = found[-1].commit + 1 if found else int(path.name.partition("-")[0])
                problem = f"the file {path} of the log is damaged at byte {end}; {RESTORE}"
                if path != paths[-1] or _has_record_after(path, end):
                    raise StoreDamaged(problem)
                if commit <= acknowledged:
                    raise StoreDamaged(
                        f"{problem}, or, to continue without commit {commit} and later ones, delete the file {store / HEAD}"
                    )
                self._move_tail(path, end)
            self.records = [*self.records, *found]
            if not found:
                path.unlink()

    def _move_tail(self, path: Path, at: int) -> None:
        """Moves the bytes of a file from offset `at` to the folder `torn`."""
        folder = self._store / TORN
        folder.mkdir(mode=0o700, exist_ok=True)
        kept = folder / f"{path.stem}-{at}{SUFFIX}"
        with durable_file(kept) as file:
            file.write(path.read_bytes()[at:])
        sync(self._store)
        os.truncate(path, at)
        sync(path)
        self.torn.append(str(kept.relative_to(self._store)))

    def drop_torn(self, before: float) -> None:
        """Deletes the incomplete records that openings before `before` (Unix seconds) moved to the folder `torn`."""
        for path in _paths(self._store / TORN):
            with suppress(OSError):
                if path.stat().st_mtime < before:
                    path.unlink()

    def append(self, commit: int, rows: RowsByTable) -> Record:
        """Appends a commit. On return, the commit is on the disk. Raises OSError after removing a failed commit, so that the
        log is unchanged even after a power loss; raises StoreStopped if the commit could not be removed."""
        if self._file is None:
            self._begin(commit)
        assert self._file is not None
        record = _record(_magic(self._path), commit, {name: _batch(table).serialize() for name, table in rows.items()})
        try:
            _write(self._file, record, self._end)
            os.fdatasync(self._file)
        except BaseException:
            with self._must_succeed(f"commit {commit} failed, and could not be removed from {self._path}"):
                os.ftruncate(self._file, self._end)
                os.fsync(self._file)
            raise
        self._end += len(record)
        return Record(commit, rows, len(record))

    def _begin(self, commit: int) -> None:
        path = self._folder / f"{commit:020}-{secrets.token_hex(_SALT_BYTES)}{SUFFIX}"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            header = _record(_magic(path), 0, {name: schema.serialize() for name, schema in self.schemas.items()})
            _write(file, header, 0)
            sync(self._folder)
        except BaseException:
            os.close(file)
            with suppress(OSError):
                path.unlink()
            raise
        self._path, self._file, self._begun, self._end = path, file, len(header), len(header)

    def seal(self) -> list[Path]:
        """Closes the current file, so that the next commit begins a new one; returns the files before it."""
        if self._file is not None and self._end == self._begun:
            self._path.unlink()  # it contains no commit
        self.close()
        return _paths(self._folder)

    def remove(self, sealed: Sequence[Path]) -> None:
        """Deletes files whose commits are all in the tables. The next opening ignores a file that could not be deleted."""
        for path in sealed:
            with suppress(OSError):
                path.unlink()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def read_records(store: Path) -> list[Record]:
    """Returns the records of a store that this or another process has open. A flush may delete their files. Raises OSError."""
    found: list[Record] = []
    for path in _paths(store / FOLDER):
        with suppress(FileNotFoundError):
            found += _read(path)[0]
    return found


def read_commits(store: Path, first: int, last: int) -> list[RowsByTable]:
    """Returns the rows of the commits from `first` to `last`, read from the disk. Raises StoreDamaged or OSError."""
    found = {record.commit: record.rows for record in read_records(store)}
    lacking = [commit for commit in range(first, last + 1) if commit not in found]
    if lacking:
        raise StoreDamaged(f"the log {store / FOLDER} is damaged: it lacks commit {lacking[0]}; {RESTORE}")
    return [found[commit] for commit in range(first, last + 1)]


def _paths(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{SUFFIX}"))


def _batch(table: pa.Table) -> pa.RecordBatch:
    [batch] = table.combine_chunks().to_batches()
    return batch


def _magic(path: Path) -> bytes:
    """Returns the magic bytes that the records of a file begin with."""
    return _RECORD_MAGIC + bytes.fromhex(path.stem.rpartition("-")[2])


def _record(magic: bytes, commit: int, parts: Mapping[str, pa.Buffer]) -> bytes:
    content = b"".join(
        part
        for name, body in parts.items()
        for part in (_PART.pack(len(name.encode()), body.size), name.encode(), body)
    )
    return _RECORD_HEADER.pack(magic, _checksum(commit, content), commit, len(content)) + content


def _checksum(commit: int, content: bytes | memoryview) -> int:
    return zlib.crc32(content, zlib.crc32(_CHECKED.pack(commit, len(content))))


def _write(file: int, content: bytes, at: int) -> None:
    left = memoryview(content)
    while left:
        written = os.pwrite(file, left, at)
        left, at = left[written:], at + written


def _read(path: Path) -> tuple[list[Record], int]:
    """Returns the records of a file up to the first incomplete one, and the offset at which they end."""
    whole, magic = memoryview(path.read_bytes()), _magic(path)
    schemas: dict[str, pa.Schema] = {}
    found: list[Record] = []
    end = 0
    while (content := _content(whole, magic, end)) is not None:
        commit = _RECORD_HEADER.unpack_from(whole, end)[2]
        if commit:
            # A copy, because Arrow needs aligned buffers.
            batches = {
                name: pa.ipc.read_record_batch(pa.py_buffer(bytes(body)), schemas[name])
                for name, body in _parts(content)
            }
            for batch in batches.values():
                batch.validate(full=True)  # a restored backup may come from an untrusted author
            rows = {name: pa.Table.from_batches([batch]) for name, batch in batches.items()}
            found.append(Record(commit, rows, _RECORD_HEADER.size + len(content)))
        else:
            schemas = {name: pa.ipc.read_schema(pa.py_buffer(bytes(body))) for name, body in _parts(content)}
        end += _RECORD_HEADER.size + len(content)
    return found, end


def _content(whole: memoryview, magic: bytes, at: int) -> memoryview | None:
    """Returns the content of the record at offset `at`; None if there is no complete record."""
    if len(whole) < at + _RECORD_HEADER.size:
        return None
    found, checksum, commit, size = _RECORD_HEADER.unpack_from(whole, at)
    content = whole[at + _RECORD_HEADER.size : at + _RECORD_HEADER.size + size]
    complete = found == magic and len(content) == size and _checksum(commit, content) == checksum
    return content if complete else None


def _parts(content: memoryview) -> Iterator[tuple[str, memoryview]]:
    at = 0
    while at < len(content):
        name, body = _PART.unpack_from(content, at)
        at += _PART.size
        yield bytes(content[at : at + name]).decode(), content[at + name : at + name + body]
        at += name + body


def _has_record_after(path: Path, at: int) -> bool:
    """Whether a complete record follows offset `at`. If a complete record follows, the bytes before it belong to a damaged
    record that was once acknowledged."""
    whole, magic = path.read_bytes(), _magic(path)
    while (at := whole.find(magic, at + 1)) >= 0:
        if _content(memoryview(whole), magic, at) is not None:
            return True
    return False
