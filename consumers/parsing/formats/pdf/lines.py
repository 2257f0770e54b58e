"""The printed lines of a PDF's pages with their positions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pypdfium2.raw as pdfium

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.pdf.columns import in_columns
from consumers.parsing.hyphenation import decision

_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_BROKEN_WORD = re.compile("([^\\W_]*(?:-[^\\W_]+)*)\xad([^\\W_]*(?:-[^\\W_]+)*)")
"""A word with a soft hyphen. PDFium joins a word that a line end divides and marks the position with U+FFFE; `page_lines`
converts the mark to a soft hyphen."""
_NUMBER = r"(?:\d{1,5}|[ivxlc]{1,7})"
EDGE_NUMBER = re.compile(
    rf"\A({_NUMBER})(?=\s+\S)|(?<=\S)\s+({_NUMBER})(?:\s*(?:/|\b(?:of|von|de|di|sur|van)\b)\s*\d{{1,5}})?\Z"
)
_ARABIC = re.compile("[\u0620-\u064a\u066e-\u06d3]{2,}")
_LAM = "\u0644"
_SAMPLED_CHARACTERS = 64
_APART = 1.5
"""Minimum distance between a separate number and the words next to it, in multiples of the font size."""


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line. Lengths are in points. `top` and `bottom` are measured from the bottom of the page. `size` is the font
    size.

    `number_apart`: the line is the first or last of its page, and a wide space separates the number at one of its ends
    (`EDGE_NUMBER`) from the words.
    """

    page: int
    text: str
    left: float
    top: float
    bottom: float
    size: float
    number_apart: bool = False


def page_lines(text_page: Any, page: int, omissions: Omissions) -> list[Line]:
    """Returns the lines of one page in reading order, except lines whose characters are mostly unknown."""
    text = text_page.get_text_range()
    unknown = _unknown_characters(text_page, text)
    places = []
    start = 0
    for piece in text.split("\r\n"):
        body = piece.strip()
        if body:
            # Positions in PDFium's text include the line ends that PDFium generates.
            places.append((start + piece.index(body), body))
        start += len(piece) + 2
    places = in_columns(text_page, places)
    lines = []
    for at, (first, body) in enumerate(places):
        printed = (
            "".join("\ufffd" if first + k in unknown else char for k, char in enumerate(body)) if unknown else body
        )
        if _ARABIC.search(printed):
            printed = _ARABIC.sub(lambda word: _ligatures_in_order(text_page, first, word), printed)  # noqa: B023
        printed = clean_text(printed.replace("\xad", "").replace("\ufffe", "\xad")).translate(_LIGATURES)
        if unknown and 2 * printed.count("\ufffd") > len("".join(printed.split())):
            omissions.add(OmissionKind.UNKNOWN_CHARACTER, count=len(printed))
            continue
        head, tail = _box(text_page, first), _box(text_page, first + len(body) - 1)
        size = round(head.top - head.bottom, 1)
        apart = at in (0, len(places) - 1) and _number_apart(text_page, first, body, size)
        lines.append(Line(page, printed, head.left, head.top, tail.bottom, size, apart))
    return lines


def _ligatures_in_order(text_page: Any, first: int, word: re.Match[str]) -> str:
    """Returns an Arabic word with the letters of its ligatures in reading order.

    PDFium reverses a right-to-left line letter by letter, and so also the letters of a ligature, which share one box. Ligatures
    that begin with lam are Unicode characters; PDFium splits them itself, in the right order.
    """
    places = [_box(text_page, first + at) for at in range(*word.span())]
    letters = list(word[0])
    start = 0
    for end in range(1, len(letters) + 1):
        if end == len(letters) or (places[end].left, places[end].right) != (places[start].left, places[start].right):
            if letters[start] != _LAM:
                letters[start:end] = reversed(letters[start:end])
            start = end
    return "".join(letters)


def _unknown_characters(text_page: Any, text: str) -> frozenset[int]:
    """Returns the positions of characters without a Unicode value: their font has no ToUnicode map (ISO 32000-1, 9.10).

    A font has the map for all characters or for none, so a sample shows whether a search is necessary.
    """
    sample = range(0, len(text), max(len(text) // _SAMPLED_CHARACTERS, 1))
    if not any(_is_unknown(text_page, at) for at in sample):
        return frozenset()
    return frozenset(at for at in range(len(text)) if _is_unknown(text_page, at))


def _is_unknown(text_page: Any, at: int) -> bool:
    index = pdfium.FPDFText_GetCharIndexFromTextIndex(text_page.raw, at)
    return index >= 0 and bool(pdfium.FPDFText_HasUnicodeMapError(text_page.raw, index) == 1)


def _number_apart(text_page: Any, first: int, body: str, size: float) -> bool:
    match = EDGE_NUMBER.search(body)
    if match is None:
        return False
    if match[1]:
        left, right = match.end(1) - 1, len(body) - len(body[match.end(1) :].lstrip())
    else:
        left, right = len(body[: match.start(2)].rstrip()) - 1, match.start(2)
    gap = _box(text_page, first + right).left - _box(text_page, first + left).right
    return bool(gap > _APART * size)


def _box(text_page: Any, index: int) -> Any:
    """Returns one character's box (`left`, `top`, `right`, `bottom`). The box has the font's height."""
    box = pdfium.FS_RECTF()
    at = pdfium.FPDFText_GetCharIndexFromTextIndex(text_page.raw, index)
    pdfium.FPDFText_GetLooseCharBox(text_page.raw, at, box)
    return box


def with_whole_words(lines: Sequence[Line]) -> list[Line]:
    """Joins the words that are divided at line ends, and returns the lines."""
    breaks = [(before, "\xad", after) for line in lines for before, after in _BROKEN_WORD.findall(line.text)]
    if not breaks:
        return list(lines)
    joined = decision((line.text for line in lines), breaks, typeset=True)

    def mended(match: re.Match[str]) -> str:
        before, after = match.groups()
        return f"{before}-{after}" if "-" in after else joined(before, "\xad", after) if after else before

    return [replace(line, text=_BROKEN_WORD.sub(mended, line.text)) for line in lines]
