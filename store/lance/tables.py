"""The LanceDB tables, together with the rows of the commits that are only in the log. Each table is append-only: a row never
changes, and a later row with the same key replaces an earlier one.

Contents (passages, phrases, triples, extractions) are facts about a text and stay valid after the text is removed; the table
`documents` decides which contents are living. Adding, editing and removing documents are therefore appends, and the rows up to
a commit show the memory as of that commit. Maintenance deletes rows that are no longer needed.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from store.lance.checksums import Checksums
from store.lance.import_shim import lancedb
from store.lance.last_rows import last_of_each
from store.lance.layout import FRAGMENT_BITS, table_folder
from store.lance.schema import TABLES, schemas
from store.lance.table_writer import TableWriter, open_version, row_id_between, row_id_in
from store.lance.versions import drop_newer

READ_BATCH_ROWS = 8192
"""Number of rows per batch when a table is read in batches."""

CONVERTED_ROWS = 256
"""Number of rows converted to Python objects at a time: about 5 ms, during which no other thread runs."""

MIB = 1 << 20
INDEX_CACHE_BYTES = MIB
METADATA_CACHE_BYTES = 4 * MIB
"""By default Lance caches what it reads of every version: 8 MiB per hundred versions, up to a gigabyte. The index cache can be
small, because these tables have no Lance index."""

AT_ONCE = timedelta(milliseconds=1)

TAG = "mark"
"""Name of Lance's tag for the version that the mark names. The tag is set while other versions are deleted, because Lance never
deletes a tagged version."""

UNLIMITED_ROWS = 2**31 - 1
"""A limit above the number of rows of any table; every search requires a limit."""

RowsByTable = Mapping[str, pa.Table]
"""Rows by table name."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one column, as SQL for Lance (`sql`) and as an expression for rows in memory (`expression`)."""

    column: str
    operator: str
    value: int | str

    @property
    def sql(self) -> str:
        literal = str(self.value) if isinstance(self.value, int) else "'" + self.value.replace("'", "''") + "'"
        return f"{self.column} {self.operator} {literal}"

    @property
    def expression(self) -> Any:
        column = pc.field(self.column)
        return {
            ">": column > self.value,
            ">=": column >= self.value,
            "<=": column <= self.value,
            "=": column == self.value,
        }[self.operator]


def after_commit(commit: int) -> Condition:
    return Condition("commit", ">", commit)


def until_commit(commit: int) -> Condition:
    return Condition("commit", "<=", commit)


@dataclass(frozen=True, slots=True)
class _State:
    """The tables at certain versions, and the rows of later commits, oldest first."""

    handles: Mapping[str, Any]
    versions: Mapping[str, int]
    pending: tuple[RowsByTable, ...] = ()


