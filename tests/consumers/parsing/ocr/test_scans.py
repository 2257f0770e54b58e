"""Scans are read by the real program, and the account names its version and the confidence."""

import re
from functools import cache
from shutil import which

import pytest

from bench.support.scanned_pages import encoded, scanned_pages
from consumers.omissions import OmissionKind
from consumers.parsing import Limits, parse_data
from consumers.parsing.ocr import tesseract
from consumers.parsing.programs.installed import OCR, find_programs
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(which("tesseract") is None, reason="Tesseract is not installed (Debian: tesseract-ocr)"),
]
PAGES = scanned_pages()


@cache
def read(kind: str) -> ParsedDocument:
    """The document of a PDF with one page of this kind."""
    limits = Limits(ocr="now", programs=find_programs("auto", ("eng",)), program_seconds=120)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tesseract, "NICENESS", 0)  # the suite keeps the machine busy
        [document] = parse_data(encoded({kind: PAGES[kind]}, "PDF"), b"a.pdf", "file:///a.pdf", SplitSettings(), limits)
    return document


@pytest.mark.parametrize("kind", PAGES)
def test_ocr_reads_at_least_95_percent_of_the_words_of_a_page(kind: str) -> None:
    text = " ".join(passage.text for passage in read(kind).passages).casefold()
    found = set(re.findall(r"\w+", text))
    words = PAGES[kind].words
    assert sum(word in found for word in words) >= 0.95 * len(words), text
    assert {passage.location["page"] for passage in read(kind).passages} == {1}


def test_columns_are_read_one_after_the_other() -> None:
    text = " ".join(passage.text for passage in read("two columns").passages)
    assert "a drawer below the chart table" in " ".join(text.split())


def test_omissions_name_the_ocr_program_its_version_and_confidence() -> None:
    [entry] = [each for each in read("table").left_out if each.kind is OmissionKind.RECOGNISED]
    identity = find_programs("auto", ("eng",))[OCR].identity
    assert entry.count == 1 and f": {identity}, mean confidence 9" in entry.text
    assert re.fullmatch(r"Tesseract \d+\.\d+\.\d+ \(eng\)", identity)
