"""Every failure has a code where it arises, so that no code must interpret the sentence."""

import ast
from pathlib import Path

import pytest

from consumers.failure_codes import FailureCode
from consumers.parsing import NotADocument, Unreadable, parse_data
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument, Passage
from daemon.parser_pool.child_main import document_from_json, document_to_json

ROOT = Path(__file__).resolve().parents[2]


def test_every_document_with_an_error_is_created_with_a_code() -> None:
    without = []
    for room in ("consumers", "daemon"):
        for file in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name)
                    and node.func.id in ("Document", "Read")
                ):
                    given = {keyword.arg for keyword in node.keywords}
                    if "error" in given and "code" not in given:
                        without.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert not without


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        (b"a.txt", b"", FailureCode.NO_TEXT),
        (b"a.pdf", b"%PDF-1.7 cut", FailureCode.DAMAGED),
        (b"a.zip", b"PK\x05\x06" + bytes(18), FailureCode.ARCHIVE),
        (b"a.json", b"{", FailureCode.JSON),
        (b"a.json", b"[1]", FailureCode.JSON),
        (b"a.docx", b"plain text", FailureCode.DAMAGED),
    ],
)
def test_unparsable_file_has_a_failure_code(name: bytes, data: bytes, code: FailureCode) -> None:
    [document] = parse_data(data, name, "file:///a", SplitSettings())
    assert document.error is not None
    assert document.code is code


@pytest.mark.parametrize("kind", [Unreadable, NotADocument])
def test_a_parser_cannot_give_up_without_a_code(kind: type[Unreadable | NotADocument]) -> None:
    with pytest.raises(TypeError):
        kind("damaged")  # type: ignore[call-arg]


def test_parsed_document_survives_conversion_to_json() -> None:
    passage = Passage("T", "text", {"page": 2}, (("a", "b", "c"),))
    for document in (
        ParsedDocument("u", "T", (passage, Passage("T", "more")), {"k": 1}, 2.5),
        ParsedDocument("u", error="damaged", code=FailureCode.DAMAGED),
        ParsedDocument("u", error="blank", code=FailureCode.NO_TEXT, skipped=True),
        ParsedDocument("u", deleted=True),
    ):
        assert document_from_json(document_to_json(document)) == document
