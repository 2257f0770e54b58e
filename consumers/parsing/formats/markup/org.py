"""Org: headlines, paragraphs, lists and tables, without drawers, keywords and planning lines."""

import re

from consumers.omissions import Omissions
from consumers.parsing.decoding import decode
from consumers.parsing.formats.text import within_limits
from consumers.parsing.limits import Limits
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import is_header, row_text
from consumers.splitting import ParsedText

_HEADLINE = re.compile(
    r"(\*+)\s+(?:(?:TODO|DONE|NEXT|WAITING|CANCELLED)\s+)?(?:\[#\w\]\s*)?(.*?)(?:\s+:[\w@#%:]+:)?\s*\Z"
)
_KEYWORD = re.compile(r"[ \t]*#\+(\w+):[ \t]*(.*)")
_BLOCK = re.compile(r"[ \t]*#\+(begin|end)_(\w+)", re.IGNORECASE)
_DRAWER = re.compile(r"[ \t]*:[\w-]+:[ \t]*\Z")
_PLANNING = re.compile(r"[ \t]*(?:SCHEDULED|DEADLINE|CLOSED):[ \t]*[<\[]")
_ITEM = re.compile(r"[ \t]*(?:[-+]|\d+[.)]|(?<=[ \t])\*)[ \t]+(?:\[[ X-]\][ \t]+)?(.*)")
_LINK = re.compile(r"\[\[([^\[\]\n]+)\](?:\[([^\[\]\n]+)\])?\]")
_EMPHASIS = re.compile(r"(?<![\w*/=~+])([*/=~+])(?=\S)([^\n]*?\S)\1(?![\w*/=~+])")
_KEPT = ("author", "date", "language", "description", "keywords")
_COMMENTS = frozenset(("comment", "export"))


def parse_org(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    text = within_limits(decode(data), limits, omissions)
    reader = _Reader(Outline(limits.text_chars, omissions))
    for number, line in enumerate(text.split("\n"), 1):
        reader.line(line, number)
    reader.end()
    outline = reader.outline
    return ParsedText(outline.done(), reader.title or outline.first_heading, reader.metadata)


class _Reader:
    """Line by line: Org is made so."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.title = ""
        self.metadata: dict[str, str] = {}
        self._lines: list[str] = []
        self._first: int | None = None
        self._joint = "\n\n"
        self._block = ""
        self._in_drawer = False
        self._rows: list[list[str]] = []

    def line(self, line: str, number: int) -> None:
        if match := _BLOCK.match(line):
            self.end()
            self._block = match[2].lower() if match[1].lower() == "begin" else ""
        elif self._block:
            if self._block not in _COMMENTS:
                self._add(line, number)
        elif self._in_drawer or _DRAWER.match(line):
            self._in_drawer = line.strip().upper() != ":END:"
        elif match := _HEADLINE.match(line):
            self.end()
            self.outline.heading(len(match[1]), _plain(match[2]), line=number)
        elif match := _KEYWORD.match(line):
            self._keyword(match[1].lower(), match[2].strip())
        elif not line.strip():
            self.end()
        elif line.lstrip().startswith("|"):
            self._row(line)
        elif match := _ITEM.match(line):
            listed = self._joint == "\n" and bool(self._lines)
            self.end()
            self._joint = "\n" if listed else "\n\n"
            self._add(f"- {_plain(match[1])}", number)
            self._joint = "\n"
        elif not _PLANNING.match(line) and not re.match(r"[ \t]*#( |\Z)", line):
            self._add(_plain(line.strip()), number)

    def end(self) -> None:
        text = "\n".join(self._lines)
        self.outline.text(text if not self._block else text.rstrip(), self._joint, line=self._first)
        self._lines, self._first, self._joint = [], None, "\n\n"
        header = self._rows[0] if len(self._rows) > 1 and is_header(self._rows[0]) else []
        for place, row in enumerate(self._rows[1:] if header else self._rows, 1):
            self.outline.text(row_text(header, row), "\n\n" if place == 1 else "\n", row=place)
        self._rows = []

    def _add(self, text: str, number: int) -> None:
        if self._first is None:
            self._first = number
        self._lines.append(text)

    def _row(self, line: str) -> None:
        if self._lines:
            self.end()
        cells = line.strip().strip("|").split("|")
        if not line.lstrip().startswith("|-"):
            self._rows.append([_plain(cell.strip()) for cell in cells])

    def _keyword(self, name: str, value: str) -> None:
        if name == "title" and value:
            self.title = " ".join(_plain(value).split())[:300]
        elif name in _KEPT and value:
            self.metadata[name] = value[:1000]


def _plain(text: str) -> str:
    text = _LINK.sub(lambda link: link[2] or link[1], text)
    return _EMPHASIS.sub(r"\2", text)
