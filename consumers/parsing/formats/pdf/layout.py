"""Finds the paragraphs and headings of a PDF from the positions and font sizes of its lines."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from statistics import median

from consumers.parsing.formats.pdf.lines import Line
from consumers.parsing.hyphenation import join_broken_words
from consumers.parsing.outline import Outline

_SENTENCE_END = re.compile(r"[.!?:;…。！？][\"'”’»)\]]*\Z")
_HEADING_RATIO = 1.12
_MAX_HEADING_WORDS = 20


def fill_outline(outline: Outline, lines: Sequence[Line], notes: Mapping[int, Sequence[str]]) -> None:
    """Adds the lines to the outline as headings and paragraphs. After each page, its `notes` follow, one block per
    note."""
    body = _body_size(lines)
    ranks = {size: level for level, size in enumerate(_heading_sizes(lines, body), 1)}
    pitch = _pitch(lines)
    paragraph: list[Line] = []
    heading: list[Line] = []
    rest = sorted(notes.items(), reverse=True)

    def end_paragraph() -> None:
        if paragraph:
            outline.text(
                join_broken_words("\n".join(line.text for line in paragraph), typeset=True), page=paragraph[0].page
            )
            paragraph.clear()

    def end_heading() -> None:
        if heading:
            outline.heading(ranks[heading[0].size], " ".join(line.text for line in heading), page=heading[0].page)
            heading.clear()

    def add_notes(before: float) -> None:
        while rest and rest[-1][0] < before:
            end_heading()
            end_paragraph()
            page, texts = rest.pop()
            for number, text in enumerate(texts):
                outline.text(text, "\n" if number else "\n\n", page=page)

    for line in lines:
        add_notes(line.page)
        if line.size in ranks and len(line.text.split()) <= _MAX_HEADING_WORDS:
            end_paragraph()
            if heading and (heading[-1].size != line.size or heading[-1].page != line.page):
                end_heading()
            heading.append(line)
            continue
        end_heading()
        if paragraph and _begins_paragraph(paragraph[-1], line, pitch):
            end_paragraph()
        paragraph.append(line)
    add_notes(inf)
    end_heading()
    end_paragraph()


def _body_size(lines: Sequence[Line]) -> float:
    """Returns the most common font size, weighted by characters."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _heading_sizes(lines: Sequence[Line], body: float) -> list[float]:
    """Returns at most four font sizes of headings, largest first. Such a size is clearly larger than `body` and used for less
    than a quarter of the text."""
    sizes: Counter[float] = Counter()
    for line in lines:
        if line.size > body * _HEADING_RATIO:
            sizes[line.size] += len(line.text)
    total = sum(len(line.text) for line in lines)
    return sorted((size for size, chars in sizes.items() if chars * 4 < total), reverse=True)[:4]


def _pitch(lines: Sequence[Line]) -> float:
    """Returns the median distance between the bottom of a line and the top of the next one, in points."""
    gaps = [a.bottom - b.top for a, b in pairwise(lines) if a.page == b.page and a.top > b.top]
    return median(gaps) if gaps else 0.0


def _begins_paragraph(above: Line, line: Line, pitch: float) -> bool:
    ended = bool(_SENTENCE_END.search(above.text))
    if above.page != line.page or line.top > above.top:  # next page or column: a sentence may continue there
        return ended or not line.text[0].islower()
    size = max(line.size, 1.0)
    if above.bottom - line.top > pitch + 0.4 * size:
        return True
    return ended and line.left > above.left + 0.8 * size  # the first line is indented
