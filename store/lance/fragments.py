"""The fragments of a table, and moving rows from several fragments into one.

One append writes one fragment: a data file, and later a list of deleted rows. A row's id contains the number of its
fragment.
"""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from store.lance.layout import FRAGMENT_BITS, file_names, fragments_with_deletions, table_folder
from store.lance.versioned_table import VersionedTable

MERGED_FRAGMENT_ROWS = 4096
"""Maximum number of rows in a merge of new fragments. Such a merge takes about 20 ms, for which a commit may have to wait."""

LARGE_FRAGMENT_ROWS = MERGED_FRAGMENT_ROWS // 2
"""A fragment of at least this many rows, and all fragments before it, are merged only by `Fragments.rewrite`."""

UNLIMITED_ROWS = 2**31 - 1
"""A limit above the number of rows of any table, because a search requires a limit."""

FOREVER = timedelta(days=36_500)


@dataclass(frozen=True, slots=True)
class FragmentRows:
    """Rows to be rewritten, with ids from `first` to `last`. `rollbacks` is the number of rollbacks when they were read."""

    name: str
    first: int
    last: int
    rows: pa.Table
    rollbacks: int


class _Tail:
    """Rows of a table's newest small fragments, by fragment number.

    Merging them needs no read, which would take longer than the appends did. One thread appends; another may read
    concurrently.
    """

    def __init__(self, newest: int) -> None:
        """`newest` is the highest fragment number so far. Each append increments it."""
        self.newest = newest
        self._rows: dict[int, pa.Table] = {}

    def append(self, rows: pa.Table) -> None:
        """Adds the rows of the next fragment."""
        self.newest += 1
        self.put(self.newest, rows)

    def put(self, number: int, rows: pa.Table) -> None:
        held = {} if rows.num_rows >= LARGE_FRAGMENT_ROWS else {**self._rows, number: rows}
        while sum(each.num_rows for each in held.values()) > MERGED_FRAGMENT_ROWS:
            del held[min(held)]
        self._rows = held

    def drop(self, first: int, last: int) -> None:
        """Drops the fragments from `first` to `last`."""
        self._rows = {number: rows for number, rows in self._rows.items() if not first <= number <= last}

    def fragments(self) -> dict[int, pa.Table]:
        return self._rows


