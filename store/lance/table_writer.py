"""A change of the tables that becomes visible and durable as a whole.

The writer has its own handles of the tables that it changes, so readers still see the previous versions. LanceDB is atomic only
per table; `store.log.mark` makes the change of all tables atomic.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from store.errors import StoreError
from store.lance.checksums import Checksums
from store.lance.io_threads import at_once
from store.lance.layout import DELETIONS, FRAGMENT_BITS, TABLE_SUFFIX, VERSIONS, manifest_name, table_folder
from store.lance.schema import TABLES, schemas
from store.lance.schema.commits import CommitRow

if TYPE_CHECKING:
    from store.lance.tables import TableView

FOREVER = timedelta(days=36_500)

MOVED_ROWS = 4096
"""Number of rows that are moved out of a fragment at a time."""


class TableWriter:
    """One change of the tables. Only one change may exist at a time."""

    def __init__(self, db: Any, before: "TableView", checksums: Checksums) -> None:
        self.before = before
        """The tables before the change."""
        self._db = db
        self._schemas = schemas(before.dim)
        self._checksums = checksums
        self.handles: dict[str, Any] = {}
        """The handles of the changed tables, by name."""
        self.commit = 0
        """The last commit that the tables contain after the change."""
        self.row: CommitRow | None = None
        """The row of the commit that the change makes; None if it makes no commit."""

    def written(self, name: str) -> Any:
        """Returns the handle through which this change writes a table. Raises StoreDamaged if the table's manifest is damaged,
        because the next version would inherit the damage with a correct checksum. Raises StoreError if the table has a newer
        version, because the rows of that version would become part of the change."""
        if name not in self.handles:
            self._checksums.check(f"{name}{TABLE_SUFFIX}/{VERSIONS}/{manifest_name(self.before.versions[name])}")
            self.handles[name] = open_version(self._db, self.before, name)
        return self.handles[name]

    @property
    def versions(self) -> dict[str, int]:
        """The version of every table after the change."""
        return {**self.before.versions, **{name: int(handle.version) for name, handle in self.handles.items()}}

    def add(self, name: str, rows: pa.Table) -> None:
        """Appends rows as one fragment."""
        if rows.num_rows:
            self.written(name).add(rows.combine_chunks())

    def add_columns(self, name: str, columns: Mapping[str, Any]) -> None:
        """Appends rows in columnar form."""
        self.add(name, pa.table(dict(columns), schema=self._schemas[name]))

    def add_commits(self, pending: Sequence[Mapping[str, pa.Table]]) -> None:
        """Appends the rows of commits that are only in the log, as one fragment per table."""
        names = sorted({name for rows in pending for name in rows})
        added = {name: pa.concat_tables([rows[name] for rows in pending if name in rows]) for name in names}
        at_once(lambda name: self.add(name, added[name]), names)

    def delete(self, name: str, ids: Collection[int]) -> None:
        """Deletes the rows with these ids. The ids must be current, because `optimize` changes row ids."""
        self.written(name).delete(row_id_in(ids))

    def optimize(self, name: str) -> None:
        """Merges fragments of less than a million rows, and removes deleted rows from fragments in which they are at least a
        tenth. Repeats the merge until nothing is left to merge. Takes O(table) time."""
        table, before = self.written(name), None
        while table.version != before:
            before = table.version
            table.optimize(cleanup_older_than=FOREVER)

    def move_rows_from(self, name: str, fragment: int) -> None:
        """Appends the living rows of a fragment to the table again, and deletes the fragment. Needed for fragments with too few
        deleted rows for `optimize`."""
        table = self.written(name)
        search = row_id_between(fragment)
        while (rows := table.search().with_row_id(True).where(search).limit(MOVED_ROWS).to_arrow()).num_rows:
            table.add(rows.drop_columns(["_rowid"]).cast(table.schema))
            table.delete(row_id_in(rows["_rowid"].to_pylist()))

    def replace_rows(
        self,
        name: str,
        schema: pa.Schema,
        convert: Callable[[pa.RecordBatch], Mapping[str, object]],
        more: Mapping[str, object] | None = None,
    ) -> None:
        """Rewrites the whole table with other columns, for a migration. Takes O(table) time; works in batches.

        `convert` returns the columns of `schema` for a batch of rows; `more` contains the columns of additional rows.
        Afterwards every fragment has one data file, whereas Lance's `add_columns` would create several.
        """

        def converted() -> Iterator[pa.RecordBatch]:
            for batch in self.before.batches(name, self.before.columns(name).names):
                yield pa.record_batch(dict(convert(batch)), schema=schema)
            if more is not None:
                yield pa.record_batch(dict(more), schema=schema)

        rows = pa.RecordBatchReader.from_batches(schema, converted())
        self.handles[name] = self._db.create_table(name, data=rows, mode="overwrite")

    def sync(self) -> None:
        """Records the checksums of the new files and flushes the files. Raises OSError."""
        self._checksums.sync(TABLES)


def open_version(db: Any, view: "TableView", name: str) -> Any:
    """Opens the newest version of a table, as Lance always does. Raises StoreError if it is not the view's version."""
    handle = db.open_table(name)
    if handle.version != view.versions[name]:
        raise StoreError(
            f"the table {name} of the store {view.folder} has version {handle.version}, which belongs to no commit; the last "
            f"commit has version {view.versions[name]}: restart hippod, which removes the newer one"
        )
    return handle


def fragments_with_deletions(store: Path, name: str) -> list[int]:
    """Returns the fragments that have files of deleted rows, including fragments of old versions that are still on the disk."""
    folder = table_folder(store, name) / DELETIONS
    # A deletion file's name is `<fragment>-<version>-<number>.arrow`.
    return sorted({int(path.name.split("-")[0]) for path in folder.iterdir()}) if folder.is_dir() else []


def row_id_in(ids: Collection[int]) -> str:
    """Returns the SQL condition that a row's id is in `ids`."""
    return f"_rowid IN ({','.join(map(str, ids))})"


def row_id_between(fragment: int) -> str:
    """Returns the SQL condition that a row is in `fragment`."""
    return f"_rowid >= {fragment << FRAGMENT_BITS} AND _rowid <= {(fragment + 1 << FRAGMENT_BITS) - 1}"
