"""A document format is declared once; detection, parsing and the docs go by its declaration."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from consumers.parsing import NotADocument
from consumers.parsing.format_detection import detect_format
from consumers.parsing.formats.document_format import DocumentFormat
from consumers.parsing.formats.registry import BY_ENDING, BY_MIME_TYPE, FORMATS, JSON_LINES

ROOT = Path(__file__).parents[3]
EACH = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)


@EACH
def test_a_format_has_a_parser_and_the_libraries_that_it_names(format: DocumentFormat) -> None:
    assert [library for library in format.libraries if find_spec(library) is None] == []
    if format.parser is not None:
        assert callable(format.load_parser())


@EACH
def test_no_two_formats_share_an_ending_or_a_mime_type(format: DocumentFormat) -> None:
    assert {BY_ENDING[ending] for ending in format.endings} == {format}
    assert {BY_MIME_TYPE[mime_type] for mime_type in format.mime_types} == {format}


@EACH
def test_format_without_a_content_sign_is_detected_by_its_endings(format: DocumentFormat) -> None:
    if not format.binary and format.text_sign is None:
        assert [detect_format(b"/a/Name." + ending.upper().encode(), b"words") for ending in format.endings] == [
            format for _ in format.endings
        ]


@EACH
def test_the_docs_list_the_format(format: DocumentFormat) -> None:
    endings = ", ".join(f"`.{ending}`" for ending in format.endings)
    row = f"| {format.title} | `{format.name}` | {endings} | {format.description} |"
    assert row in (ROOT / "docs" / "reference" / "formats.md").read_text().splitlines()


def test_the_configuration_names_the_formats_in_the_order_of_the_registry() -> None:
    titles = ", ".join(format.title for format in FORMATS)
    assert titles in " ".join((ROOT / "config.toml").read_text().replace("\n#", "\n").split())


def test_unknown_binary_content_is_no_document() -> None:
    with pytest.raises(NotADocument):
        detect_format(b"unknown.bin", b"\x7fELF\x02\x01\x01" + bytes(64))


def test_json_lines_have_no_parser() -> None:
    assert JSON_LINES.parser is None
