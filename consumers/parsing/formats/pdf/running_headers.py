"""Removes running headers and footers of a PDF, which would otherwise interrupt sentences.

The first or last line of a page is a running header if it occurs on at least three pages and half of all pages, or if the lines
of three pages differ only in the page number. Other numbers (of an invoice, an amount) make lines different. The first
occurrence stays in the text, unless it is only a page number. No page loses all its text.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from itertools import groupby

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.formats.pdf.lines import EDGE_NUMBER, Line

_PAGE_WORDS = r"page|pages|pag|pág|pagina|página|pg|p|seite|side|sida|strona|str|стр|страница|s"
_OF_WORDS = r"of|von|de|di|sur|van|av|af|z|из"
_PAGE_LABEL = re.compile(
    rf"\W*(?:(?:{_PAGE_WORDS})\b\W*)?(\d{{1,5}}|[ivxlc]{{1,7}})(?:\W*(?:/|\b(?:{_OF_WORDS})\b)\W*\d{{1,5}})?\W*",
    re.IGNORECASE,
)
"""A line that contains only a page number."""
_ROMAN = re.compile(r"(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_MIN_PAGES = 3
_PLACE = "\0"
"""Placeholder for the page number in the key of a line."""
MAX_STAMPS = 2
"""Maximum number of running headers on a page: the first line and the last."""


def without_running_headers(lines: Sequence[Line], pages: int, pictures: Set[int], omissions: Omissions) -> list[Line]:
    """Returns the lines without running headers. `pictures` are the numbers of pages that are pictures.

    A page that is a picture may lose all its text, which may be a stamp that a program put on each scan.
    """
    keys = dict(_edge_keys(lines))
    seen: dict[str, set[int]] = defaultdict(set)
    for index, key in keys.items():
        seen[key].add(lines[index].page)
    common = {key for key, on in seen.items() if len(on) >= _MIN_PAGES and (_PLACE in key or 2 * len(on) >= pages)}
    dropped: set[int] = set()
    begun: set[str] = set()
    for page, indices in groupby(range(len(lines)), key=lambda index: lines[index].page):
        own = list(indices)
        repeated = [index for index in own if keys.get(index) in common]
        if len(repeated) == len(own) and page not in pictures:
            begun.update(keys[index] for index in repeated)
            continue
        for index in repeated:
            if keys[index] in begun or _PAGE_LABEL.fullmatch(lines[index].text):
                dropped.add(index)
                omissions.add(OmissionKind.RUNNING_HEADER, keys[index].replace(_PLACE, "#"))
            begun.add(keys[index])
    return [line for index, line in enumerate(lines) if index not in dropped]


def _edge_keys(lines: Sequence[Line]) -> Iterator[tuple[int, str]]:
    """Yields (index, key) of the first and last line of each page. Equal running headers have equal keys."""
    edges = [
        index
        for index, line in enumerate(lines)
        if index in (0, len(lines) - 1) or line.page != lines[index - 1].page or line.page != lines[index + 1].page
    ]
    shapes = {index: shape for index in edges if (shape := _shape(lines[index])) is not None}
    seen = Counter(shapes.values())
    for index in edges:
        shape = shapes.get(index)
        yield index, shape[0] if shape is not None and seen[shape] >= _MIN_PAGES else lines[index].text


def _shape(line: Line) -> tuple[str, int] | None:
    """Returns (the line with a placeholder for its page number, page number minus `line.page`), or None without a number."""
    if (match := _PAGE_LABEL.fullmatch(line.text)) is not None:
        start, end = match.span(1)
    elif line.number_apart and (match := EDGE_NUMBER.search(line.text)) is not None:
        start, end = match.span(1 if match[1] else 2)
    else:
        return None
    value = _value(line.text[start:end])
    return None if value is None else (f"{line.text[:start]}{_PLACE}{line.text[end:]}", value - line.page)


def _value(number: str) -> int | None:
    """Returns the value of arabic or roman digits, or None if the letters are not a roman number."""
    if number.isascii() and number.isdigit():
        return int(number)
    roman = number.lower()
    if not _ROMAN.fullmatch(roman.removeprefix("c")):
        return None
    values = [_ROMAN_VALUES[each] for each in roman]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))
