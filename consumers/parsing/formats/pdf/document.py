"""Parses a PDF into blocks (text, form values, comments) and reports omissions."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.pdf.annotations import (
    Attachments,
    alternative_texts,
    bookmarks,
    comments,
    draw_annotations,
    field_values,
    report_xfa_form,
    unknown_lines,
)
from consumers.parsing.formats.pdf.layout import fill_outline
from consumers.parsing.formats.pdf.lines import Line, page_lines, with_whole_words
from consumers.parsing.formats.pdf.running_headers import MAX_STAMPS, without_running_headers
from consumers.parsing.limits import Damaged, Limits, NotADocument, PictureError, TooLarge
from consumers.parsing.office_properties import sensible_title
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText, Picture, TextBlock

_TAIL = 1 << 16
_CONTENTS = re.compile(
    "(table of )?contents|inhalt(sverzeichnis)?|table des matières|sommaire|[íi]ndice|目录|目次", re.IGNORECASE
)
"""Headings of contents tables. Such headings are not used as titles."""

_EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_NO_WIDTH = 0.01
_SCAN_SHARE = 0.5
_SHORT_PAGE = 500
"""A page with fewer characters is checked for vertical text."""
_DPI = 300
_MAX_PIXELS = 40_000_000
"""Maximum size of the image in pixels. A larger page, such as a plan, is drawn with fewer dots per inch."""


@dataclass(slots=True)
class _Pages:
    """The contents of a document's pages. `notes`, by page: texts outside the page's content, such as form values."""

    lines: list[Line] = field(default_factory=list)
    notes: dict[int, list[str]] = field(default_factory=dict)
    pictures: set[int] = field(default_factory=set)
    """Pages with a picture and so few lines that the lines may be stamps on a scan."""
    scans: set[int] = field(default_factory=set)
    """Pages with a picture that covers more than `_SCAN_SHARE` of the page."""
    blank: set[int] = field(default_factory=set)
    broken: set[int] = field(default_factory=set)


def parse_pdf(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    if b"%%EOF" not in data[-_TAIL:]:
        raise Damaged("cut short: its end mark (%%EOF) is missing; copy or download it again")
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise NotADocument("protected by a password; save it without one", FailureCode.PROTECTED) from error
        raise Damaged(f"damaged: {error}; copy it again, or save it again") from error
    try:
        count = len(document)
        limits.check_pages(count)
        attachments = Attachments(limits, omissions)
        attachments.add_embedded(document)
        pages = _read_pages(document, count, limits, omissions, attachments)
        report_xfa_form(document, omissions)
        titles = list(bookmarks(document))
        stated = document.get_metadata_dict()
    finally:
        document.close()
    if len(pages.broken) == count:
        raise Damaged(f"damaged: none of its {count} pages can be read; copy it again, or save it again")
    lines = without_running_headers(with_whole_words(pages.lines), count, pages.pictures, omissions)
    omissions.add(OmissionKind.UNREADABLE_PAGE, count=len(pages.broken), total=count)
    outline = Outline(limits.text_chars, omissions)
    fill_outline(outline, lines, pages.notes)
    blocks = outline.done()
    _report_bookmarks(titles, (block.text for block in blocks), omissions)
    metadata: dict[str, Any] = {
        name.lower(): text
        for name in ("Author", "Subject", "Keywords")
        if (text := clean_text(stated.get(name) or "").strip()[:1000])
    }
    for name, key in (("created", "CreationDate"), ("modified", "ModDate")):
        if stated.get(key):
            metadata[name] = clean_text(stated[key])[:100]
    metadata["pages"] = count
    if pages.broken:
        metadata["unreadable_pages"] = len(pages.broken)
    heading = outline.first_heading
    title = sensible_title(stated.get("Title") or "") or ("" if _CONTENTS.fullmatch(heading) else heading)
    pictures = tuple(_pages_without_text(data, pages, lines, blocks, count))
    if not blocks and not pictures:
        raise NotADocument("no text layer: its pages are blank; exclude it", FailureCode.NO_TEXT)
    return ParsedText(blocks, title, metadata, tuple(attachments.found), pictures, _why_without_text(omissions))


def _read_pages(document: Any, count: int, limits: Limits, omissions: Omissions, attachments: Attachments) -> _Pages:
    has_forms = document.get_formtype() != pdfium.FORMTYPE_NONE
    if has_forms:
        document.init_forms()
    pages = _Pages()
    chars = 0
    for number in range(1, count + 1):
        try:
            page = document[number - 1]
            text_page = page.get_textpage()
        except pypdfium2.PdfiumError:
            pages.broken.add(number)
            continue
        found = page_lines(text_page, number, omissions)
        notes = [*(field_values(page, document.formenv.raw) if has_forms else ()), *comments(page, attachments)]
        notes += [f"Picture: {text}" for text in alternative_texts(page)]
        content = text_page.get_text_range()
        read = sum(len(line.text) for line in found)
        # Visiting all objects is slow on pages with drawings, so only pages with little or East Asian text are checked.
        if read < _SHORT_PAGE or any(_EAST_ASIAN.search(line.text) for line in found):
            _report_vertical_text(page, number, read, omissions)
        # Pictures matter only on pages with few lines, and visiting the objects of drawings is slow.
        shown = page.get_objects(filter=(pdfium.FPDF_PAGEOBJ_IMAGE,)) if len(found) <= MAX_STAMPS else ()
        if shares := [_share(each.get_bounds(), *page.get_size()) for each in shown]:
            pages.pictures.add(number)
            if sum(shares) > _SCAN_SHARE:  # scanners may store a page as strips
                pages.scans.add(number)
        elif not pdfium.FPDFPage_CountObjects(page.raw):
            pages.blank.add(number)
        text_page.close()
        is_drawn = draw_annotations(page)
        page.close()
        if is_drawn:
            notes += unknown_lines(_text_of_page(document, number), (content, *notes))
        chars += read + sum(map(len, notes))
        if chars > limits.text_chars:
            raise TooLarge(f"more than {limits.text_chars:,} characters of text; split it up")
        pages.lines += found
        if notes:
            pages.notes[number] = notes
    return pages


def _text_of_page(document: Any, number: int) -> str:
    page = document[number - 1]
    text_page = page.get_textpage()
    text: str = text_page.get_text_range()
    text_page.close()
    page.close()
    return text


def _share(bounds: tuple[float, float, float, float], width: float, height: float) -> float:
    """Returns the share of a page that an object covers, from 0 to about 1. `width` and `height` are those of the
    page."""
    left, bottom, right, top = bounds
    return (right - left) * (top - bottom) / max(width * height, 1.0)


def _report_vertical_text(page: Any, number: int, read: int, omissions: Omissions) -> None:
    """Reports vertical text, which PDFium leaves out: glyphs of vertical fonts have no width, so PDFium treats them as empty.

    Text objects without width and height count as spaces unless they outnumber `read`, the number of characters read.
    """
    columns = signs = 0
    for piece in page.get_objects(filter=(pdfium.FPDF_PAGEOBJ_TEXT,)):
        left, bottom, right, top = piece.get_bounds()
        if right - left < _NO_WIDTH:
            columns += top - bottom >= _NO_WIDTH
            signs += top - bottom < _NO_WIDTH
    if lost := columns + (signs if signs > read else 0):
        omissions.add(OmissionKind.OTHER, f"vertical text on page {number}, in pieces: {lost:,}")


def _pages_without_text(
    data: bytes, pages: _Pages, lines: Iterable[Line], blocks: Sequence[TextBlock], count: int
) -> Iterator[Picture]:
    """Yields pages for OCR: pages without text that are not blank, and scans, because the only text of a scan may be a
    stamp."""
    with_text = {line.page for line in lines} | pages.notes.keys() | pages.blank | pages.broken
    before = 0
    for page in range(1, count + 1):
        while before < len(blocks) and (blocks[before].page or 0) <= page:
            before += 1
        if page not in with_text or page in pages.scans:
            image = partial(page_image, data, page - 1)
            unread = OmissionKind.PAGE_WITHOUT_TEXT if page not in with_text else None
            yield Picture(image, before, (), page, True, unread, total=count)


def _why_without_text(omissions: Omissions) -> str:
    kinds = {each.kind for each in omissions.done()}
    if OmissionKind.UNKNOWN_CHARACTER in kinds:
        return "its fonts do not map their shapes to characters"
    if OmissionKind.OTHER in kinds:
        return "its text is written in vertical columns"
    return "no text layer: its pages are pictures"


def _report_bookmarks(titles: Iterable[str], texts: Iterable[str], omissions: Omissions) -> None:
    """Reports bookmarks whose words do not occur in the text."""
    text = _letters(" ".join(texts))
    for title in titles:
        if _letters(title) not in text:
            omissions.add(OmissionKind.BOOKMARK, title)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def page_image(data: bytes, index: int) -> bytes:
    """Returns the page as a greyscale image (PGM). `index` counts from 0. Raises PictureError if the page cannot be
    drawn."""
    try:
        document = pypdfium2.PdfDocument(data)
        try:
            page = document[index]
            width, height = page.get_size()
            scale = min(_DPI / 72, (_MAX_PIXELS / max(width * height, 1.0)) ** 0.5)
            image = page.render(scale=scale, grayscale=True).to_pil()
            out = BytesIO()
            image.save(out, "PPM")
        finally:
            document.close()
    except (pypdfium2.PdfiumError, ValueError) as error:
        raise PictureError(f"the page cannot be drawn ({error})") from error
    return out.getvalue()
