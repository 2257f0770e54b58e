"""Org: headlines, paragraphs, lists and tables. Drawers, planning lines and most keywords are reported as metadata."""

import re
from typing import Any

from consumers.omissions import OmissionKind
from consumers.parsing.formats.text import text_parser
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import fill_rows
from consumers.splitting import ParsedText

_HEADLINE = re.compile(
    r"(\*+)\s+((?:(?:TODO|DONE|NEXT|WAITING|CANCELLED)\s+)?(?:\[#\w\]\s*)?)(.*?)(?:\s+:([\w@#%:]+):)?\s*\Z"
)
_KEYWORD = re.compile(r"[ \t]*#\+(\w+)(?:\[([^\]\n]*)\])?:[ \t]*(.*)")
_BLOCK = re.compile(r"[ \t]*#\+(begin|end)_(\w+)(?:[ \t]+\w+\b)?[ \t]*(.*)", re.IGNORECASE)
_DRAWER = re.compile(r"[ \t]*:[\w-]+:[ \t]*\Z")
_PLANNING = re.compile(r"[ \t]*(?:SCHEDULED|DEADLINE|CLOSED):[ \t]*[<\[]")
_ITEM = re.compile(r"[ \t]*(?:[-+]|(\d+[.)])|(?<=[ \t])\*)[ \t]+(?:\[@\w+\][ \t]*)?(.*)")
_LINK = re.compile(r"\[\[([^\[\]\n]+)\](?:\[([^\[\]\n]+)\])?\]")
_EMPHASIS = re.compile(r"(?<![\w*/=~+])([*/=~+])(?=\S)([^\n]*?\S)\1(?![\w*/=~+])")
_COMMENT = re.compile(r"[ \t]*#(?: (.*)|\Z)")
_KEPT = ("author", "date", "language", "description", "keywords", "subtitle")
MAX_TAGS = 100
_LEFT_OUT_BLOCKS = {"comment": OmissionKind.COMMENT, "export": OmissionKind.OTHER}


@text_parser
def parse_org(text: str, outline: Outline) -> ParsedText:
    lines = text.split("\n")
    reader = _Reader(outline, _drawers(lines))
    for number, line in enumerate(lines, 1):
        reader.line(line, number)
    reader.end()
    return outline.document(reader.title, reader.metadata)


def _drawers(lines: list[str]) -> set[int]:
    """Returns the numbers of the lines that begin a drawer. A drawer has a matching `:END:` below the same headline."""
    found = set()
    ends = False
    for number in range(len(lines), 0, -1):
        line = lines[number - 1]
        if line.strip().upper() == ":END:":
            ends = True
        elif _DRAWER.match(line) or line.startswith("*"):
            if ends and not line.startswith("*"):
                found.add(number)
            ends = False
    return found


class _Reader:
    """Parses Org line by line, as its syntax allows."""

    def __init__(self, outline: Outline, drawers: set[int]) -> None:
        self.outline = outline
        self.drawers = drawers
        self.title = ""
        self.metadata: dict[str, Any] = {}
        self._lines: list[str] = []
        self._first: int | None = None
        self._joint = "\n\n"
        self._block = ""
        self._in_drawer = False
        self._rows: list[list[str]] = []
        self._header: list[str] | None = None

    def line(self, line: str, number: int) -> None:
        if match := _BLOCK.match(line):
            self.end()
            self._block = match[2].lower() if match[1].lower() == "begin" else ""
            self._report(OmissionKind.METADATA, match[3])
        elif self._block:
            if self._block in _LEFT_OUT_BLOCKS:
                self._report(_LEFT_OUT_BLOCKS[self._block], line)
            else:
                self._add(line, number)
        elif self._in_drawer or number in self.drawers:
            if self._in_drawer and line.strip().upper() != ":END:":
                self._report(OmissionKind.METADATA, line)
            self._in_drawer = line.strip().upper() != ":END:"
        elif match := _HEADLINE.match(line):
            self.end()
            self._report(OmissionKind.METADATA, match[2])
            self._tag(match[4])
            self.outline.heading(len(match[1]), _plain(match[3]), line=number)
        elif match := _KEYWORD.match(line):
            self._keyword(match[1].lower(), match[2] or "", match[3].strip(), number)
        elif not line.strip():
            self.end()
        elif line.lstrip().startswith("|"):
            self._row(line)
        elif match := _ITEM.match(line):
            listed = self._joint == "\n" and bool(self._lines)
            self.end()
            self._joint = "\n" if listed else "\n\n"
            self._add(f"{match[1] or '-'} {_plain(match[2])}", number)
            self._joint = "\n"
        elif _PLANNING.match(line):
            self._report(OmissionKind.METADATA, line)
        elif match := _COMMENT.match(line):
            self._report(OmissionKind.COMMENT, match[1])
        else:
            self._add(_plain(line.strip()), number)

    def end(self) -> None:
        text = "\n".join(self._lines)
        self.outline.text(text if not self._block else text.rstrip(), self._joint, line=self._first)
        self._lines, self._first, self._joint = [], None, "\n\n"
        fill_rows(self.outline, self._rows, self._header)
        self._rows, self._header = [], None

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
        elif len(self._rows) == 1 and self._header is None:  # a rule below the first row makes it the header
            self._header = self._rows.pop()

    def _keyword(self, name: str, short: str, value: str, number: int) -> None:
        value = _plain(value)
        if name == "title" and value:
            self.title = " ".join(f"{self.title} {value}".split())[:300]
        elif name in _KEPT and value:
            self.metadata[name] = f"{self.metadata.get(name, '')} {value}".strip()[:1000]
        elif name == "filetags":
            self._tag(value)
        elif name == "caption":
            self.end()
            self.outline.text(value, line=number)
            self._report(OmissionKind.METADATA, short)
        else:
            self._report(OmissionKind.EMBEDDED if name == "include" else OmissionKind.METADATA, value)

    def _tag(self, tags: str | None) -> None:
        for tag in (tags or "").replace(":", " ").split():
            kept = self.metadata.setdefault("tags", [])
            if len(kept) >= MAX_TAGS:
                self._report(OmissionKind.METADATA, tag)
            elif tag not in kept:
                kept.append(tag)

    def _report(self, kind: OmissionKind, text: str | None) -> None:
        self.outline.omissions.add_words(kind, text or "")


def _plain(text: str) -> str:
    text = _LINK.sub(lambda link: link[2] or link[1], text)
    return _EMPHASIS.sub(r"\2", text)
