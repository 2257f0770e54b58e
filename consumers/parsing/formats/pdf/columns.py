"""Separates columns of text that a PDF draws line by line across the page.

PDFium returns the words in drawing order. Most programs draw one column after the other, but some draw across columns.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import pypdfium2.raw as pdfium

Place = tuple[int, str]
"""A line: (position of its first character in the page's text, text)."""
_SENTENCE_END = re.compile(r"[.!?:;][\"'”’»)\]]*\Z")
_MIN_GUTTER = 1.0
"""Minimum width of the space between two columns, in multiples of the font size."""
_MIN_LINES, _MIN_WORDS = 3, 3
"""Minimum number of lines with text in both columns, and minimum median of words per line in a column. Cells of tables have
fewer words."""
_MAX_STEP = 2.0
"""Maximum distance between the tops of two successive lines of a column, in multiples of the font size."""
_WORD = re.compile(r"\w{2,}")
_ALIGNED = 0.8
"""Minimum share of a column's lines that begin at the same position."""


@dataclass(slots=True)
class _Row:
    """A line of the page. `gap`: (left, right) of the widest space, None if no space is wide enough for a gutter.
    `cut`: position in `text` after this space."""

    first: int
    text: str
    left: float
    right: float
    top: float
    size: float
    gap: tuple[float, float] | None = None
    cut: int = 0

    def parts(self, gutter: tuple[float, float]) -> tuple[Place | None, Place | None]:
        """Returns the parts of the line to the left and to the right of the gutter."""
        if self.gap is None:
            place = (self.first, self.text)
            return (place, None) if self.right <= gutter[1] else (None, place)
        return (self.first, self.text[: self.cut].rstrip()), (self.first + self.cut, self.text[self.cut :])


def in_columns(text_page: Any, places: Sequence[Place]) -> list[Place]:
    """Returns the lines of a page in reading order. A line across two columns becomes two lines."""
    rows = [_row(text_page, first, text) for first, text in places]
    found: list[Place] = []
    at = 0
    while at < len(rows):
        end, gutter = _end_of_columns(rows, at)
        columns = [row.parts(gutter) for row in rows[at:end]]
        if _is_prose(rows[at:end]):
            found += [left for left, _ in columns if left] + [right for _, right in columns if right]
            at = end
        else:
            found.append((rows[at].first, rows[at].text))
            at += 1
    return found


def _row(text_page: Any, first: int, text: str) -> _Row:
    start, end = (_index(text_page, first + offset) for offset in (0, len(text) - 1))
    head = _box(text_page, start)
    size = head.top - head.bottom
    boxes = sorted(_rectangles(text_page, start, end - start + 1))
    row = _Row(first, text, head.left, max((right for _, right in boxes), default=head.right), head.top, size)
    right = row.left
    for left, following in boxes:
        if left - right >= max(_MIN_GUTTER * size, 1.0) and (row.gap is None or left - right > row.gap[1] - row.gap[0]):
            row.gap = (right, left)
        right = max(right, following)
    if row.gap is not None:
        middle = sum(row.gap) / 2
        spaces = (match.end() for match in re.finditer(r"\s+", text))
        row.cut = next((at for at in spaces if _box(text_page, _index(text_page, first + at)).left >= middle), 0)
        row.gap = row.gap if row.cut else None
    return row


def _rectangles(text_page: Any, start: int, count: int) -> Iterator[tuple[float, float]]:
    """Yields (left, right) of each run of characters that contains no wide space."""
    for number in range(pdfium.FPDFText_CountRects(text_page.raw, start, count)):
        left, top, right, bottom = (pdfium.c_double() for _ in range(4))
        pdfium.FPDFText_GetRect(text_page.raw, number, left, top, right, bottom)
        yield left.value, right.value


def _end_of_columns(rows: Sequence[_Row], at: int) -> tuple[int, tuple[float, float]]:
    """Finds the rows from `at` on that leave the same gutter free. Returns (index after the last such row, gutter)."""
    gutter = rows[at].gap
    if gutter is None:
        return at, (0.0, 0.0)
    end = at + 1
    for above, row in pairwise(rows[at:]):
        left, right = gutter
        if row.gap is not None:
            left, right = max(left, row.gap[0]), min(right, row.gap[1])
        elif row.right <= right:
            left = max(left, row.right)
        else:
            right = min(right, row.left)
        if not 0 < above.top - row.top < _MAX_STEP * row.size or right - left < _MIN_GUTTER * row.size:
            break
        gutter = (left, right)
        end += 1
    return end, gutter


def _is_prose(rows: Sequence[_Row]) -> bool:
    """Whether rows are columns of text, not a table: both columns are aligned, and in each column a sentence continues
    on the next line."""
    split = [row for row in rows if row.gap is not None]
    if len(split) < _MIN_LINES:
        return False
    columns = [row.text[: row.cut].rstrip() for row in split], [row.text[row.cut :] for row in split]
    edges = [row.left for row in split], [row.gap[1] for row in split if row.gap is not None]
    return all(
        median(len(_WORD.findall(text)) for text in column) >= _MIN_WORDS
        and sum(abs(each - median(edge)) < split[0].size / 2 for each in edge) >= _ALIGNED * len(edge)
        and any(not _SENTENCE_END.search(above) and below[:1].islower() for above, below in pairwise(column))
        for column, edge in zip(columns, edges, strict=True)
    )


def _index(text_page: Any, place: int) -> int:
    return int(pdfium.FPDFText_GetCharIndexFromTextIndex(text_page.raw, place))


def _box(text_page: Any, index: int) -> Any:
    box = pdfium.FS_RECTF()
    pdfium.FPDFText_GetLooseCharBox(text_page.raw, index, box)
    return box
