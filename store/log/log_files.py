"""The write-ahead log: files with the rows of the commits that the tables do not contain yet.

A commit is one record: a head with a checksum, then the commit's rows as Arrow IPC record batches, by table. Appending a record
and flushing the file once makes a commit durable. Each file begins with a record of the tables' schemas, so it can be read
without knowing its format. Once the tables contain all commits of a file (`store.log.mark`), it is deleted.

A power loss can leave the last record incomplete, which was never acknowledged. Opening truncates it and changes nothing else.
"""

import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from store.durable_files import sync
from store.errors import StoreDamaged

FOLDER = "log"
"""Folder in the store's folder."""

SUFFIX = ".records"
"""Suffix of the files. A file's name is the number of its first commit."""

_RECORD_MARK = b"HPLR"
_HEAD = struct.Struct("<4sIQQ")
"""Mark, CRC-32 of the rest of the record, commit (0: the schemas), number of bytes after the head."""
_CHECKED = struct.Struct("<QQ")
_PART = struct.Struct("<HQ")
"""Before each table's name and rows: their numbers of bytes."""

Rows = Mapping[str, pa.Table]
"""Rows by table."""


@dataclass(frozen=True, slots=True)
class Record:
    """The rows of a commit, and the number of bytes that they have in the log."""

    commit: int
    rows: Rows
    bytes: int


class LogFiles:
    """The log of one open store. One thread appends at a time."""

    def __init__(self, store: Path, schemas: Mapping[str, pa.Schema]) -> None:
        """Reads the records, and truncates an incomplete last one. Raises StoreDamaged or OSError."""
        self._folder = store / FOLDER
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self.schemas = schemas
        """Written at the beginning of each file."""
        self._file: int | None = None
        self._path = self._folder
        self._begun = 0
        """Where the file's first record ends, which holds no commit."""
        self._end = 0
        self._broken: OSError | None = None
        self.records: Sequence[Record] = []
        """The records found at opening."""
        paths = _paths(self._folder)
        for path in paths:
            found, end = _read(path)
            if end < path.stat().st_size:
                if path != paths[-1] or _has_record_after(path, end):
                    raise StoreDamaged(
                        f"the file {path} of the log is damaged at byte {end}; restore a backup (`hippod --restore`)"
                    )
                os.truncate(path, end)
                sync(path)
            self.records = [*self.records, *found]
            if not found:
                path.unlink()

    def append(self, commit: int, rows: Rows) -> Record:
        """Appends a commit. On return it is on the disk. Raises OSError; the log is then as before."""
        if self._broken is not None:
            raise OSError(self._broken.errno, f"the log cannot be written since: {self._broken.strerror}")
        record = _record(commit, {name: _batch(table).serialize() for name, table in rows.items()})
        if self._file is None:
            self._begin(commit)
        assert self._file is not None
        try:
            _write(self._file, record, self._end)
            os.fdatasync(self._file)
        except BaseException:
            self._truncate()
            raise
        self._end += len(record)
        return Record(commit, rows, len(record))

    def _begin(self, commit: int) -> None:
        path = self._folder / f"{commit:020}{SUFFIX}"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            head = _record(0, {name: schema.serialize() for name, schema in self.schemas.items()})
            _write(file, head, 0)
            sync(self._folder)
        except BaseException:
            os.close(file)
            with suppress(OSError):
                path.unlink()
            raise
        self._path, self._file, self._begun, self._end = path, file, len(head), len(head)

    def _truncate(self) -> None:
        """Removes an unacknowledged record. If that fails, the log takes no more records: a later one would lie after it."""
        assert self._file is not None
        try:
            os.ftruncate(self._file, self._end)
        except OSError as error:
            self._broken = error

    def seal(self) -> list[Path]:
        """Makes the next commit begin a file; returns the files so far."""
        if self._file is not None and self._end == self._begun:
            self._path.unlink()  # the next file may have the same name
        self.close()
        return _paths(self._folder)

    def remove(self, sealed: Sequence[Path]) -> None:
        """Deletes files of which the tables contain all commits. A file that stays is ignored at the next opening."""
        for path in sealed:
            with suppress(OSError):
                path.unlink()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_records(store: Path) -> list[Record]:
    """Returns the records of a store that is open in this or another process. Raises OSError."""
    return [record for path in _paths(store / FOLDER) for record in _read(path)[0]]


