"""Omissions: their sentences, and that they are kept on every path of a document."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from consumers.omissions import TEXT_CHARS, Omission, OmissionKind, Omissions
from consumers.records.reader import from_message
from consumers.records.record import Record, RecordError
from consumers.records.writer import to_batch, to_message
from consumers.types import ParsedDocument, Passage, stated_metadata
from daemon.parser_pool.child_main import document_from_json, document_to_json
from daemon.pipeline.document_changes import to_store_document, unchanged
from daemon.services.documents.document_references import document_entry
from store.lance.schema.documents import from_row, to_columns
from store.reader import count_omissions

ACCOUNT = (
    Omission(OmissionKind.ATTACHMENT, 1, "1 attachment not read: drawing.dwg"),
    Omission(OmissionKind.PAGE_WITHOUT_TEXT, 2, "2 of 9 pages have no text layer"),
)
DOCUMENT = ParsedDocument("file:///a.pdf", "A", (Passage("A", "Words."),), {"format": "pdf"}, left_out=ACCOUNT)


def sentences(*reports: tuple[object, ...], **of: int) -> list[str]:
    omissions = Omissions()
    for report in reports:
        omissions.add(*report, **of)  # type: ignore[arg-type]
    return [each.text for each in omissions.done()]


def test_omissions_are_worded_as_counted_sentences() -> None:
    attachment, page, header = OmissionKind.ATTACHMENT, OmissionKind.PAGE_WITHOUT_TEXT, OmissionKind.RUNNING_HEADER
    assert sentences((attachment, "a.dwg")) == ["1 attachment not read: a.dwg"]
    assert sentences((attachment, "a.dwg"), (attachment, "b.dwg")) == ["2 attachments not read: a.dwg; b.dwg"]
    assert sentences((header, "Report"), (header, "Report"), (header, "Report", 1200)) == [
        "1,202 running headers: Report"
    ]
    assert sentences((page, "", 2), total=9) == ["2 of 9 pages have no text layer"]
    assert sentences((page, "", 1), total=9) == ["1 of 9 pages has no text layer"]
    assert sentences((page, "", 0), total=9) == []
    [long] = sentences(*((attachment, f"{number} {'x' * 50}") for number in range(100)))
    assert long.startswith("100 attachments not read: 0 x") and long.endswith(" … (5,290 characters in all)")
    assert len(long) < 1.2 * TEXT_CHARS
    [hidden] = sentences((OmissionKind.HIDDEN, "x" * 10_000))
    assert hidden == f"1 hidden part: {'x' * TEXT_CHARS} … (10,000 characters in all)"


def test_the_docs_explain_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/formats.md").read_text()
    [table] = re.findall(r"## What is left out\n.*?\n\n(\| .*?)\n\n", page, re.DOTALL)
    assert set(re.findall(r"`(\w+)`(?=.* \|.*\|$)", table, re.MULTILINE)) - {"kind"} == set(OmissionKind)


def test_omissions_are_kept_in_records_the_store_and_answers() -> None:
    assert document_from_json(document_to_json(DOCUMENT)) == DOCUMENT
    record = Record(DOCUMENT, (None,))
    assert from_message(to_message(record)).document == DOCUMENT
    stored, _ = to_store_document(DOCUMENT, "folder")
    [row] = pa.table({name: pa.array(column) for name, column in to_columns([stored], 1).items()}).to_pylist()
    assert from_row(row) == stored
    assert [each.model_dump() for each in document_entry(stored).left_out] == [
        {"kind": "attachment", "count": 1, "text": "1 attachment not read: drawing.dwg"},
        {"kind": "page_without_text", "count": 2, "text": "2 of 9 pages have no text layer"},
    ]
    assert count_omissions([stored, stored]) == {"attachment": 2, "page_without_text": 4}
    other, _ = to_store_document(ParsedDocument("file:///a.pdf", "A", DOCUMENT.passages, DOCUMENT.metadata), "folder")
    assert unchanged(stored, stored) and not unchanged(other, stored)


def test_documents_of_an_older_hippod_have_no_omissions() -> None:
    table = pa.Table.from_batches([to_batch([Record(DOCUMENT, (None,))])]).drop_columns(["left_out"])
    assert from_message(message(table)).document.left_out == ()
    plain, _ = to_store_document(ParsedDocument("u", "A", metadata={"a": 1}), "folder")
    columns = to_columns([plain], 1)
    assert columns["metadata"] == ['{"a": 1}']
    stated: dict[str, object] = {"metadata": '{"left_out": "the index"}'}
    for name in columns.keys() - stated.keys():
        column = columns[name]
        assert isinstance(column, list)
        stated[name] = column[0]
    assert from_row(stated).metadata == {"left_out": "the index"} and from_row(stated).left_out == ()


def test_metadata_of_a_document_cannot_state_omissions() -> None:
    assert stated_metadata({"left_out": [["attachment", 1, "x"]]}) == {"left_out_": [["attachment", 1, "x"]]}


def test_a_record_of_a_newer_hippod_keeps_the_sentence_of_an_unknown_kind() -> None:
    found = from_message(edited([{"kind": "hologram", "count": 3, "text": "3 holograms"}])).document
    assert found.left_out == (Omission(OmissionKind.OTHER, 3, "3 holograms"),)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {"kind": "attachment", "count": None, "text": "a"},
        {"kind": "attachment", "count": 0, "text": "a"},
        {"kind": "attachment", "count": 1, "text": ""},
        {"kind": "attachment", "count": 1, "text": "a" * (2 * TEXT_CHARS + 1)},
    ],
)
def test_record_with_invalid_omissions_is_refused(entry: object) -> None:
    with pytest.raises(RecordError, match="left_out"):
        from_message(edited([entry]))


def edited(account: list[object]) -> bytes:
    table = pa.Table.from_batches([to_batch([Record(DOCUMENT, (None,))])])
    at = table.schema.get_field_index("left_out")
    return message(table.set_column(at, "left_out", pa.array([account], table.schema.field(at).type)))


def message(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
