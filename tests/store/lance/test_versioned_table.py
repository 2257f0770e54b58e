"""The version that a handle remembers equals Lance's, whatever changed the table."""

import lancedb
import pyarrow as pa
import pytest

from store.lance.versioned_table import VersionedTable

ROWS = pa.table({"row": [1, 2, 3]})


def changes(table, other):
    yield "nothing", lambda: None
    yield "rows added", lambda: table.add(ROWS)
    yield "rows added by another", lambda: (other.add(ROWS), table.add(ROWS))
    yield "rows deleted", lambda: table.delete("row = 2")
    yield "no row deleted", lambda: table.delete("row = 7")
    yield "merged by another", lambda: (other.checkout_latest(), other.optimize())
    yield "rows added on top of what was merged", lambda: table.add(ROWS)
    yield (
        "merged by another and looked at",
        lambda: (other.checkout_latest(), other.optimize(), table.checkout_latest()),
    )
    yield "brought back", lambda: table.restore(2)
    yield "rows added behind it", lambda: table.add(ROWS)


def test_version_is_that_of_lance(tmp_path):
    database = lancedb.connect(tmp_path)
    lance = database.create_table("rows", schema=ROWS.schema)
    noted: list[int | None] = []
    table = VersionedTable(lance, noted.append)
    appended = []
    for what, change in changes(table, database.open_table("rows")):
        change()
        appended += [lance.version] if what.startswith("rows added") else []
        assert (what, table.version) == (what, lance.version)
    assert table.version == database.open_table("rows").version
    assert table.count_rows() == len(table.to_arrow())
    assert [version for version in noted if version is not None] == appended
    assert noted.count(None) == len(("deleted", "none deleted", "looked at", "brought back"))


def test_after_a_failure_the_version_is_looked_up(tmp_path):
    lance = lancedb.connect(tmp_path).create_table("rows", schema=ROWS.schema)
    noted: list[int | None] = []
    table = VersionedTable(lance, noted.append)
    table.add(ROWS)
    with pytest.raises((RuntimeError, ValueError)):
        table.add(pa.table({"other": ["a"]}))
    with pytest.raises((RuntimeError, ValueError)):
        table.delete("nothing of this name > 3")
    assert table.version == lance.version == 2
    assert noted == [2, None, None]