class Fragments:
    """The fragments of a store's tables. `tables` are the handles that commits use; changing them requires the write lock."""

    def __init__(
        self, store: Path, db: Any, tables: Mapping[str, VersionedTable], schemas: Mapping[str, pa.Schema]
    ) -> None:
        self._store = store
        self._db = db
        self._tables = tables
        self._schemas = schemas
        # Fragments that exist at opening may never have been merged.
        self._appended = dict.fromkeys(tables, 1)
        self._tails: dict[str, _Tail | None] = dict.fromkeys(tables)
        self._came: dict[str, list[tuple[int, pa.Table]]] = {}
        """By table whose tail is being read: versions and rows of concurrent appends."""
        self._noting = threading.Lock()
        self._rollbacks = 0

    def note_append(self, name: str, rows: pa.Table) -> None:
        with self._noting:
            self._appended[name] += 1
            if (tail := self._tails[name]) is not None:
                tail.append(rows)
            elif name in self._came:
                self._came[name].append((self._tables[name].version, rows))

    def note_change(self, name: str) -> None:
        """Notes a change of the table that was not an append."""
        with self._noting:
            self._tails[name] = None
            self._came.pop(name, None)

    def note_rollback(self, name: str) -> None:
        """Notes a rollback, which invalidates row ids that were read before."""
        self._rollbacks += 1
        self._appended[name] += 1
        self.note_change(name)

    @property
    def appended(self) -> int:
        """Maximum, over all tables, of the fragments appended since the last merge."""
        return max(self._appended.values())

    def count(self, name: str) -> int:
        return self._tables[name].count_fragments()

    def with_deletions(self, name: str) -> list[int]:
        """Returns the fragments whose files still contain deleted rows."""
        return fragments_with_deletions(table_folder(self._store, name))

    def small(self, name: str) -> FragmentRows | None:
        """Returns the rows of the newest fragments if at least two of them are small enough to be merged, else None. May
        run concurrently with appends."""
        if not self._appended[name]:
            return None
        self._appended[name] = 0
        rollbacks = self._rollbacks
        if (tail := self._tails[name]) is None:
            tail = self._read_tail(name)
        some = tail.fragments() if tail is not None else {}
        if len(some) < 2:
            return None
        table = self._db.open_table(name)
        first, last = min(some) << FRAGMENT_BITS, (max(some) + 1 << FRAGMENT_BITS) - 1
        rows = pa.concat_tables(some.values())
        # A fragment that `rewrite` merged from older ones may have a number between those of newer fragments. Then nothing
        # is merged.
        if rows.num_rows != table.count_rows(_between(first, last)):
            self.note_change(name)
            return None
        return FragmentRows(name, first, last, rows, rollbacks)

    def _read_tail(self, name: str) -> "_Tail | None":
        """Reads the table's tail. Returns None if a concurrent change was not an append."""
        with self._noting:
            self._came[name] = []
        table = self._db.open_table(name)
        # Only the last rows: a search by row ids would scan all of a large table.
        before = max(int(table.count_rows()) - MERGED_FRAGMENT_ROWS, 0)
        found = table.search().with_row_id(True).offset(before).limit(MERGED_FRAGMENT_ROWS).to_arrow()
        numbers = found["_rowid"].to_numpy().astype(np.int64) >> FRAGMENT_BITS
        tail = _Tail(int(numbers.max(initial=-1)))
        rows = found.drop_columns(["_rowid"]).cast(self._schemas[name])
        begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        for begin, end in pairwise([*begins, len(numbers)]):
            # The first fragment may begin before these rows.
            if begin or not before:
                tail.put(int(numbers[begin]), rows.slice(begin, end - begin))
        with self._noting:
            if (came := self._came.pop(name, None)) is None:
                return None
            for version, appended in came:
                if version > table.version:
                    tail.append(appended)
            self._tails[name] = tail
        return tail

    def write_merged(self, small: FragmentRows) -> bool:
        """Writes the rows as one fragment. The table contains them twice until `delete_merged`.

        Returns False if the table was changed since by something other than appends, or if its newest fragment is not the
        expected one. No commit may happen between this call and `delete_merged`, except in the table `commits`, which
        tolerates duplicate rows and may have grown since.
        """
        tail = self._tails[small.name]
        if small.rollbacks != self._rollbacks or tail is None:
            return False
        if tail.newest != self._newest(small.name):
            self.note_change(small.name)
            return False
        rows = small.rows
        if small.name == "commits":
            rows = rows.take(np.unique(rows["seq"].to_numpy(), return_index=True)[1])
        rows = rows.combine_chunks()
        self._tables[small.name].add(rows)
        tail.append(rows)
        return True

    def _newest(self, name: str) -> int:
        """Returns the number of the fragment with the last row. There must be no concurrent append."""
        table = self._tables[name]
        last = table.search().with_row_id(True).select([self._schemas[name].names[0]])
        found = last.offset(table.count_rows() - 1).limit(1).to_arrow()["_rowid"]
        return int(found[0].as_py()) >> FRAGMENT_BITS

    def delete_merged(self, small: FragmentRows) -> None:
        """Deletes the rows from their old fragments."""
        tail = self._tails[small.name]
        self._tables[small.name].delete(_between(small.first, small.last))
        if tail is not None:
            tail.drop(small.first >> FRAGMENT_BITS, small.last >> FRAGMENT_BITS)

    def some_rows(self, name: str, fragment: int) -> FragmentRows | None:
        """Returns up to `MERGED_FRAGMENT_ROWS` rows of a fragment with their `_rowid`, or None if it has none left."""
        rollbacks, table = self._rollbacks, self._db.open_table(name)
        first, last = fragment << FRAGMENT_BITS, (fragment + 1 << FRAGMENT_BITS) - 1
        rows = table.search().with_row_id(True).where(_between(first, last)).limit(MERGED_FRAGMENT_ROWS).to_arrow()
        return FragmentRows(name, first, last, rows, rollbacks) if rows.num_rows else None

    def move(self, some: FragmentRows) -> bool:
        """Appends the rows from `some_rows` again and deletes the old ones. Returns False after a rollback."""
        if some.rollbacks != self._rollbacks:
            return False
        table = self._tables[some.name]
        table.add(some.rows.drop_columns(["_rowid"]).cast(self._schemas[some.name]))
        table.delete(row_id_in(some.rows["_rowid"].to_pylist()))
        self.note_change(some.name)
        return True

    def rewrite(self, name: str) -> None:
        """Merges all fragments of less than a million rows and drops deleted rows, in a new version of the table.

        The table handles show this version after `refresh`; older versions are kept. Commits may run concurrently: this
        method has its own handle, and Lance rebases appends onto the new version. O(table).
        """
        self._db.open_table(name).optimize(cleanup_older_than=FOREVER)
        self.note_change(name)

    def listing(self, name: str) -> tuple[int, dict[str, set[str]]]:
        """Returns the number of fragments and the names of the files. There must be no concurrent write."""
        return self.count(name), file_names(table_folder(self._store, name))


def row_id_in(ids: Collection[int]) -> str:
    """Returns the SQL condition that a row has one of these ids."""
    return f"_rowid IN ({','.join(map(str, ids))})"


def row_id_between(fragment: int) -> str:
    """Returns the SQL condition that a row is in the fragment."""
    return _between(fragment << FRAGMENT_BITS, (fragment + 1 << FRAGMENT_BITS) - 1)


def _between(first: int, last: int) -> str:
    return f"_rowid >= {first} AND _rowid <= {last}"
