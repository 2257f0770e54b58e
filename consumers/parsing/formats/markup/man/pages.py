"""Man pages: the sections as headings, tagged paragraphs as items, tables row by row."""

import re

from consumers.failure_codes import FailureCode
from consumers.omissions import Omissions
from consumers.parsing.decoding import decode
from consumers.parsing.formats.markup.man.mdoc import Mdoc
from consumers.parsing.formats.markup.man.roff import Escapes, arguments, control, lines, without_programs
from consumers.parsing.formats.text import within_limits
from consumers.parsing.limits import Limits, NotADocument
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import is_header, row_text
from consumers.splitting import ParsedText

_PARAGRAPHS = frozenset(("PP", "P", "LP", "HP", "sp", "RS", "RE", "Pp", "YS"))
_FONTS = frozenset(("B", "I", "SM", "SB", "R", "CW"))
_ALTERNATING = frozenset(("BR", "RB", "BI", "IB", "IR", "RI"))
_VERBATIM = frozenset(("nf", "EX", "Vb", "Bd", "DS"))
_VERBATIM_ENDS = frozenset(("fi", "EE", "Ve", "Ed", "DE"))
_BULLETS = frozenset("•*-–—·o+□○")


def parse_man(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    text = within_limits(decode(data), limits, omissions)
    page = _Page(limits, omissions)
    page.read(text)
    blocks = page.outline.done()
    if not blocks and page.source:
        raise NotADocument(
            f"a man page that only names another, {page.source}; that one is read where it is", FailureCode.NO_TEXT
        )
    return ParsedText(blocks, page.title, page.metadata)


class _Page:
    """Lines are gathered into a paragraph, which ends where a macro or an empty line says so."""

    def __init__(self, limits: Limits, omissions: Omissions) -> None:
        self.outline = Outline(limits.text_chars, omissions)
        self.escapes = Escapes()
        self.mdoc = Mdoc()
        self.title = ""
        self.source = ""
        self.metadata: dict[str, str] = {}
        self._gathered: list[str] = []
        self._line: int | None = None
        self._joint = "\n\n"
        self._item = ""
        self._verbatim = False
        self._waits_for = ""
        self._table: list[str] | None = None

    def read(self, text: str) -> None:
        for number, line in without_programs(lines(text)):
            found = control(line)
            if self._table is not None:
                self._table_line(line, number, found)
            elif found is not None:
                self._macro(*found, number)
            elif self._verbatim:
                self._add(self.escapes.plain(line), number)
            elif not line.strip():
                self._end()
            else:
                self._text(line, number)
        self._end()

    def _macro(self, name: str, rest: str, number: int) -> None:
        if name in ("SH", "SS", "Sh", "Ss"):
            self._verbatim = False
            self._end()
            title = " ".join(arguments(rest))
            if title:
                self._heading(name, title, number)
            else:
                self._waits_for = name
        elif name in ("TH", "Dt"):
            self._name(name, [self.escapes.plain(each) for each in arguments(rest)])
        elif name == "ds":
            self.escapes.define(rest)
        elif name == "so":
            self.source = self.escapes.plain(rest.strip())[:200]
        elif name in _PARAGRAPHS:
            self._end()
        elif name in ("TP", "TQ"):
            self._end()
            self._waits_for = "TP"
        elif name in ("IP", "It"):
            self._end()
            words = self.mdoc.line(arguments(rest)) if name == "It" else (arguments(rest) or [""])[0]
            self._tag(self.escapes.plain(words), number)
        elif name in _VERBATIM:
            self._end()
            self._verbatim = name != "Bd" or bool({"-literal", "-unfilled"} & set(rest.split()))
        elif name in _VERBATIM_ENDS:
            self._end()
            self._verbatim = False
        elif name == "TS":
            self._end()
            self._table = []
        elif name == "br":
            self._gathered.append("\n")
        elif name in _FONTS and rest.strip():
            self._text(" ".join(arguments(rest)), number)
        elif name in _ALTERNATING:
            self._text("".join(arguments(rest)), number)
        elif name == "OP":
            self._text(f"[{' '.join(arguments(rest))}]", number)
        elif name == "SY":
            self._end()
            self._text(" ".join(arguments(rest)), number)
        elif name in ("UE", "ME"):
            self._attach("".join(arguments(rest)))
        elif self.mdoc.knows(name) and (words := self.mdoc.line([name, *arguments(rest)])):
            self._text(words, number)

    def _name(self, macro: str, words: list[str]) -> None:
        if not words:
            return
        section = words[1] if len(words) > 1 else ""
        self.title = f"{words[0].lower() if words[0].isupper() else words[0]}{f'({section})' if section else ''}"
        if section:
            self.metadata["section"] = section
        if macro == "TH":
            found = zip(("date", "source", "manual"), words[2:5], strict=False)
            self.metadata |= {key: value for key, value in found if value.strip()}

    def _text(self, line: str, number: int) -> None:
        text = self.escapes.plain(line)
        waits, self._waits_for = self._waits_for, ""
        if waits == "TP":
            self._tag(text, number)
        elif waits:
            self._heading(waits, line, number)
        else:
            self._add(text if self._verbatim else " ".join(text.split()), number)

    def _heading(self, macro: str, title: str, number: int) -> None:
        text = self.escapes.plain(title)
        self.outline.heading(
            1 if macro in ("SH", "Sh") else 2, text.capitalize() if text.isupper() else text, line=number
        )

    def _tag(self, text: str, number: int) -> None:
        text = text.strip()
        if text in _BULLETS or re.fullmatch(r"[(\[]?\w{1,2}[.)\]]", text):
            self._item, self._joint = ("- " if text in _BULLETS else f"{text} "), "\n"
        elif text:
            self.outline.text(text, "\n\n", line=number)
            self._joint = "\n"

    def _add(self, text: str, number: int) -> None:
        if self._line is None:
            self._line = number
        self._gathered.append(text)
        self._gathered.append("\n" if self._verbatim else " ")

    def _attach(self, text: str) -> None:
        if text and self._gathered and self._gathered[-1] == " ":
            self._gathered[-1:] = [self.escapes.plain(text), " "]

    def _end(self) -> None:
        text = "".join(self._gathered)
        body = (
            text.strip("\n").rstrip()
            if self._verbatim
            else "\n".join(" ".join(each.split()) for each in text.split("\n")).strip()
        )
        if body.strip():
            self.outline.text(self._item + body, self._joint, line=self._line)
            self._item, self._joint = "", "\n\n"
        self._gathered, self._line, self._waits_for = [], None, ""

    def _table_line(self, line: str, number: int, found: tuple[str, str] | None) -> None:
        """Rows of tbl: layout up to a line that ends in a stop, then cells between tabs; `T{` and `T}` enclose long ones."""
        assert self._table is not None
        if found is not None and found[0] == "TE":
            self._end_table(number)
        elif found is not None and found[0] in _FONTS | _ALTERNATING:
            self._table.append(("" if found[0] in _ALTERNATING else " ").join(arguments(found[1])))
        elif found is None:
            self._table.append(line)

    def _end_table(self, number: int) -> None:
        written, self._table = "\n".join(self._table or []), None
        _, _, body = re.sub(r"\A[^\n]*;\n", "", written).partition(".\n")
        body = re.sub(r"T\{\n?(.*?)\n?T\}", lambda cell: " ".join(cell[1].split()), body, flags=re.DOTALL)
        rows = [[self.escapes.plain(cell).strip() for cell in row.split("\t")] for row in body.split("\n")]
        rows = [row for row in rows if any(cell.strip("_=-") for cell in row)]
        header = rows[0] if len(rows) > 1 and is_header(rows[0]) else []
        for place, row in enumerate(rows[1:] if header else rows, 1):
            self.outline.text(row_text(header, row), "\n\n" if place == 1 else "\n", line=number, row=place)
