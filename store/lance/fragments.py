"""The fragments that a table's rows lie in, and moving rows from several into one.

A fragment is what one append wrote: one data file, and a list of deleted rows once there are some. A row's id says in which
fragment it lies.
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
"""Rows up to which new fragments are merged into one: some 20 ms, for which a commit may have to wait."""

LARGE_FRAGMENT_ROWS = MERGED_FRAGMENT_ROWS // 2
"""Rows from which a fragment is not merged any more until `Fragments.rewrite`, nor what lies before it."""

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


class _Tail:
    """The newest fragments of a table, while they are small: their rows by their numbers.

    So nothing is read to merge them, which would take longer than to append them did. One thread appends; another may read
    beside it.
    """

    def __init__(self, newest: int) -> None:
        """`newest`: the highest number of a fragment so far. Each append makes one more."""
        self.newest = newest
        self._rows: dict[int, pa.Table] = {}

    def append(self, rows: pa.Table) -> None:
        """The rows of one more fragment."""
        self.newest += 1
        self.put(self.newest, rows)

    def put(self, number: int, rows: pa.Table) -> None:
        held = {} if rows.num_rows >= LARGE_FRAGMENT_ROWS else {**self._rows, number: rows}
        while sum(each.num_rows for each in held.values()) > MERGED_FRAGMENT_ROWS:
            del held[min(held)]
        self._rows = held

    def drop(self, first: int, last: int) -> None:
        """The fragments from `first` to `last` are gone."""
        self._rows = {number: rows for number, rows in self._rows.items() if not first <= number <= last}

    def fragments(self) -> dict[int, pa.Table]:
        return self._rows


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
        self._tails: dict[str, _Tail | None] = dict.fromkeys(tables)
        self._came: dict[str, list[tuple[int, pa.Table]]] = {}
        """By table whose tail is being read: the versions that appends make meanwhile, and their rows."""
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
        """The table was changed otherwise than by an append."""
        with self._noting:
            self._tails[name] = None
            self._came.pop(name, None)

    def note_rollback(self, name: str) -> None:
        """Row ids that were read before mean nothing any more."""
        self._rollbacks += 1
        self._appended[name] += 1
        self.note_change(name)

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
        """The rows of the newest fragments, if those are small enough to be merged and at least two. May run beside appends."""
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
        # A fragment that `rewrite` made of older ones may have a number among those of newer ones. Then all stay as they are.
        if rows.num_rows != table.count_rows(_between(first, last)):
            self.note_change(name)
            return None
        return FragmentRows(name, first, last, rows, rollbacks)

    def _read_tail(self, name: str) -> "_Tail | None":
        """What the table's tail is by now; None where it was changed meanwhile otherwise than by appends."""
        with self._noting:
            self._came[name] = []
        table = self._db.open_table(name)
        # The last rows alone: a search for row ids would go through all of a large table.
        before = max(int(table.count_rows()) - MERGED_FRAGMENT_ROWS, 0)
        found = table.search().with_row_id(True).offset(before).limit(MERGED_FRAGMENT_ROWS).to_arrow()
        numbers = found["_rowid"].to_numpy().astype(np.int64) >> FRAGMENT_BITS
        tail = _Tail(int(numbers.max(initial=-1)))
        rows = found.drop_columns(["_rowid"]).cast(self._schemas[name])
        begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        for begin, end in pairwise([*begins, len(numbers)]):
            # The fragment of the first of these rows may begin before it.
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
        """Writes the rows as one fragment, so that the table has them twice until `delete_merged`; False where the table was
        changed since otherwise than by appends, or its newest fragment is another one than is thought.

        No commit may come between the two; but for the log, which bears a row twice, and may have grown since.
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
        """The number of the fragment that has the last row, while nobody appends."""
        table = self._tables[name]
        last = table.search().with_row_id(True).select([self._schemas[name].names[0]])
        found = last.offset(table.count_rows() - 1).limit(1).to_arrow()["_rowid"]
        return int(found[0].as_py()) >> FRAGMENT_BITS

    def delete_merged(self, small: FragmentRows) -> None:
        """Deletes the rows where they stood."""
        tail = self._tails[small.name]
        self._tables[small.name].delete(_between(small.first, small.last))
        if tail is not None:
            tail.drop(small.first >> FRAGMENT_BITS, small.last >> FRAGMENT_BITS)

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
        self.note_change(some.name)
        return True

    def rewrite(self, name: str) -> None:
        """Merges all fragments of less than a million rows and leaves deleted rows out, as a new version that `refresh` of the
        tables shows; every older version stays.

        Commits go on meanwhile: this has a handle of its own, and Lance puts appends on top of it. O(table).
        """
        self._db.open_table(name).optimize(cleanup_older_than=FOREVER)
        self.note_change(name)

    def listing(self, name: str) -> tuple[int, dict[str, set[str]]]:
        """How many fragments the table has, and which files: while nothing is being written."""
        return self.count(name), file_names(table_folder(self._store, name))


def row_id_in(ids: Collection[int]) -> str:
    """The condition (SQL) that a row has one of these ids."""
    return f"_rowid IN ({','.join(map(str, ids))})"


def row_id_between(fragment: int) -> str:
    """The condition (SQL) that a row lies in the fragment."""
    return _between(fragment << FRAGMENT_BITS, (fragment + 1 << FRAGMENT_BITS) - 1)


def _between(first: int, last: int) -> str:
    return f"_rowid >= {first} AND _rowid <= {last}"