class TableView:
    """All tables as of one commit. Later commits and maintenance do not change a view, but pruning may delete its files
    (`Tables.pruning_paused`)."""

    def __init__(self, folder: Path, dim: int, state: _State) -> None:
        self.folder = folder
        self.dim = dim
        self._schemas = schemas(dim)
        self._state = state

    def columns(self, name: str) -> pa.Schema:
        """Returns the columns of the table on the disk; before a migration, these are columns of an older format."""
        schema: pa.Schema = self._state.handles[name].schema
        return schema

    def rows(self, name: str) -> int:
        return self.flushed_rows(name) + sum(map(len, _pending(self._state, name)))

    def flushed_rows(self, name: str) -> int:
        """Returns the number of rows, excluding rows that are only in the log."""
        return int(self._state.handles[name].count_rows())

    def read(self, name: str, columns: Sequence[str] | None = None, condition: Condition | None = None) -> pa.Table:
        """Reads the rows that meet `condition`, by default all rows; all columns if `columns` is None."""
        state = self._state
        table = state.handles[name]
        wanted = list(columns or table.schema.names)
        # A search takes milliseconds even on an empty table, and most small stores have an empty table.
        parts = [pa.schema([table.schema.field(column) for column in wanted]).empty_table()]
        if table.count_rows():
            parts = [_search(table, condition).select(wanted).limit(UNLIMITED_ROWS).to_arrow()]
        parts += [_matching(rows, condition).select(wanted) for rows in _pending(state, name)]
        return pa.concat_tables([part.cast(parts[0].schema) for part in parts])

    def batches(self, name: str, columns: Sequence[str], condition: Condition | None = None) -> Iterator[Any]:
        """Yields the rows that meet `condition` as record batches, in no particular order. Used for data of which two copies
        would need too much memory."""
        state = self._state
        if state.handles[name].count_rows():
            search = _search(state.handles[name], condition).select(list(columns)).limit(UNLIMITED_ROWS)
            yield from search.to_batches(READ_BATCH_ROWS)
        for rows in _pending(state, name):
            yield from _matching(rows, condition).select(list(columns)).combine_chunks().to_batches()

    def read_with_ids(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Reads some columns of the table, and `_rowid`, which identifies rows for `TableWriter.delete`. Omits rows that are
        only in the log."""
        search = self._state.handles[name].search().with_row_id(True)
        return search.select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()

    def read_by_id(self, name: str, columns: Sequence[str], ids: Sequence[int]) -> pa.Table:
        """Reads some columns of the rows with these ids, in no particular order."""
        search = self._state.handles[name].search().where(row_id_in(ids))
        return search.select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()

    def rows_until(self, name: str, commit: int, key: str, keys: pa.Array) -> Iterator[pa.Table]:
        """Yields the last row up to `commit`, if any, for each of `keys` (values of the column `key`). Each yielded table has
        up to `CONVERTED_ROWS` rows."""
        wanted = (pc.field("commit") <= commit) & pc.field(key).isin(keys)
        pending = [rows.filter(wanted) for rows in _pending(self._state, name)]
        later = pa.concat_tables(pending) if pending else self.columns(name).empty_table()
        earlier = wanted & ~pc.field(key).isin(later[key].combine_chunks())
        flushed = last_of_each(self.read_with_ids(name, (key, "commit")).filter(earlier), key)["_rowid"].to_pylist()
        for start in range(0, len(flushed), CONVERTED_ROWS):
            yield self.read_by_id(name, self.columns(name).names, flushed[start : start + CONVERTED_ROWS])
        later = last_of_each(later, key)
        for start in range(0, later.num_rows, CONVERTED_ROWS):
            yield later.slice(start, CONVERTED_ROWS).combine_chunks()

    def fragment_numbers(self, name: str) -> list[int]:
        """Returns the numbers of the fragments that contain rows, in the order of the table."""
        ids = self.read_with_ids(name, [])["_rowid"]
        return list(dict.fromkeys((ids.to_numpy() >> FRAGMENT_BITS).tolist()))

    def read_fragment(self, name: str, columns: Sequence[str], fragment: int) -> pa.Table:
        """Reads some columns of the rows of one fragment."""
        search = self._state.handles[name].search().where(row_id_between(fragment))
        return search.select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()

    def fragment_count(self, name: str) -> int:
        return int(self._state.handles[name].stats()["fragment_stats"]["num_fragments"])

    @property
    def versions(self) -> Mapping[str, int]:
        """The version of every table; the versions do not include rows that are only in the log."""
        return self._state.versions


def _pending(state: _State, name: str) -> list[pa.Table]:
    return [rows[name] for rows in state.pending if name in rows]


def _search(table: Any, condition: Condition | None) -> Any:
    return table.search() if condition is None else table.search().where(condition.sql)


def _matching(rows: pa.Table, condition: Condition | None) -> pa.Table:
    return rows if condition is None else rows.filter(condition.expression)


class Tables(TableView):
    """The tables of one open store as of the last commit. One thread at a time may change them; reading is thread-safe."""

    def __init__(self, folder: Path, dim: int, marked: bool) -> None:
        """Opens the tables and creates missing ones. `marked`: whether the store has a mark (`store.log.mark`)."""
        self.checksums = Checksums(folder, marked)
        self._db = _connect(folder)
        handles = {}
        for name in TABLES:
            if table_folder(folder, name).exists():
                handles[name] = self._db.open_table(name)
            else:
                handles[name] = self._db.create_table(name, schema=schemas(dim)[name])
        super().__init__(folder, dim, _State(handles, _versions(handles)))
        self._readers = 0
        self._reading = threading.Lock()

    def view(self) -> TableView:
        """Returns a view as of the last commit, which later commits do not change."""
        return TableView(self.folder, self.dim, self._state)

    def add_pending(self, rows: RowsByTable) -> None:
        """Adds the rows of a commit that is only in the log."""
        self._state = replace(self._state, pending=(*self._state.pending, rows))

    @property
    def pending(self) -> Sequence[RowsByTable]:
        """The rows of the commits that are only in the log, oldest commit first."""
        return self._state.pending

    def writer(self) -> TableWriter:
        """Begins a change of the tables. `publish` makes the change visible; after an error, `undo` removes it."""
        return TableWriter(self._db, self.view(), self.checksums)

    def publish(self, writer: TableWriter, flushed: int) -> None:
        """Makes a change visible. `flushed`: number of the oldest pending commits that the change contains."""
        handles = {**self._state.handles, **writer.handles}
        self._state = _State(handles, writer.versions, self._state.pending[flushed:])

    def after(self, writer: TableWriter) -> TableView:
        """Returns the tables with an unfinished change, which must flush all pending commits."""
        return TableView(self.folder, self.dim, _State({**self._state.handles, **writer.handles}, writer.versions))

    def use_dim(self, dim: int) -> None:
        """Sets the dimension of the vectors in later commits, after a change has replaced all vectors."""
        self.dim = dim
        self._schemas = schemas(dim)

    def undo(self) -> None:
        """Removes an unfinished change from the tables. Raises OSError or StoreDamaged."""
        for name, version in self._state.versions.items():
            self.checksums.forget(drop_newer(self.folder, name, version))
        # The old connection may have cached the removed versions.
        self._db = _connect(self.folder)

    def clean(self, name: str) -> None:
        """Deletes all versions of a table except the present one, and all files that the present version does not need.

        The table's last change must have been `TableWriter.optimize`: Lance deletes versions only after it has merged
        fragments, and there must be nothing to merge. If Lance still merges fragments, it deletes nothing, and this raises
        RuntimeError. Does nothing while `pruning_paused`. The caller must prevent changes of the tables. Raises StoreError if
        the table has a newer version.
        """
        with self._reading:
            if self._readers:
                return
            table = open_version(self._db, self, name)
            if TAG in table.tags.list():  # left by a process that was killed here
                table.tags.delete(TAG)
            table.tags.create(TAG, self.versions[name])
            try:
                # No other writer exists, so files that no version needs come from unfinished changes.
                table.optimize(cleanup_older_than=AT_ONCE, delete_unverified=True)
            except Exception:
                self.undo()
                raise
            finally:
                try:
                    table.tags.delete(TAG)
                finally:  # a failed call may have deleted files, which `verify` would report
                    self.checksums.drop_missing()

    @contextmanager
    def pruning_paused(self) -> Iterator[None]:
        """Prevents pruning during the block, for reads that take several calls."""
        with self._reading:
            self._readers += 1
        try:
            yield
        finally:
            with self._reading:
                self._readers -= 1


def open_for_reading(folder: Path, dim: int, pending: Sequence[RowsByTable] = ()) -> TableView:
    """Opens the newest versions of the tables for reading, with the `pending` rows of later commits."""
    db = _connect(folder)
    handles = {name: db.open_table(name) for name in TABLES}
    return TableView(folder, dim, _State(handles, _versions(handles), tuple(pending)))


def read_unopened(store: Path, name: str, columns: Sequence[str], version: int | None = None) -> pa.Table:
    """Reads some columns of a table without opening the store, at a version or, if `version` is None, at the newest version.
    Omits rows that are only in the log. Raises OSError, RuntimeError or ValueError."""
    table = _connect(store).open_table(name)
    if version is not None:
        table.checkout(version)
    return table.search().select(list(columns)).limit(UNLIMITED_ROWS).to_arrow()


def _connect(folder: Path) -> Any:
    return lancedb.connect(str(folder), session=lancedb.Session(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES))


def _versions(handles: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(handle.version) for name, handle in handles.items()}
