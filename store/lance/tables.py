"""The LanceDB tables. Each is append-only: a row is never changed, a later row with the same key takes its place.

Contents (passages, phrases, triples, extractions) are facts about a text and stay true when the text is forgotten; which
of them live follows from `documents`. So adding, editing and removing are appends, and a reader of an older version of a
table sees the memory of then. Maintenance deletes rows that nothing needs any more.
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
"""Rows that are read at a time where not all are wanted at once."""

MIB = 1 << 20
INDEX_CACHE_BYTES = MIB
METADATA_CACHE_BYTES = 4 * MIB
"""Left to itself Lance keeps what it read of every version that ever was, 8 MiB for each hundred small commits, up to a
gigabyte; what a commit needs of the last version is far less, and nothing here has a Lance index."""


class Tables:
    """Opens or creates the tables of one store and appends to them, durably."""

    def __init__(self, folder: Path, dim: int, repair: bool = True) -> None:
        """`repair`: whether to set aside what a power loss left unfinished. Not where somebody else has the tables open."""
        self.folder = folder
        self.dim = dim
        self._schemas = schemas(dim)
        self._db = lancedb.connect(str(folder), session=lancedb.Session(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES))
        self.torn = [name for name in TABLES if repair and set_aside_torn(folder, name)]
        """Tables whose newest version a power loss had left unfinished."""
        if repair and table_folder(folder, "commits").exists() and set_aside_newest(folder, "commits", self._read_log):
            self.torn.append("commits")
        self.checksums = Checksums(folder) if repair else None
        """None where somebody else has the tables open, who records them."""
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
        """Appends rows given by column. One fragment and one version, however many rows."""
        table = pa.table(dict(columns), schema=self._schemas[name])
        if table.num_rows:
            self._tables[name].add(table)
            self.fragments.note_append(name, table)

    def append_to(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """The same for several tables, side by side. Where one append fails, others may be done."""
        with self.appending(added):
            pass

    def appending(self, added: Mapping[str, Mapping[str, Any]]) -> AbstractContextManager[None]:
        """The same while the block runs, which may append to other tables. Where the block fails, appends may be done too."""
        return meanwhile(lambda name: self.append(name, added[name]), added)

    def columns(self, name: str) -> pa.Schema:
        """The columns that the table has on disk, which are those of an older format until it is migrated."""
        return self._tables[name].schema

    def version(self, name: str) -> int:
        return self._tables[name].version

    def versions(self) -> dict[str, int]:
        """The version of every table but `commits` itself."""
        return {name: self.version(name) for name in TABLES if name != "commits"}

    def roll_back(self, name: str, version: int, commit: int, next_row: int | None = None) -> None:
        """Brings the table back to `version`, that of `commit`, as a new version on top.

        Maintenance may have taken that version's files away. What came after it is then deleted by its commit or, where
        `next_row` says what number the next row is to have, by its number. Rows of texts may also stay: they are facts.
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
        """The whole table, or some of its columns, now or as of `version`."""
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
        """The rows for which `condition` (SQL) holds; all columns where none are named."""
        table = self._tables[name]
        wanted = list(columns or self._schemas[name].names)
        if not table.count_rows():
            return self._empty(name, wanted)
        return table.search().where(condition).select(wanted).limit(UNLIMITED_ROWS).to_arrow()

    def _empty(self, name: str, columns: Sequence[str]) -> pa.Table:
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
        return self._tables[name].search().where(row_id_in(ids)).select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()

    def fragment_numbers(self, name: str) -> list[int]:
        """The numbers of the fragments that have rows, in the order of the table."""
        ids = self._tables[name].search().with_row_id(True).select([]).limit(UNLIMITED_ROWS).to_arrow()["_rowid"]
        return list(dict.fromkeys((ids.to_numpy() >> FRAGMENT_BITS).tolist()))

    def delete(self, name: str, ids: Sequence[int]) -> None:
        """Deletes the rows with these ids, as of now: compaction gives rows other ids."""
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
        """Writes the whole table with other columns, as a new version: for a migration. O(table), some rows at a time.

        `convert` gives the columns of `schema` for some of the rows, `more` those of rows to add. Every fragment has one data
        file afterwards, which Lance's `add_columns` would not give: `store.lance.vacuum` relies on it.
        """
        old = self._tables[name]

        def converted() -> Iterator[pa.RecordBatch]:
            # A search on an empty table gives no batch with the right columns.
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
        """Goes on from the newest version of the table."""
        self._tables[name].checkout_latest()

    def prune(
        self, name: str, versions: Collection[int], listing: tuple[int, Mapping[str, Collection[str]]], min_age_s: float
    ) -> int:
        """Deletes versions older than `min_age_s` but the newest and `versions`, and the files that only they need.

        `listing` is that of `fragments`, made while nothing was being written. Returns how many bytes were freed.
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
        """While this lasts no version is pruned: for reads that take longer than one call."""
        with self._reading:
            self._readers += 1
        try:
            yield
        finally:
            with self._reading:
                self._readers -= 1

    def sync(self, names: Iterable[str]) -> None:
        """Flushes to disk every file that the named tables gained since the last call. May run beside commits."""
        self._file_sync.sync(names)

    def assume_synced(self) -> None:
        """At opening: what the last commit names was synced then; only what comes now has to be."""
        self._file_sync.assume_synced(TABLES)


def read_unopened(store: Path, name: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of a whole table of a store that is not opened for it. Raises OSError, RuntimeError or ValueError."""
    return lancedb.connect(store).open_table(name).search().select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()
