"""PDF by PDFium (pypdfium2): the engine of Chromium, a tenth of pdfminer's time, and it repairs what browsers repair.

PDFium gives lines; paragraphs and headings are read from where the lines stand and how large they are set.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from consumers.failure_codes import FailureCode
from consumers.parsing.decoding import clean_text
from consumers.parsing.hyphenation import decision, join_broken_words
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.office_properties import sensible_title
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText

_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_BROKEN_WORD = re.compile("([^\\W_]*(?:-[^\\W_]+)*)\xad([^\\W_]*(?:-[^\\W_]+)*)")
"""PDFium joins a word broken at a line's end and marks the place, with U+FFFE; here a soft hyphen stands for the mark."""
_NUMBERS = re.compile(r"\d+|\b[ivxlc]+\b")
_SENTENCE_END = re.compile(r"[.!?:;…。！？][\"'”’»)\]]*\Z")
_HEADING_RATIO = 1.12
_LONGEST_HEADING_WORDS = 20
_TAIL = 1 << 16


@dataclass(frozen=True, slots=True)
class _Line:
    """One printed line. Lengths in points; `top` grows upwards. `size` is the height of its type."""

    page: int
    text: str
    left: float
    top: float
    bottom: float
    size: float


def parse_pdf(data: bytes, limits: Limits) -> ParsedText:
    if b"%%EOF" not in data[-_TAIL:]:
        raise Unreadable("cut short: its end mark (%%EOF) is missing; copy or download it again", FailureCode.DAMAGED)
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise NotADocument("protected by a password; save it without one", FailureCode.PROTECTED) from error
        raise Unreadable(f"damaged: {error}; copy it again, or save it again", FailureCode.DAMAGED) from error
    try:
        count = len(document)
        if count > limits.pages:
            raise NotADocument(
                f"{count:,} pages, more than the {limits.pages:,} read at most; split it up", FailureCode.TOO_LARGE
            )
        lines, broken = _all_lines(document, count, limits)
        stated = document.get_metadata_dict()
    finally:
        document.close()
    if not any(line.text for line in lines):
        if broken == count:
            raise Unreadable(
                f"damaged: none of its {count} pages can be read; copy it again, or save it again", FailureCode.DAMAGED
            )
        raise NotADocument(
            "no text layer: its pages are pictures; run OCR over it (for example, ocrmypdf), or exclude it",
            FailureCode.NO_TEXT,
        )
    outline = Outline(limits.text_chars)
    _fill(outline, _without_running_heads(lines, count))
    blocks = outline.done()
    metadata: dict[str, Any] = {
        name.lower(): clean_text(stated[name])[:1000] for name in ("Author", "Subject", "Keywords") if stated.get(name)
    }
    for name, key in (("created", "CreationDate"), ("modified", "ModDate")):
        if stated.get(key):
            metadata[name] = clean_text(stated[key])[:100]
    metadata["pages"] = count
    if broken:
        metadata["unreadable_pages"] = broken
    return ParsedText(blocks, sensible_title(stated.get("Title") or "") or outline.first_heading, metadata)


def _all_lines(document: Any, count: int, limits: Limits) -> tuple[list[_Line], int]:
    lines: list[_Line] = []
    broken = chars = 0
    for number in range(count):
        try:
            page = document[number]
            text_page = page.get_textpage()
        except pypdfium2.PdfiumError:
            broken += 1
            continue
        found = _lines(text_page, number + 1)
        chars += sum(len(line.text) for line in found)
        if chars > limits.text_chars:
            raise NotADocument(
                f"more than {limits.text_chars:,} characters of text; split it up", FailureCode.TOO_LARGE
            )
        lines.extend(found)
        text_page.close()
        page.close()
    return _with_whole_words(lines), broken


def _lines(text_page: Any, page: int) -> list[_Line]:
    text = text_page.get_text_range()
    lines = []
    start = 0
    for piece in text.split("\r\n"):
        body = piece.strip()
        if body:
            # PDFium numbers characters, the line ends that it generates among them, as they stand in its text.
            first = start + piece.index(body)
            head, tail = _box(text_page, first), _box(text_page, first + len(body) - 1)
            printed = clean_text(body.replace("\xad", "").replace("\ufffe", "\xad")).translate(_LIGATURES)
            lines.append(_Line(page, printed, head.left, head.top, tail.bottom, round(head.top - head.bottom, 1)))
        start += len(piece) + 2
    return lines


