"""Small fragments are merged during appends, no row is lost or doubled, and appended rows are not read again."""

from pathlib import Path

import pyarrow as pa
import pytest

from store.lance.fragments import LARGE_FRAGMENT_ROWS, MERGED_FRAGMENT_ROWS, Fragments
from store.lance.schema import schemas
from store.lance.tables import Tables

DIM = 8


class Table:
    """The table `synonyms` of a store, with numbers as rows."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tables = Tables(folder, DIM)
        self.fragments = self.tables.fragments
        self.appended: list[int] = []
        self.reads = 0
        read = Fragments._read_tail

        def counted(fragments: Fragments, name: str) -> object:
            self.reads += 1
            self.meanwhile()
            return read(fragments, name)

        monkeypatch.setattr(Fragments, "_read_tail", counted)

    def meanwhile(self) -> None:
        """Called while the tail is being read."""

    def append(self, rows: int = 1) -> None:
        numbers = list(range(len(self.appended), len(self.appended) + rows))
        columns = {"a": numbers, "b": numbers, "score": [0.9] * rows, "commit": [1] * rows}
        self.tables.append("synonyms", columns)
        self.appended += numbers

    def merge(self) -> bool:
        small = self.fragments.small("synonyms")
        if small is None or not self.fragments.write_merged(small):
            return False
        self.fragments.delete_merged(small)
        return True

    @property
    def numbers(self) -> list[int]:
        return sorted(self.tables.read("synonyms", ["a"])["a"].to_pylist())

    @property
    def count(self) -> int:
        return self.fragments.count("synonyms")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    return Table(tmp_path, monkeypatch)


def test_what_was_appended_is_merged_without_being_read(table: Table) -> None:
    for _ in range(4):
        for _ in range(5):
            table.append(3)
        assert table.merge()
        assert table.count == 1
    assert table.numbers == table.appended
    assert table.reads == 1, "at opening, for what others had appended"


def test_what_lies_before_a_large_fragment_stays_as_it_is(table: Table) -> None:
    table.append()
    assert not table.merge()  # a single fragment is not merged; its rows are known from here on
    table.append(LARGE_FRAGMENT_ROWS)
    assert not table.merge()
    table.append()
    table.append()
    assert table.merge()
    assert table.count == 3
    assert table.numbers == table.appended


def test_no_more_rows_are_merged_than_a_commit_can_wait_for(table: Table) -> None:
    rows = LARGE_FRAGMENT_ROWS - 1
    for _ in range(4):
        table.append(rows)
    small = table.fragments.small("synonyms")
    assert small is not None
    assert rows * 2 == small.rows.num_rows <= MERGED_FRAGMENT_ROWS


def test_rows_that_come_while_the_tail_is_read_are_merged_too(table: Table) -> None:
    table.append()
    table.append()
    opened = table.fragments._db.open_table

    def open_table(name: str) -> object:
        handle = opened(name)
        if not table.fragments._tails[name]:
            table.append()  # after the version that is read
        return handle

    table.meanwhile = table.append  # type: ignore[method-assign]  # before it
    table.fragments._db.open_table = open_table
    assert table.merge()
    assert table.count == 1
    assert table.numbers == table.appended == [0, 1, 2, 3]


@pytest.mark.parametrize("change", ["delete", "rewrite", "another's append"])
def test_what_changed_otherwise_is_read_again(table: Table, change: str) -> None:
    for _ in range(2):
        table.append()
        table.append()
        table.merge()
    if change == "delete":
        ids = table.tables.read_with_ids("synonyms", ["a"])
        table.tables.delete("synonyms", [ids["_rowid"][ids["a"].to_pylist().index(1)].as_py()])
        table.appended.remove(1)
        table.appended.append(len(table.appended) + 1)
        columns = {"a": [4], "b": [4], "score": [0.9], "commit": [1]}
        table.tables.append("synonyms", columns)
    elif change == "rewrite":
        table.append()
        table.fragments.rewrite("synonyms")
        table.tables.refresh("synonyms")
        table.append()
    else:
        number = [len(table.appended)]
        rows = {"a": number, "b": number, "score": [0.9], "commit": [1]}
        handle = table.fragments._db.open_table("synonyms")
        handle.add(pa.table(rows, schema=schemas(DIM)["synonyms"]))
        table.tables.refresh("synonyms")
        table.appended += number
        table.append()
        assert not table.merge(), "its number is another one than was thought"
        table.append()
    assert table.merge()
    assert table.count == 1
    assert table.reads == 2
    assert table.numbers == sorted(table.appended)


def test_rows_that_were_deleted_since_are_not_written_again(table: Table) -> None:
    table.append()
    table.append()
    small = table.fragments.small("synonyms")
    assert small is not None
    ids = table.tables.read_with_ids("synonyms", ["a"])
    table.tables.delete("synonyms", ids["_rowid"].to_pylist()[:1])
    assert not table.fragments.write_merged(small)
    assert table.numbers == [1]
