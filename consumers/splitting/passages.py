"""Turns blocks into passages: one per section. A long section is divided into units (blocks, sentences, lines, runs of words).
Its passages begin and end between units, at the boundaries that `consumers.splitting.boundaries` finds.

Sizes are in tokens: a token is a word, a CJK character, or a punctuation mark. A word is a run of letters, digits and
underscores. A run of more than 32 characters counts as one token per started 32 characters, so that text without spaces is
measured too. Chinese and Japanese are written without spaces, so each of their characters is a token.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby, pairwise
from time import perf_counter
from typing import Any, Self
from zlib import crc32

from consumers.splitting.blocks import SEPARATOR, SplitSettings, TextBlock
from consumers.splitting.boundaries import Unit, cut_section
from consumers.splitting.sentences import sentence_starts
from consumers.types import Link, Passage

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]{{1,32}}|[^\w\s]")

MAX_LINKS = 10_000
"""Maximum number of links of a document; further links are dropped. A link in a heading counts once for each passage below the
heading."""
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_WORDS, _SENTENCE, _LINE, _PARAGRAPH = range(4)
_RUN_MASK = 15
"""A run of words ends where these 4 bits of a hash are zero, on average after 16 tokens."""
_RUN_LIMIT = 64
_KEYED_CHARS = 200


def count_tokens(text: str) -> int:
    if len(text) < 100_000:
        return len(TOKEN.findall(text))
    return sum(1 for _ in TOKEN.finditer(text))  # a list of tens of millions of strings would not fit into memory


class WorkTimer(ContextDecorator):
    """Sums the seconds that the decorated functions take. Nested calls count once. For one thread."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._began = 0.0

    def __enter__(self) -> Self:
        self._began = self._began if self._depth else perf_counter()
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self.seconds += perf_counter() - self._began

    def reset(self) -> float:
        """Returns the seconds since the last reset."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


SPLIT_TIMER = WorkTimer()
"""The time that splitting takes in this process, which is a part of the time of parsing."""


@dataclass(frozen=True, slots=True)
class _Section:
    """Blocks under one path of headings, and the number of tokens of each block."""

    headings: tuple[str, ...]
    blocks: tuple[TextBlock, ...]
    counts: tuple[int, ...]

    @property
    def tokens(self) -> int:
        return sum(self.counts)


@SPLIT_TIMER
def split(blocks: Sequence[TextBlock], title: str, settings: SplitSettings) -> tuple[Passage, ...]:
    """Splits blocks into passages, in reading order. `title` is the title in the content, or "". Empty blocks are left out."""
    sections = _merge_short(_sections(blocks, title), settings)
    return tuple(_within_limit(passage for section in sections for passage in _passages(section, title, settings)))


@SPLIT_TIMER
def split_text(text: str, title: str, settings: SplitSettings) -> tuple[Passage, ...]:
    """Splits a plain text without headings. Returns a text that fits into one passage unchanged, and no passages for a
    blank text."""
    if not text.strip():
        return ()
    if count_tokens(text) <= settings.max_tokens:
        return (Passage(title, text, {"line": 1}),)
    return split(list(paragraphs(text)), title, settings)


def paragraphs(text: str) -> Iterator[TextBlock]:
    """Yields the parts of a text between empty lines, as blocks with their line numbers."""
    line, at = 1, 0
    gaps = [(match.start(), match.end()) for match in _BLANK_LINES.finditer(text)]
    for gap_start, gap_end in [*gaps, (len(text), len(text))]:
        piece = text[at:gap_start]
        body = piece.strip()
        if body:
            lead = piece[: len(piece) - len(piece.lstrip())]
            yield TextBlock(body, line=line + lead.count("\n"))
        line += text.count("\n", at, gap_end)
        at = gap_end


def _sections(blocks: Sequence[TextBlock], title: str) -> list[_Section]:
    sections = []
    filled = (block for block in blocks if block.text.strip())
    for headings, group in groupby(filled, key=lambda block: block.headings):
        members = tuple(group)
        below = headings[1:] if headings and headings[0] == title else headings
        sections.append(_Section(below, members, tuple(count_tokens(block.text) for block in members)))
    return sections


def _merge_short(sections: Sequence[_Section], settings: SplitSettings) -> Iterator[_Section]:
    """Merges consecutive short sections. A merged section has the headings that its parts have in common."""
    run: list[_Section] = []
    size = 0
    for section in sections:
        short = section.tokens < settings.min_tokens
        # Headings that become part of the text are counted too.
        grown = section.tokens + count_tokens(SEPARATOR.join(section.headings))
        if run and (not short or size + grown > settings.max_tokens):
            yield _merged(run)
            run, size = [], 0
        if short:
            run.append(section)
            size += grown
        else:
            yield section
    if run:
        yield _merged(run)


def _merged(run: Sequence[_Section]) -> _Section:
    if len(run) == 1:
        return run[0]
    shared = _common_prefix([section.headings for section in run])
    blocks: list[TextBlock] = []
    for section in run:
        below = SEPARATOR.join(section.headings[len(shared) :])
        first, *rest = section.blocks
        repeats = not below or below == first.text
        blocks.append(first if repeats else _headed(first, f"{below}\n"))
        blocks.extend(rest)
    return _Section(shared, tuple(blocks), tuple(count_tokens(block.text) for block in blocks))


def _headed(block: TextBlock, heading: str) -> TextBlock:
    """Returns the block with `heading` prepended to its text, and its links moved accordingly."""
    links = tuple(replace(link, start=link.start + len(heading)) for link in block.links)
    return replace(block, text=heading + block.text, joint="\n\n", links=links)


def _within_limit(passages: Iterable[Passage]) -> Iterator[Passage]:
    """Limits the total number of links in all passages to the first `MAX_LINKS`."""
    left = MAX_LINKS
    for passage in passages:
        yield passage if len(passage.links) <= left else replace(passage, links=passage.links[:left])
        left = max(left - len(passage.links), 0)


def _common_prefix(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    shortest = min(paths, key=len)
    for depth, name in enumerate(shortest):
        if any(path[depth] != name for path in paths):
            return shortest[:depth]
    return shortest


def _passages(section: _Section, title: str, settings: SplitSettings) -> Iterator[Passage]:
    full_title = SEPARATOR.join(part for part in (title, *section.headings) if part)
    if section.tokens <= settings.max_tokens:
        text = "".join(f"{block.joint if i else ''}{block.text}" for i, block in enumerate(section.blocks))
        yield Passage(full_title, text, _location(section.blocks[0], 0), links=_links(section.blocks, units=None))
        return
    units = units_of(section.blocks, section.counts, settings.max_tokens)
    block, seen, lines = -1, 0, 0  # count line breaks unit by unit, so that a huge block takes linear time
    for first, last in cut_section(units, settings.max_tokens, settings.min_tokens):
        begin = units[first]
        if begin.block != block:
            block, seen, lines = begin.block, 0, 0
        lines += section.blocks[block].text.count("\n", seen, begin.start)
        seen = begin.start
        within = units[first:last]
        text, links = _text(section.blocks, within), _links(section.blocks, within)
        yield Passage(full_title, text, _location(section.blocks[block], lines), links=links)


def _text(blocks: Sequence[TextBlock], units: Sequence[Unit]) -> str:
    parts: list[str] = []
    for index, group in groupby(units, key=lambda unit: unit.block):
        members = list(group)
        if parts:
            parts.append(blocks[index].joint)
        parts.append(blocks[index].text[members[0].start : members[-1].end].strip())
    return "".join(parts)


def _links(blocks: Sequence[TextBlock], units: Sequence[Unit] | None) -> tuple[Link, ...]:
    """Returns the links of a passage, links of headings first. The passage consists of `units`, or of all `blocks` if
    `units` is None."""
    parts = ((block, 0, len(block.text)) for block in blocks)
    if units is not None:
        parts = ((blocks[unit.block], unit.start, unit.end) for unit in units)
    above: dict[Link, None] = {}
    inside: dict[Link, None] = {}
    for block, start, end in parts:
        above.update(dict.fromkeys(block.heading_links))
        inside.update(dict.fromkeys(each.link for each in block.links if start <= each.start < end))
    return (*above, *(link for link in inside if link not in above))


def _location(block: TextBlock, lines: int) -> dict[str, Any]:
    """Returns the location of a passage that begins `lines` line breaks after the start of a block."""
    line = None if block.line is None else block.line + lines
    found = {
        "page": block.page,
        "heading": SEPARATOR.join(block.headings) or None,
        "line": line,
        "sheet": block.sheet,
        "row": block.row,
        "time": block.time,
    }
    return {name: value for name, value in found.items() if value is not None}


def units_of(blocks: Sequence[TextBlock], counts: Sequence[int], max_tokens: int) -> list[Unit]:
    """Returns each block as one unit if it fits into a passage. Divides longer blocks into sentences, then lines, then runs
    of words."""
    units: list[Unit] = []
    for index, (block, tokens) in enumerate(zip(blocks, counts, strict=True)):
        level = _PARAGRAPH if block.joint.count("\n") > 1 else _LINE
        if tokens <= max_tokens:
            units.append(Unit(index, 0, len(block.text), tokens, level, _key(block.text)))
        else:
            units.extend(_pieces(index, block.text, level, max_tokens))
    return units


def _key(text: str) -> int:
    """Returns a hash of the beginning of a piece. The hash does not depend on white space."""
    beginning = " ".join(text[:_KEYED_CHARS].split())
    return int.from_bytes(blake2b(beginning.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _pieces(block: int, text: str, level: int, max_tokens: int) -> Iterator[Unit]:
    for start, end in _sentences_or_lines(text, max_tokens):
        tokens = count_tokens(text[start:end])
        unit_level = level if start == 0 else _SENTENCE
        if tokens <= max_tokens:
            if tokens:
                yield Unit(block, start, end, tokens, unit_level, _key(text[start:end]))
            continue
        for run_start, run_end, run_tokens in _runs(text, start, end, min(_RUN_LIMIT, max_tokens)):
            at = unit_level if run_start == start else _WORDS
            yield Unit(block, run_start, run_end, run_tokens, at, _key(text[run_start:run_end]))


def _sentences_or_lines(text: str, max_tokens: int) -> Iterator[tuple[int, int]]:
    starts = [*sentence_starts(text), len(text)]
    for start, end in pairwise(starts):
        # A token has at least one character, so a sentence of at most `max_tokens` characters is within the limit.
        if end - start <= max_tokens or "\n" not in text[start:end] or count_tokens(text[start:end]) <= max_tokens:
            yield start, end
            continue
        while start < end:
            found = text.find("\n", start, end)
            stop = end if found < 0 else found + 1
            yield start, stop
            start = stop


def _runs(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int, int]]:
    """Yields runs of words in an overlong sentence: (start, end, tokens). A hash of two neighbouring words decides where a
    run ends."""
    run_start, tokens, previous = start, 0, ""
    for match in TOKEN.finditer(text, start, end):
        word = match.group()
        ends_run = tokens >= 4 and crc32(f"{previous} {word}".encode("utf-8", "surrogatepass")) & _RUN_MASK == 0
        if tokens and (ends_run or tokens >= limit):
            yield run_start, match.start(), tokens
            run_start, tokens = match.start(), 0
        tokens += 1
        previous = word
    if tokens:
        yield run_start, end, tokens
