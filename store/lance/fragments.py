"""The fragments that a table's rows lie in, and moving rows from several into one.

A fragment is what one append wrote: one data file, and a list of deleted rows once there are some. A row's id says in which
fragment it lies.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from store.lance.layout import FRAGMENT_BITS, file_names, fragments_with_deletions, table_folder
from store.lance.versioned_table import VersionedTable

MERGED_FRAGMENT_ROWS = 4096
"""Rows up to which new fragments are merged into one: some 20 ms, for which a commit may have to wait."""

UNLIMITED_ROWS = 2**31 - 1
"""More rows than a table has: a search wants a limit."""

FOREVER = timedelta(days=36_500)


@dataclass(frozen=True, slots=True)
class FragmentRows:
    """Rows that are to be written anew: those with ids from `first` to `last`, read after so many `rollbacks`."""

    name: str
    first: int
    last: int
    rows: pa.Table
    rollbacks: int


class Fragments:
    """The fragments of a store's tables. `tables` are the handles that commits use: what changes them needs the write lock."""

    def __init__(
        self, store: Path, db: Any, tables: Mapping[str, VersionedTable], schemas: Mapping[str, pa.Schema]
    ) -> None:
        self._store = store
        self._db = db
        self._tables = tables
        self._schemas = schemas
        # What there is at opening was perhaps never merged.
        self._appended = dict.fromkeys(tables, 1)
        self._merged_up_to = dict.fromkeys(tables, 0)
        self._rollbacks = 0

    def note_append(self, name: str) -> None:
        self._appended[name] += 1

    def note_rollback(self, name: str) -> None:
        """Row ids that were read before mean nothing any more."""
        self._rollbacks += 1
        self._merged_up_to[name] = 0
        self._appended[name] += 1

    def note_rewrite(self, name: str) -> None:
        """Rows have other ids now."""
        self._merged_up_to[name] = 0

    @property
    def appended(self) -> int:
        """The most fragments that any table has gained by appends since its last were merged."""
        return max(self._appended.values())

    def count(self, name: str) -> int:
        return self._tables[name].count_fragments()

    def with_deletions(self, name: str) -> list[int]:
        """The fragments that still have rows in their files which were deleted."""
        return fragments_with_deletions(table_folder(self._store, name))

    def small(self, name: str) -> FragmentRows | None:
        """The rows of the newest fragments, if those are small enough to be merged and at least two. May run beside appends.

        What lies before the last large fragment is never looked at again (`_merged_up_to`).
        """
        if not self._appended[name]:
            return None
        self._appended[name] = 0
        table = self._db.open_table(name)
        # The ids first, with one narrow column: at the first call they are those of the whole table.
        narrow = self._schemas[name].names[0]
        beyond = f"_rowid >= {self._merged_up_to[name]}"
        found = table.search().with_row_id(True).select([narrow]).where(beyond).limit(UNLIMITED_ROWS).to_arrow()
        ids = found["_rowid"].to_numpy()
        fragments, counts = np.unique(ids >> FRAGMENT_BITS, return_counts=True)
        large = np.flatnonzero(counts >= MERGED_FRAGMENT_ROWS // 2)
        if len(large):
            self._merged_up_to[name] = (int(fragments[large[-1]]) + 1) << FRAGMENT_BITS
            fragments, counts = fragments[large[-1] + 1 :], counts[large[-1] + 1 :]
        few = int((np.cumsum(counts[::-1]) <= MERGED_FRAGMENT_ROWS).sum())
        if few < 2:
            return None
        first, last = int(fragments[-few]) << FRAGMENT_BITS, int(ids.max())
        rows = table.search().where(_between(first, last)).limit(UNLIMITED_ROWS).to_arrow()
        return FragmentRows(name, first, last, rows, self._rollbacks)

    def write_merged(self, small: FragmentRows) -> bool:
        """Writes the rows as one fragment, so that the table has them twice until `delete_merged`; False after a rollback.

        No commit may come between the two; but for the log, which bears a row twice, and may have grown since.
        """
        if small.rollbacks != self._rollbacks:
            return False
        rows = small.rows
        if small.name == "commits":
            rows = rows.take(np.unique(rows["seq"].to_numpy(), return_index=True)[1])
        self._tables[small.name].add(rows.cast(self._schemas[small.name]))
        return True

    def delete_merged(self, small: FragmentRows) -> None:
        """Deletes the rows where they stood."""
        self._tables[small.name].delete(_between(small.first, small.last))

    def some_rows(self, name: str, fragment: int) -> FragmentRows | None:
        """Some of a fragment's rows with their `_rowid`; None where none is left."""
        rollbacks, table = self._rollbacks, self._db.open_table(name)
        first, last = fragment << FRAGMENT_BITS, (fragment + 1 << FRAGMENT_BITS) - 1
        rows = table.search().with_row_id(True).where(_between(first, last)).limit(MERGED_FRAGMENT_ROWS).to_arrow()
        return FragmentRows(name, first, last, rows, rollbacks) if rows.num_rows else None

    def move(self, some: FragmentRows) -> bool:
        """Writes what `some_rows` gave anew and deletes it where it stood; False after a rollback."""
        if some.rollbacks != self._rollbacks:
            return False
        table = self._tables[some.name]
        table.add(some.rows.drop_columns(["_rowid"]).cast(self._schemas[some.name]))
        table.delete(row_id_in(some.rows["_rowid"].to_pylist()))
        return True

    def rewrite(self, name: str) -> None:
        """Merges all fragments of less than a million rows and leaves deleted rows out, as a new version that `refresh` of the
        tables shows; every older version stays.

        Commits go on meanwhile: this has a handle of its own, and Lance puts appends on top of it. O(table).
        """
        self._db.open_table(name).optimize(cleanup_older_than=FOREVER)
        self.note_rewrite(name)

    def listing(self, name: str) -> tuple[int, dict[str, set[str]]]:
        """How many fragments the table has, and which files: while nothing is being written."""
        return self.count(name), file_names(table_folder(self._store, name))


def row_id_in(ids: Collection[int]) -> str:
    """The condition (SQL) that a row has one of these ids."""
    return f"_rowid IN ({','.join(map(str, ids))})"


def _between(first: int, last: int) -> str:
    return f"_rowid >= {first} AND _rowid <= {last}"
