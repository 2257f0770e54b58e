"""Verifying damaged tables reports the damage and does not raise an exception."""

import pyarrow as pa
import pytest

from store.verify.verify import verify
from tests.store.small_store import complete, numbered_documents, open_store


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store") as opened:
        opened.commit(complete(opened, numbered_documents(0, 8), []))
        yield opened


@pytest.mark.parametrize("table", ["phrases", "triples"])
def test_verify_reports_duplicate_rows_of_a_table(store, table):
    rows = store._tables.read(table)
    with store._commits.changing() as writer:
        writer.add(table, rows.slice(rows.num_rows // 2, 2))
    assert f"the table {table} contains a row twice" in verify(store).problems


def test_verify_reports_a_row_number_used_by_two_texts(store):
    rows = store._tables.read("phrases")
    some = rows.slice(rows.num_rows - 2, 2)
    others = pa.array(["another text", "and one more"], rows.schema.field("text").type)
    column = rows.schema.get_field_index("text")
    twice = some.set_column(column, rows.schema.field("text"), others)
    with store._commits.changing() as writer:
        writer.add("phrases", twice)
    assert "the table phrases contains a row twice" in verify(store).problems
