"""Man pages: sections as headings, tagged paragraphs as items, tables row by row."""

import re

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind
from consumers.parsing.formats.markup.man.mdoc import Mdoc
from consumers.parsing.formats.markup.man.roff import Escapes, arguments, control, lines, report, without_programs
from consumers.parsing.formats.text import text_parser
from consumers.parsing.limits import NotADocument
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import fill_rows
from consumers.splitting import ParsedText

_PARAGRAPHS = frozenset(("PP", "P", "LP", "HP", "sp", "RS", "RE", "Pp", "YS"))
_ALTERNATING = frozenset(("BR", "RB", "BI", "IB", "IR", "RI"))
_VERBATIM = frozenset(("nf", "EX", "Vb", "Bd", "DS"))
_VERBATIM_ENDS = frozenset(("fi", "EE", "Ve", "Ed", "DE"))
_HEADINGS = frozenset(("SH", "SS", "Sh", "Ss"))
_TEXTLESS = frozenset("PD DT UC AT UX Bk Ek Bf Ef Sm Rs Re Es Tg Db Hf Ud Bt Sp Os TE EQ EN PS PE".split())
"""Macros whose arguments are not text."""
_TAB = re.compile(r"\btab[ \t]*\((.)\)")
_BULLETS = frozenset("•*-–—·o+□○")


@text_parser
def parse_man(text: str, outline: Outline) -> ParsedText:
    page = _Page(outline)
    page.read(text)
    blocks = outline.done()
    if not blocks and page.source:
        raise NotADocument(f"a redirect to the man page {page.source}, which is indexed itself", FailureCode.NO_TEXT)
    return ParsedText(blocks, page.title, page.metadata)


class _Page:
    """Collects lines into a paragraph until a macro or an empty line ends it."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
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
        self._lists: list[int | None] = []
        """The number of the last item in each open list of mdoc; None in lists without numbers."""
        self._table: list[str] | None = None
        self._link = ""
        """Target of a link without text so far."""
        self._index: list[str] = []

    def read(self, text: str) -> None:
        omissions = self.outline.omissions
        for number, line in without_programs(lines(text, omissions), omissions):
            found = control(line)
            if self._table is not None and found is not None and found[0] in _HEADINGS:
                self._end_table(number)
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
        if self._table is not None:
            self._end_table(0)
        self._end()
        for name in sorted(self.escapes.unused):
            report(OmissionKind.OTHER, self.escapes.strings[name], omissions)
        read = {word for block in self.outline.blocks for word in block.text.casefold().split()}
        for entry in self._index:
            if not read.issuperset(entry.casefold().split()):
                omissions.add(OmissionKind.METADATA, entry)

    def _macro(self, name: str, rest: str, number: int) -> None:
        if name in _HEADINGS:
            self._verbatim = False
            self._end()
            title = " ".join(arguments(rest))
            if title:
                self._heading(name, title, number)
            else:
                self._waits_for = name
        elif name in ("TH", "Dt"):
            self._name(name, [self.escapes.plain(each) for each in arguments(rest)])
        elif name == "Dd":
            self.metadata["date"] = self.escapes.plain(rest)
        elif name == "Os" and rest.strip():
            self.metadata["source"] = self.escapes.plain(rest)
        elif name == "IX":
            self._index.append(self.escapes.plain(" ".join(arguments(rest)[1:])))
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
            if name == "It" and self._lists and self._lists[-1] is not None:
                self._lists[-1] += 1
                self._item, self._joint = f"{self._lists[-1]}. ", "\n"
        elif name == "Bl":
            self._end()
            self._lists.append(0 if "-enum" in rest.split() else None)
        elif name == "El":
            self._end()
            del self._lists[-1:]
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
        elif name == "SY":
            self._end()
            self._text(" ".join(arguments(rest)), number)
        elif name in ("UR", "MT"):
            self._link = rest
        elif name in ("UE", "ME"):
            if self._link:
                self._text(self._link, number)
            self._attach("".join(arguments(rest)))
        elif words := self._words(name, rest):
            self._text(words, number)

    def _words(self, name: str, rest: str) -> str:
        """Returns the text of a macro line. Arguments of unknown macros are text; arguments of requests (names in lower case)
        are not."""
        given = arguments(rest)
        if name in _ALTERNATING:
            return "".join(given)
        if name == "OP":
            return f"[{' '.join(given)}]"
        if name == "MR" and len(given) > 1:
            return f"{given[0]}({given[1]}){''.join(given[2:])}"
        if name == "tl":
            return " ".join(rest[1:].split(rest[:1])) if rest else ""
        if self.mdoc.knows(name):
            return self.mdoc.line([name, *given])
        return "" if name in _TEXTLESS or name.islower() else " ".join(given)

    def _name(self, macro: str, words: list[str]) -> None:
        if not words:
            return
        section = words[1] if len(words) > 1 else ""
        title = f"{words[0].lower() if words[0].isupper() else words[0]}{f'({section})' if section else ''}"
        if self.title:  # a second page in the file
            self.outline.heading(1, title)
            for word in words[2:]:
                report(OmissionKind.METADATA, word, self.outline.omissions)
            return
        self.title = title
        if section:
            self.metadata["section"] = section
        keys = ("date", "source", "manual") if macro == "TH" else ("manual",)
        self.metadata |= {key: value for key, value in zip(keys, words[2:5], strict=False) if value.strip()}

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
        self._link = ""
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
        """Collects a line of a tbl table: layout lines, the last of which ends in ".", then rows with tabs. `T{` and `T}`
        enclose long cells."""
        assert self._table is not None
        if found is not None and found[0] == "TE":
            self._end_table(number)
        elif found is not None:
            self._table.append(self._words(*found))
        else:
            self._table.append(line)

    def _end_table(self, number: int) -> None:
        written, self._table = "\n".join(self._table or []), None
        options = written.partition("\n")[0]
        tab = _TAB.search(options) if options.endswith(";") else None
        layout, ended, body = re.sub(r"\A[^\n]*;\n", "", written).partition(".\n")
        body = body if ended else layout
        body = re.sub(r"T\{\n?(.*?)\n?T\}", lambda cell: " ".join(cell[1].split()), body, flags=re.DOTALL)
        rows = [
            [self.escapes.plain(cell).strip() for cell in row.split(tab[1] if tab else "\t")]
            for row in body.split("\n")
        ]
        fill_rows(self.outline, [row for row in rows if any(cell.strip("_=-") for cell in row)], line=number or None)
