"""Scans are read by the real program: every page of one file, with its page number, version and confidence."""

import re
from shutil import which

import pytest

from bench.support.scanned_pages import encoded, scanned_pages
from consumers.omissions import OmissionKind
from consumers.parsing import Limits, parse_data
from consumers.parsing.ocr import tesseract
from consumers.parsing.programs.installed import OCR, find_programs
from consumers.splitting import SplitSettings

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(which("tesseract") is None, reason="Tesseract is not installed (Debian: tesseract-ocr)"),
]
PAGES = scanned_pages()


@pytest.fixture(scope="module")
def read():
    """The document of a scan with a page of each kind, in a TIFF file: one run of the program for each page."""
    limits = Limits(ocr="now", programs=find_programs("auto", ("eng",)), program_seconds=120)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tesseract, "NICENESS", 0)  # the suite keeps the machine busy
        found = parse_data(encoded(PAGES, "TIFF"), b"scan.tif", "file:///scan.tif", SplitSettings(min_tokens=0), limits)
        [document] = found
    return document


@pytest.mark.parametrize("kind", PAGES)
def test_almost_every_word_of_a_page_is_read_and_its_page_is_named(read, kind: str) -> None:
    number = list(PAGES).index(kind) + 1
    text = " ".join(passage.text for passage in read.passages if passage.location["page"] == number).casefold()
    found = set(re.findall(r"\w+", text))
    words = PAGES[kind].words
    assert sum(word in found for word in words) >= 0.95 * len(words), text


def test_columns_are_read_one_after_the_other(read) -> None:
    number = list(PAGES).index("two columns") + 1
    text = " ".join(passage.text for passage in read.passages if passage.location["page"] == number)
    assert "a drawer below the chart table" in " ".join(text.split())


def test_the_account_names_the_program_its_version_and_its_confidence(read) -> None:
    [entry] = [each for each in read.left_out if each.kind is OmissionKind.RECOGNISED]
    identity = find_programs("auto", ("eng",))[OCR].identity
    assert entry.count == len(PAGES) and f": {identity}, mean confidence 9" in entry.text
    assert re.fullmatch(r"Tesseract \d+\.\d+\.\d+ \(eng\)", identity)
