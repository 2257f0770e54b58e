"""The LanceDB tables. Each is append-only: a row is never changed, a later row with the same key takes its place.

Contents (passages, phrases, triples, extractions) are facts about a text and stay true when the text is forgotten; which
of them live follows from `documents`. So adding, editing and removing are appends, and a reader of an older version of a
table sees the memory of then. Maintenance drops what no kept version needs.
"""

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from store.lance.import_shim import lancedb
from store.lance.schema import TABLES, schemas
from store.lance.torn_writes import set_aside_newest, set_aside_torn
from store.lance.vacuum import fragments_with_deletions, listing, prune

FOREVER = timedelta(days=36_500)

SYNC_THREADS = 16
"""Files that are flushed to disk at once."""

MERGED_FRAGMENT_ROWS = 4096
"""Rows up to which new fragments are merged into one: some 20 ms, for which a commit may have to wait."""

READ_BATCH_ROWS = 8192
"""Rows that are read at a time where not all are wanted at once."""

FRAGMENT_BITS = 32
"""A row's id is its fragment's number, then its place in that."""

UNLIMITED_ROWS = 2**31 - 1
"""More rows than a table has: a search wants a limit."""

MIB = 1 << 20
INDEX_CACHE_BYTES = MIB
METADATA_CACHE_BYTES = 4 * MIB
"""Bytes. Left to itself Lance keeps what it read of every version that ever was, 8 MiB for each hundred small commits, up to
a gigabyte; what a commit needs of the last version is far less, and nothing here has a Lance index."""


@dataclass(frozen=True, slots=True)
class SmallFragments:
    """The newest fragments of a table: the rows with ids from `first` to `last`, read before the `restored`th rollback."""

    name: str
    first: int
    last: int
    rows: Any
    restored: int


