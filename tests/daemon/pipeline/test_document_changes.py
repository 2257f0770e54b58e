"""Documents of all sources in the store's form."""

import json

import pytest

from consumers.json_documents import read_json_document, read_json_line
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument, Passage
from daemon.pipeline.document_changes import to_store_document


def from_json(title: str, text: str) -> ParsedDocument:
    return read_json_document({"title": title, "text": text}, "added:", "a", SplitSettings())


def from_line(title: str, text: str) -> ParsedDocument:
    return read_json_line(json.dumps({"title": title, "text": text}), 1, "file:///a.jsonl#", SplitSettings())


def delivered(title: str, text: str) -> ParsedDocument:
    """A document as records and imports supply it."""
    return ParsedDocument("kafka://t/a", title, (Passage(title, text),))


@pytest.mark.parametrize("read", [from_json, from_line, delivered])
def test_titles_with_a_null_character_give_each_passage_its_own_id(read) -> None:
    [first] = to_store_document(read("a\0b", "c"), "s")[1]
    [second] = to_store_document(read("a", "b\0c"), "s")[1]
    assert first.id != second.id
    assert (first.title, first.text) == ("a\ufffdb", "c")