def read_commits(store: Path, first: int, last: int) -> list[Rows]:
    """Returns the rows of the commits from `first` to `last` as the disk has them. Raises StoreDamaged or OSError."""
    found = {record.commit: record.rows for record in read_records(store)}
    lacking = [commit for commit in range(first, last + 1) if commit not in found]
    if lacking:
        raise StoreDamaged(
            f"the log {store / FOLDER} is damaged: it lacks commit {lacking[0]}; restore a backup (`hippod --restore`)"
        )
    return [found[commit] for commit in range(first, last + 1)]


def _paths(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{SUFFIX}"))


def _batch(table: pa.Table) -> pa.RecordBatch:
    [batch] = table.combine_chunks().to_batches()
    return batch


def _record(commit: int, parts: Mapping[str, pa.Buffer]) -> bytes:
    content = b"".join(
        part
        for name, body in parts.items()
        for part in (_PART.pack(len(name.encode()), body.size), name.encode(), body)
    )
    return _HEAD.pack(_RECORD_MARK, _checksum(commit, content), commit, len(content)) + content


def _checksum(commit: int, content: bytes | memoryview) -> int:
    return zlib.crc32(content, zlib.crc32(_CHECKED.pack(commit, len(content))))


def _write(file: int, content: bytes, at: int) -> None:
    left = memoryview(content)
    while left:
        written = os.pwrite(file, left, at)
        left, at = left[written:], at + written


def _read(path: Path) -> tuple[list[Record], int]:
    """Returns the records of a file up to the first incomplete one, and where they end."""
    whole = memoryview(path.read_bytes())
    schemas: dict[str, pa.Schema] = {}
    found: list[Record] = []
    end = 0
    while (content := _content(whole, end)) is not None:
        commit = _HEAD.unpack_from(whole, end)[2]
        if commit:
            # A copy, because Arrow needs aligned buffers.
            batches = {
                name: pa.ipc.read_record_batch(pa.py_buffer(bytes(body)), schemas[name])
                for name, body in _parts(content)
            }
            rows = {name: pa.Table.from_batches([batch]) for name, batch in batches.items()}
            found.append(Record(commit, rows, _HEAD.size + len(content)))
        else:
            schemas = {name: pa.ipc.read_schema(pa.py_buffer(bytes(body))) for name, body in _parts(content)}
        end += _HEAD.size + len(content)
    return found, end


def _content(whole: memoryview, at: int) -> memoryview | None:
    """Returns the content of the record at a position, or None if there is no complete one."""
    if len(whole) < at + _HEAD.size:
        return None
    mark, checksum, commit, size = _HEAD.unpack_from(whole, at)
    content = whole[at + _HEAD.size : at + _HEAD.size + size]
    complete = mark == _RECORD_MARK and len(content) == size and _checksum(commit, content) == checksum
    return content if complete else None


def _parts(content: memoryview) -> Iterator[tuple[str, memoryview]]:
    at = 0
    while at < len(content):
        name, body = _PART.unpack_from(content, at)
        at += _PART.size
        yield bytes(content[at : at + name]).decode(), content[at + name : at + name + body]
        at += name + body


def _has_record_after(path: Path, at: int) -> bool:
    """Whether a complete record follows: then what precedes it was once acknowledged, and is damaged."""
    whole = path.read_bytes()
    while (at := whole.find(_RECORD_MARK, at + 1)) >= 0:
        if _content(memoryview(whole), at) is not None:
            return True
    return False
