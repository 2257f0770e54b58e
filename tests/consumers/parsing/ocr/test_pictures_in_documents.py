"""Pictures in documents: which are read, where their text stands, and what the account says. Tesseract is replaced."""

from collections.abc import Callable
from io import BytesIO

import pytest
from docx import Document
from PIL import Image
from pptx import Presentation

from bench.support.scanned_pages import encoded, scanned_pages
from consumers.parsing import Limits, parse_data
from consumers.parsing.ocr import recognition
from consumers.parsing.ocr.recognition import TextRecognition
from consumers.parsing.ocr.tesseract import Paragraph
from consumers.parsing.programs.installed import OCR, Program
from consumers.parsing.programs.run import ProgramFailed
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

NOW = Limits(ocr="now", programs={OCR: Program("/nowhere", "Tesseract 5.9 (eng)", ("eng",))})
LATER = Limits(ocr="later", programs=NOW.programs)


def png(width: int = 400, height: int = 300, shade: int = 200) -> bytes:
    out = BytesIO()
    Image.new("L", (width, height), shade).save(out, "PNG")
    return out.getvalue()


def word(*pictures: bytes, text: str = "The lamp of the quay.") -> bytes:
    document, out = Document(), BytesIO()
    if text:
        document.add_paragraph(text)
    for picture in pictures:
        document.add_picture(BytesIO(picture))
    for shape in document.element.iter("{*}docPr", "{*}cNvPr"):
        shape.attrib.pop("descr", None)
        shape.attrib.pop("title", None)
    document.save(out)
    return out.getvalue()


def slides(*pictures: bytes) -> bytes:
    show, out = Presentation(), BytesIO()
    for number, picture in enumerate(pictures, 1):
        slide = show.slides.add_slide(show.slide_layouts[5])
        slide.shapes.title.text = f"Lamp {number}"
        slide.shapes.add_picture(BytesIO(picture), 0, 0)
    show.save(out)
    return out.getvalue()


PARAGRAPHS = [Paragraph("Words in a picture", 91.0), Paragraph("~~ |", 12.0)]


@pytest.fixture
def recognised(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The pictures that were given to OCR, which reads the same text in each."""
    given: list[bytes] = []

    def recognise(image: bytes, _limits: Limits, _waiting: Callable[[], None]) -> list[Paragraph]:
        given.append(image)
        return PARAGRAPHS

    monkeypatch.setattr(recognition, "recognise", recognise)
    return given


def read(name: str, data: bytes, limits: Limits = NOW) -> ParsedDocument:
    [document] = parse_data(data, name.encode(), f"file:///{name}", SplitSettings(min_tokens=0), limits)
    return document


def account(document: ParsedDocument) -> list[str]:
    return [each.text for each in document.left_out]


def test_a_picture_of_a_word_file_is_read_once_and_an_icon_is_not(recognised: list[bytes]) -> None:
    document = read("a.docx", word(png(), png(), png(20, 20)))
    assert len(recognised) == 1
    assert document.passages[0].text == "The lamp of the quay.\n\nWords in a picture"
    assert account(document) == [
        "1 paragraph that OCR read with low confidence: ~~ |",
        "1 page or picture read by OCR: Tesseract 5.9 (eng), mean confidence 91 %",
    ]


def test_text_of_a_picture_has_the_location_of_its_slide(recognised: list[bytes]) -> None:
    document = read("a.pptx", slides(png(shade=100), png(shade=200)))
    found = [(each.location["page"], each.text) for each in document.passages if "Words" in each.text]
    assert [page for page, _ in found] == [1, 2]


def test_file_with_pictures_only_consists_of_their_text(recognised: list[bytes]) -> None:
    assert read("a.docx", word(png(), text="")).passages[0].text == "Words in a picture"
    assert "except pictures" in (read("a.docx", word(png(), text=""), Limits()).error or "")


def test_pictures_await_later_ocr_and_the_text_is_returned_at_once() -> None:
    later = TextRecognition(LATER, lambda: None)
    data = word(png(), png(20, 20))
    [document] = parse_data(data, b"a.docx", "file:///a.docx", SplitSettings(), LATER, recognition=later)
    assert document.passages[0].text == "The lamp of the quay." and later.awaited == 1
    assert list(parse_data(png(), b"a.png", "file:///a.png", SplitSettings(), LATER, recognition=later)) == []
    assert later.awaited == 2


def test_a_page_on_which_ocr_fails_is_reported_and_the_others_are_read(
    recognised: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def recognise(image: bytes, _limits: Limits, _waiting: Callable[[], None]) -> list[Paragraph]:
        recognised.append(image)
        if len(recognised) == 1:
            raise ProgramFailed("tesseract took too long")
        return PARAGRAPHS

    monkeypatch.setattr(recognition, "recognise", recognise)
    pages = {kind: page for kind, page in scanned_pages().items() if kind in ("150 dpi", "table")}
    document = read("scan.pdf", encoded(pages, "PDF"))
    assert [each.location["page"] for each in document.passages] == [2]
    assert "1 other omission: page 1, because OCR failed: tesseract took too long" in account(document)
    assert "1 of 2 pages has no text layer" in account(document)


def test_a_damaged_picture_is_skipped() -> None:
    document = read("a.png", png()[:60])
    assert document.skipped and "a picture" in (document.error or "")