class Tables:
    """Opens or creates the tables of one store and appends to them, durably."""

    def __init__(self, folder: Path, dim: int, repair: bool = True) -> None:
        """`repair`: whether what a power loss left unfinished is set aside; not where another one has the tables open."""
        self.folder = folder
        self.dim = dim
        self._schemas = schemas(dim)
        self._db = lancedb.connect(str(folder), session=lancedb.Session(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES))
        self.torn = [name for name in TABLES if repair and set_aside_torn(folder, name)]
        """Tables whose newest version a power loss had left unfinished."""
        if repair and (folder / "commits.lance").exists() and set_aside_newest(folder, "commits", self._read_log):
            self.torn.append("commits")
        self._tables = {name: self._open(name) for name in TABLES}
        self._synced: dict[Path, set[str]] = {}
        # What there is at opening was perhaps never merged.
        self._appended = dict.fromkeys(TABLES, 1)
        self._merged = dict.fromkeys(TABLES, 0)
        self._restored = 0
        self._readers = 0
        self._reading = threading.Lock()

    def _open(self, name: str) -> Any:
        if (self.folder / f"{name}.lance").exists():
            return self._db.open_table(name)
        return self._db.create_table(name, schema=self._schemas[name])

    def _read_log(self) -> None:
        self._db.open_table("commits").to_arrow()

    def append(self, name: str, columns: Mapping[str, Any]) -> None:
        """Appends rows given by column. One fragment and one version, however many rows."""
        table = pa.table(dict(columns), schema=self._schemas[name])
        if table.num_rows:
            self._tables[name].add(table)
            self._appended[name] += 1

    def columns(self, name: str) -> pa.Schema:
        """The columns that the table has on disk, which are those of an older format until it is migrated."""
        return self._tables[name].schema

    def version(self, name: str) -> int:
        return int(self._tables[name].version)

    def versions(self) -> dict[str, int]:
        """The version of every table but `commits` itself."""
        return {name: self.version(name) for name in TABLES if name != "commits"}

    def roll_back(self, name: str, version: int, commit: int, next_row: int | None = None) -> None:
        """Brings the table back to `version`, that of `commit`, as a new version on top.

        Maintenance may have taken that version's files away. What came after it is then deleted by its commit or, where
        `next_row` says what number the next row is to have, by its number. Rows of texts may also stay: they are facts.
        """
        table = self._tables[name]
        self._restored += 1
        self._merged[name] = 0
        self._appended[name] += 1
        try:
            table.restore(version)
        except (RuntimeError, ValueError):
            table.checkout_latest()
            if "commit" in self._schemas[name].names:
                table.delete(f"commit > {commit}")
            elif next_row is not None:
                table.delete(f"row >= {next_row}")

    def read(self, name: str, columns: Sequence[str] | None = None, version: int | None = None) -> pa.Table:
        """The whole table, or some of its columns, now or as of `version`."""
        table = self._tables[name]
        if version is not None:
            table = self._db.open_table(name)
            table.checkout(version)
        if columns is None:
            return table.to_arrow()
        if not table.count_rows():
            return self._nothing(name, columns)
        return table.search().select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()

    def read_where(self, name: str, columns: Sequence[str] | None, condition: str) -> pa.Table:
        """The rows for which `condition` (SQL) holds; all columns where none are named."""
        table = self._tables[name]
        wanted = list(columns or self._schemas[name].names)
        if not table.count_rows():
            return self._nothing(name, wanted)
        return table.search().where(condition).select(wanted).limit(UNLIMITED_ROWS).to_arrow()

    def _nothing(self, name: str, columns: Sequence[str]) -> pa.Table:
        # A search costs milliseconds also where there is nothing to be found, and most small stores lack something.
        return self._schemas[name].empty_table().select(list(columns))

    def batches(self, name: str, columns: Sequence[str], condition: str) -> Iterator[Any]:
        """The rows for which `condition` (SQL) holds as record batches, in no order: for what is too large to hold twice."""
        if self.rows(name):
            yield from self._tables[name].search().where(condition).select(list(columns)).to_batches(READ_BATCH_ROWS)

    def read_with_ids(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Some columns of the whole table and `_rowid`, by which `delete` names rows."""
        table = self._tables[name]
        return table.search().with_row_id(True).select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()

    def read_by_id(self, name: str, columns: Sequence[str], ids: Sequence[int]) -> pa.Table:
        """Some columns of the rows with these ids, in no order."""
        return self._tables[name].search().where(_among(ids)).select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()

    def delete(self, name: str, ids: Sequence[int]) -> None:
        """Deletes the rows with these ids, as of now: compaction gives rows other ids."""
        self._tables[name].delete(_among(ids))

    def rows(self, name: str) -> int:
        return int(self._tables[name].count_rows())

    def fragments(self, name: str) -> int:
        """How many files the table's rows lie in."""
        return int(self._tables[name].stats()["fragment_stats"]["num_fragments"])

    @property
    def appended(self) -> int:
        """The most fragments that any table has gained by appends since its last were merged."""
        return max(self._appended.values())

    def tail(self, name: str) -> SmallFragments | None:
        """The newest fragments of the table that are small enough to be merged, None where that is one or none.

        A row's id says in which fragment it lies. All before the last fragment that is large is settled: `_merged` says
        from where on this has to look. May run beside appends.
        """
        if not self._appended[name]:
            return None
        self._appended[name] = 0
        table = self._db.open_table(name)
        # The ids first, with one narrow column: at the first call they are those of the whole table.
        narrow = self._schemas[name].names[0]
        beyond = f"_rowid >= {self._merged[name]}"
        ids = (
            table.search()
            .with_row_id(True)
            .select([narrow])
            .where(beyond)
            .limit(UNLIMITED_ROWS)
            .to_arrow()["_rowid"]
            .to_numpy()
        )
        fragments, counts = np.unique(ids >> FRAGMENT_BITS, return_counts=True)
        large = np.flatnonzero(counts >= MERGED_FRAGMENT_ROWS // 2)
        if len(large):
            self._merged[name] = (int(fragments[large[-1]]) + 1) << FRAGMENT_BITS
            fragments, counts = fragments[large[-1] + 1 :], counts[large[-1] + 1 :]
        few = int((np.cumsum(counts[::-1]) <= MERGED_FRAGMENT_ROWS).sum())
        if few < 2:
            return None
        first, last = int(fragments[-few]) << FRAGMENT_BITS, int(ids.max())
        rows = table.search().where(f"_rowid >= {first} AND _rowid <= {last}").limit(UNLIMITED_ROWS).to_arrow()
        return SmallFragments(name, first, last, rows, self._restored)

    def write_merged(self, tail: SmallFragments) -> bool:
        """Writes the tail's rows as one fragment, so that the table holds them twice until `drop`; False where the table was
        brought back since the tail was read.

        No commit may come between the two; but for the log, which bears a row twice, and may have grown since.
        """
        if tail.restored != self._restored:
            return False
        rows = tail.rows
        if tail.name == "commits":
            rows = rows.take(np.unique(rows["seq"].to_numpy(), return_index=True)[1])
        self._tables[tail.name].add(rows.cast(self._schemas[tail.name]))
        return True

    def drop(self, tail: SmallFragments) -> None:
        """Deletes the tail's rows where they stood."""
        self._tables[tail.name].delete(f"_rowid >= {tail.first} AND _rowid <= {tail.last}")

    def fragments_with_deletions(self, name: str) -> list[int]:
        """The fragments that still hold rows which were deleted."""
        return fragments_with_deletions(self.folder / f"{name}.lance")

    def piece(self, name: str, fragment: int) -> tuple[pa.Table, int] | None:
        """Some of a fragment's rows with their `_rowid`, and how often tables were brought back; None where none is left."""
        restored, table = self._restored, self._db.open_table(name)
        inside = f"_rowid >= {fragment << FRAGMENT_BITS} AND _rowid < {(fragment + 1) << FRAGMENT_BITS}"
        rows = table.search().with_row_id(True).where(inside).limit(MERGED_FRAGMENT_ROWS).to_arrow()
        return (rows, restored) if rows.num_rows else None

    def move(self, name: str, rows: pa.Table, restored: int) -> bool:
        """Writes the rows of a piece anew and deletes them where they stood; False as of `write_merged`."""
        if restored != self._restored:
            return False
        self._tables[name].add(rows.drop_columns(["_rowid"]).cast(self._schemas[name]))
        self.delete(name, rows["_rowid"].to_pylist())
        return True

    def replace_rows(
        self, name: str, schema: pa.Schema, convert: Callable[[pa.RecordBatch], Mapping[str, object]]
    ) -> None:
        """Writes the whole table with other columns, as a new version: for a migration. O(table), some rows at a time.

        `convert` gives the columns of `schema` for some of the rows. Every fragment has one data file afterwards, which
        Lance's `add_columns` would not give: `store.lance.vacuum` relies on it.
        """
        old = self._tables[name]

        def converted() -> Iterator[pa.RecordBatch]:
            # A search on an empty table gives no batch with the right columns.
            if old.count_rows():
                for batch in old.search().limit(UNLIMITED_ROWS).to_batches(READ_BATCH_ROWS):
                    yield pa.record_batch(dict(convert(batch)), schema=schema)

        rows = pa.RecordBatchReader.from_batches(schema, converted())
        self._tables[name] = self._db.create_table(name, data=rows, mode="overwrite")
        self._merged[name] = 0

    def rewrite(self, name: str) -> None:
        """Merges all fragments of less than a million rows and leaves deleted rows out, as a new version that `refresh`
        shows; every older version stays.

        Commits go on meanwhile: this has a handle of its own, and Lance puts appends on top of it. O(table).
        """
        self._db.open_table(name).optimize(cleanup_older_than=FOREVER)
        self._merged[name] = 0

    def refresh(self, name: str) -> None:
        """Goes on from the newest version of the table."""
        self._tables[name].checkout_latest()

    def settled(self, name: str) -> tuple[int, dict[str, set[str]]]:
        """How many fragments the newest version has, and which files there are: while nothing is being written."""
        self.refresh(name)
        return self.fragments(name), listing(self.folder / f"{name}.lance")

    def prune(
        self, name: str, versions: Collection[int], settled: tuple[int, Mapping[str, Collection[str]]], safe_s: float
    ) -> int:
        """Deletes versions older than `safe_s` but the newest and `versions`, and the files that only they need."""
        with self._reading:
            if self._readers:
                return 0
            return prune(self.folder / f"{name}.lance", versions, *settled, safe_s)

    @contextmanager
    def pruning_paused(self) -> Iterator[None]:
        """While this lasts no version is pruned: for reads that take longer than one call."""
        with self._reading:
            self._readers += 1
        try:
            yield
        finally:
            with self._reading:
                self._readers -= 1

    def sync(self, names: Iterable[str]) -> None:
        """Flushes to disk every file that the named tables gained since the last call, then their folders.

        Lance writes without fsync; without this a commit could be acknowledged and lost with the power. All at once:
        the file system then writes its journal once for all of them (3 instead of 105 ms for the files of a commit,
        measured on ext4), and nothing of a commit counts before the last of them is on disk. May run beside commits: Lance
        gives a file its name when it is whole.
        """
        present: dict[Path, set[str]] = {}
        wanted: list[Path] = []
        for name in names:
            root = self.folder / f"{name}.lance"
            for folder in (root / "data", root / "_deletions", root / "_transactions", root / "_versions", root):
                found = _files(folder)
                known = self._synced.get(folder)
                if found is None:
                    continue
                present[folder] = found
                if known is None or found - known:
                    wanted += [*(folder / file for file in found - (known or set())), folder]
        if wanted:
            with ThreadPoolExecutor(SYNC_THREADS, thread_name_prefix="sync") as threads:
                for _ in threads.map(_fsync, wanted):
                    pass  # what one of them raises is raised here
        self._synced |= present

    def assume_synced(self) -> None:
        """At opening: what the last commit names was synced then; only what comes now has to be."""
        for name in TABLES:
            root = self.folder / f"{name}.lance"
            for folder in (root / "data", root / "_deletions", root / "_transactions", root / "_versions", root):
                if (found := _files(folder)) is not None:
                    self._synced[folder] = found


def _among(ids: Sequence[int]) -> str:
    return f"_rowid IN ({','.join(map(str, ids))})"


def _files(folder: Path) -> set[str] | None:
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if entry.is_file(follow_symlinks=False)}
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