def _box(text_page: Any, index: int) -> Any:
    """The box of one character as high as its font, with `left`, `top`, `right` and `bottom`."""
    box = pdfium.FS_RECTF()
    at = pdfium.FPDFText_GetCharIndexFromTextIndex(text_page.raw, index)
    pdfium.FPDFText_GetLooseCharBox(text_page.raw, at, box)
    return box


def _with_whole_words(lines: list[_Line]) -> list[_Line]:
    breaks = [(before, "\xad", after) for line in lines for before, after in _BROKEN_WORD.findall(line.text)]
    if not breaks:
        return lines
    joined = decision((line.text for line in lines), breaks, typeset=True)

    def mended(match: re.Match[str]) -> str:
        before, after = match.groups()
        return f"{before}-{after}" if "-" in after else joined(before, "\xad", after) if after else before

    return [replace(line, text=_BROKEN_WORD.sub(mended, line.text)) for line in lines]


def _fill(outline: Outline, lines: Sequence[_Line]) -> None:
    body = _body_size(lines)
    ranks = {size: level for level, size in enumerate(_heading_sizes(lines, body), 1)}
    pitch = _pitch(lines)
    paragraph: list[_Line] = []
    heading: list[_Line] = []

    def end_paragraph() -> None:
        if paragraph:
            outline.text(_joined(paragraph), page=paragraph[0].page)
            paragraph.clear()

    def end_heading() -> None:
        if heading:
            outline.heading(ranks[heading[0].size], " ".join(line.text for line in heading), page=heading[0].page)
            heading.clear()

    for line in lines:
        if line.size in ranks and len(line.text.split()) <= _LONGEST_HEADING_WORDS:
            end_paragraph()
            if heading and (heading[-1].size != line.size or heading[-1].page != line.page):
                end_heading()
            heading.append(line)
            continue
        end_heading()
        if paragraph and _begins_paragraph(paragraph[-1], line, pitch):
            end_paragraph()
        paragraph.append(line)
    end_heading()
    end_paragraph()


def _body_size(lines: Sequence[_Line]) -> float:
    """The size in which most of the text is set."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0]


def _heading_sizes(lines: Sequence[_Line], body: float) -> list[float]:
    """Sizes clearly larger than the body's that are used for a small part of the text, the largest first; four at most."""
    sizes: Counter[float] = Counter()
    for line in lines:
        if line.size > body * _HEADING_RATIO:
            sizes[line.size] += len(line.text)
    total = sum(len(line.text) for line in lines)
    return sorted((size for size, chars in sizes.items() if chars * 4 < total), reverse=True)[:4]


def _pitch(lines: Sequence[_Line]) -> float:
    """The usual distance between the feet of one line and the head of the next, in points."""
    gaps = [a.bottom - b.top for a, b in pairwise(lines) if a.page == b.page and a.top > b.top]
    return median(gaps) if gaps else 0.0


def _begins_paragraph(above: _Line, line: _Line, pitch: float) -> bool:
    ended = bool(_SENTENCE_END.search(above.text))
    if above.page != line.page or line.top > above.top:  # the next page or column: a sentence goes on over it
        return ended or not line.text[0].islower()
    size = max(line.size, 1.0)
    if above.bottom - line.top > pitch + 0.4 * size:
        return True
    return ended and line.left > above.left + 0.8 * size  # first line set in


def _joined(lines: Sequence[_Line]) -> str:
    return join_broken_words("\n".join(line.text for line in lines), typeset=True)


def _without_running_heads(lines: Sequence[_Line], pages: int) -> list[_Line]:
    """Leave out the first and last line of pages where it is the same, numbers aside, on at least half of them."""
    edges: dict[int, set[int]] = {}
    for index, line in enumerate(lines):
        first = index == 0 or lines[index - 1].page != line.page
        last = index == len(lines) - 1 or lines[index + 1].page != line.page
        if first or last:
            edges.setdefault(line.page, set()).add(index)
    shapes = Counter(shape for indices in edges.values() for shape in {_shape(lines[index].text) for index in indices})
    common = {shape for shape, seen in shapes.items() if seen >= 3 and seen * 2 >= pages}
    drop = {index for indices in edges.values() for index in indices if _shape(lines[index].text) in common}
    return [line for index, line in enumerate(lines) if index not in drop]


def _shape(text: str) -> str:
    return _NUMBERS.sub("#", text.lower())
