"""The LanceDB tables. Each is append-only: a row never changes, and a later row with the same key replaces it.

Contents (passages, phrases, triples, extractions) are facts about a text and stay valid after the text is removed; the
table `documents` decides which of them are live. So adding, editing and removing documents are appends, and an older
version of a table shows the memory at that time. Maintenance deletes rows that are no longer needed.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from store.lance.checksums import Checksums
from store.lance.file_sync import FileSync
from store.lance.fragments import UNLIMITED_ROWS, Fragments, row_id_in
from store.lance.import_shim import lancedb
from store.lance.io_threads import meanwhile
from store.lance.layout import FRAGMENT_BITS, table_folder
from store.lance.schema import TABLES, schemas
from store.lance.torn_writes import set_aside_newest, set_aside_torn
from store.lance.vacuum import prune
from store.lance.versioned_table import VersionedTable

READ_BATCH_ROWS = 8192
"""Rows per batch when a table is read in batches."""

MIB = 1 << 20
INDEX_CACHE_BYTES = MIB
METADATA_CACHE_BYTES = 4 * MIB
"""By default Lance caches its reads of all versions ever: 8 MiB per hundred small commits, up to a gigabyte. A commit needs
much less of the last version, and these tables have no Lance index."""


class Tables:
    """Opens or creates the tables of one store, and appends to them durably."""

    def __init__(self, folder: Path, dim: int, repair: bool = True) -> None:
        """`repair` sets aside versions that a power loss left incomplete. Must be False if another process has the tables
        open."""
        self.folder = folder
        self.dim = dim
        self._schemas = dict(schemas(dim))
        self._db = lancedb.connect(str(folder), session=lancedb.Session(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES))
        self.torn = [name for name in TABLES if repair and set_aside_torn(folder, name)]
        """Tables whose newest version was incomplete after a power loss."""
        if repair and table_folder(folder, "commits").exists() and set_aside_newest(folder, "commits", self._read_log):
            self.torn.append("commits")
        self.checksums = Checksums(folder) if repair else None
        """None if another process has the tables open and records the checksums."""
        self._file_sync = FileSync(folder, self.checksums)
        self._tables = {name: self._open(name) for name in TABLES}
        self.fragments = Fragments(folder, self._db, self._tables, self._schemas)
        self._readers = 0
        self._reading = threading.Lock()

    def _open(self, name: str) -> VersionedTable:
        if table_folder(self.folder, name).exists():
            return self._handle(name, self._db.open_table(name))
        return self._handle(name, self._db.create_table(name, schema=self._schemas[name]))

    def _handle(self, name: str, table: Any) -> VersionedTable:
        return VersionedTable(table, partial(self._file_sync.note_written, name))

    def _read_log(self) -> None:
        self._db.open_table("commits").to_arrow()

    def append(self, name: str, columns: Mapping[str, Any]) -> None:
        """Appends rows in columnar form, as one fragment and one version."""
        table = pa.table(dict(columns), schema=self._schemas[name])
        if table.num_rows:
            self._tables[name].add(table)
            self.fragments.note_append(name, table)

    def append_to(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Appends to several tables concurrently. If one append fails, others may have succeeded."""
        with self.appending(added):
            pass

    def appending(self, added: Mapping[str, Mapping[str, Any]]) -> AbstractContextManager[None]:
        """Appends to several tables concurrently with the block, which may append to other tables. If the block fails, the
        appends may have succeeded."""
        return meanwhile(lambda name: self.append(name, added[name]), added)

    def use_dim(self, dim: int) -> None:
        """Sets the dimension of the vectors of later appends, after `replace_rows` has changed it in the tables."""
        self.dim = dim
        self._schemas.update(schemas(dim))

    def columns(self, name: str) -> pa.Schema:
        """Returns the columns of the table on disk; until a migration these are columns of an older format."""
        return self._tables[name].schema

    def version(self, name: str) -> int:
        return self._tables[name].version

    def versions(self) -> dict[str, int]:
        """Returns the version of every table except `commits`."""
        return {name: self.version(name) for name in TABLES if name != "commits"}

    def roll_back(self, name: str, version: int, commit: int, next_row: int | None = None) -> None:
        """Restores the table to `version`, which belongs to `commit`, as a new version.

        If maintenance has already deleted the files of that version, newer rows are deleted instead: by their commit, or by
        their number if `next_row` gives the number of the next row. Rows of texts may also remain, because they are facts.
        """
        table = self._tables[name]
        self.fragments.note_rollback(name)
        try:
            table.restore(version)
        except (RuntimeError, ValueError):
            table.checkout_latest()
            if "commit" in self._schemas[name].names:
                table.delete(f"commit > {commit}")
            elif next_row is not None:
                table.delete(f"row >= {next_row}")

    def read(self, name: str, columns: Sequence[str] | None = None, version: int | None = None) -> pa.Table:
        """Reads the whole table or some of its columns, in the current or the given version."""
        table = self._tables[name]
        if version is not None:
            earlier = self._db.open_table(name)
            earlier.checkout(version)
            table = self._handle(name, earlier)
        if columns is None:
            return table.to_arrow()
        if not table.count_rows():
            return self._empty(name, columns)
        return table.search().select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()

    def read_where(self, name: str, columns: Sequence[str] | None, condition: str) -> pa.Table:
        """Reads the rows for which the SQL `condition` holds; all columns if `columns` is None."""
        table = self._tables[name]
        wanted = list(columns or self._schemas[name].names)
        if not table.count_rows():
            return self._empty(name, wanted)
        return table.search().where(condition).select(wanted).limit(UNLIMITED_ROWS).to_arrow()

    def _empty(self, name: str, columns: Sequence[str]) -> pa.Table:
        # A search takes milliseconds even on an empty table, and most small stores have one.
        return self._schemas[name].empty_table().select(list(columns))

    def batches(self, name: str, columns: Sequence[str], condition: str) -> Iterator[Any]:
        """Yields the rows for which the SQL `condition` holds as record batches, in no order. For data that is too large to
        be in memory twice."""
        if self.rows(name):
            yield from self._tables[name].search().where(condition).select(list(columns)).to_batches(READ_BATCH_ROWS)

    def read_with_ids(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Reads some columns of the whole table and `_rowid`, which identifies rows for `delete`."""
        table = self._tables[name]
        return table.search().with_row_id(True).select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()

    def read_by_id(self, name: str, columns: Sequence[str], ids: Sequence[int]) -> pa.Table:
        """Reads some columns of the rows with these ids, in no order."""
        return self._tables[name].search().where(row_id_in(ids)).select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()

    def fragment_numbers(self, name: str) -> list[int]:
        """Returns the numbers of the fragments that contain rows, in the order of the table."""
        ids = self._tables[name].search().with_row_id(True).select([]).limit(UNLIMITED_ROWS).to_arrow()["_rowid"]
        return list(dict.fromkeys((ids.to_numpy() >> FRAGMENT_BITS).tolist()))

    def delete(self, name: str, ids: Sequence[int]) -> None:
        """Deletes the rows with these ids. The ids must be current, because compaction changes them."""
        self._tables[name].delete(row_id_in(ids))
        self.fragments.note_change(name)

    def rows(self, name: str) -> int:
        return self._tables[name].count_rows()

    def replace_rows(
        self,
        name: str,
        schema: pa.Schema,
        convert: Callable[[pa.RecordBatch], Mapping[str, object]],
        more: Mapping[str, object] | None = None,
    ) -> None:
        """Rewrites the whole table with other columns, as a new version, for a migration. O(table), in batches.

        `convert` returns the columns of `schema` for a batch of rows; `more` holds the columns of additional rows.
        Afterwards every fragment has one data file, on which `store.lance.vacuum` relies; Lance's `add_columns` would
        create several.
        """
        old = self._tables[name]

        def converted() -> Iterator[pa.RecordBatch]:
            # A search on an empty table returns no batch with the right columns.
            if old.count_rows():
                for batch in old.search().limit(UNLIMITED_ROWS).to_batches(READ_BATCH_ROWS):
                    yield pa.record_batch(dict(convert(batch)), schema=schema)
            if more is not None:
                yield pa.record_batch(dict(more), schema=schema)

        rows = pa.RecordBatchReader.from_batches(schema, converted())
        self._tables[name] = self._handle(name, self._db.create_table(name, data=rows, mode="overwrite"))
        self._file_sync.note_written(name, None)
        self.fragments.note_change(name)

    def refresh(self, name: str) -> None:
        """Moves the handle to the newest version of the table."""
        self._tables[name].checkout_latest()

    def prune(
        self, name: str, versions: Collection[int], listing: tuple[int, Mapping[str, Collection[str]]], min_age_s: float
    ) -> int:
        """Deletes versions older than `min_age_s` seconds, except the newest and `versions`, and the files that only they
        need.

        `listing` is the result of `fragments.listing`, taken while there was no write. Returns the number of freed bytes.
        """
        with self._reading:
            if self._readers:
                return 0
            freed = prune(table_folder(self.folder, name), versions, *listing, min_age_s)
        if freed and self.checksums is not None:
            self.checksums.drop_missing()
        return freed

    @contextmanager
    def pruning_paused(self) -> Iterator[None]:
        """Prevents pruning during the block, for reads that take more than one call."""
        with self._reading:
            self._readers += 1
        try:
            yield
        finally:
            with self._reading:
                self._readers -= 1

    def sync(self, names: Iterable[str]) -> None:
        """Flushes every file that the named tables gained since the last call. May run concurrently with commits."""
        self._file_sync.sync(names)

    def assume_synced(self) -> None:
        """Marks all present files as synced. Called at opening: the last commit has synced its files."""
        self._file_sync.assume_synced(TABLES)


def read_unopened(store: Path, name: str, columns: Sequence[str]) -> pa.Table:
    """Reads some columns of a table without opening the store. Raises OSError, RuntimeError or ValueError."""
    return lancedb.connect(store).open_table(name).search().select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()
