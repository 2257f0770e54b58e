"""Parser for RTF (specification 1.9.1).

The library striprtf is not used: it decodes all fonts with one code page and drops headers, footnotes, comments and field
values.
"""

import codecs
import re
from dataclasses import dataclass, field, replace
from typing import Any

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.office.tables import fill_table
from consumers.parsing.limits import Limits, TooLarge
from consumers.parsing.office_properties import sensible_title
from consumers.parsing.outline import Outline, comment_text
from consumers.parsing.spanned_tables import Cell
from consumers.splitting import ParsedText

_TOKEN = re.compile(
    r"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\(.)|([{}])|([^\\{}\r\n]+)|[\r\n]+|\\", re.DOTALL
)
_CHARACTERS = {
    "tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“",
    "rdblquote": "”", "bullet": "•", "emspace": " ", "enspace": " ", "qmspace": " ", "softline": "\n", "lbr": "\n",
}  # fmt: skip
_SYMBOLS = {"~": "\u00a0", "_": "-", "\\": "\\", "{": "{", "}": "}", "\n": "\n", "\r": "\n"}
_CHARSETS = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "cp950", 161: "cp1253",
    162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
    254: "cp437", 255: "cp850",
}  # fmt: skip
_CODE_PAGES = {"ansi": "cp1252", "mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
_SKIPPED = frozenset(
    (
        "colortbl", "stylesheet", "listtable", "listoverridetable", "rsidtbl", "fldinst", "themedata", "datastore", "filetbl",
        "latentstyles", "xmlnstbl", "objdata", "objclass", "objname", "bkmkstart", "bkmkend", "nonshppict", "panose",
        "ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn", "revtbl", "template", "ffname", "atnid", "atnref",
        "atndate", "atntime", "atrfstart", "atrfend", "atnparent", "datafield", "nesttableprops",
    )
)  # fmt: skip
_MARGINS = frozenset(("header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf"))
_NOTES = frozenset(("footnote", "annotation", "shptxt", "xe", "tc", "ffhelptext", "ffstattext", "ffdeftext"))
_HIDDEN = frozenset(("xe", "tc"))
_VALUES = frozenset(
    ("title", "subject", "author", "operator", "manager", "company", "category", "keywords", "comment", "doccomm", "hlinkbase",
     "propname", "staticval", "atnauthor", "sn", "sv")
)  # fmt: skip
"""Groups whose text is a value, not part of the text flow."""
_INSIDE = frozenset(
    ("shpinst", "shppict", "info", "userprops", "formfield", "ud", "do", "dptxbxtext", "fldrslt", "result")
)
"""Groups that are parsed even after `\\*`, which allows parsers to ignore a group."""
_READ_AGAIN = frozenset(("ud", "formfield"))
"""Groups that are parsed even inside a skipped group."""
_SHAPE_TEXTS = frozenset(("wzDescription", "gtextUNICODE", "wzTooltip"))
_METADATA = {"author": "author", "operator": "last_author", "subject": "subject", "keywords": "keywords",
             "doccomm": "description", "company": "company", "category": "category", "manager": "manager"}  # fmt: skip
_MAX_DEPTH = 10_000


@dataclass(slots=True)
class _Flow:
    """Paragraphs and table rows of the body, a note or a header.

    Notes, comments and values in `trailing` follow the paragraph that refers to them.
    """

    kind: str = ""
    parts: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    items: list[tuple[int | None, str | list[str]]] = field(default_factory=list)
    """(heading level, text) of each paragraph; level None for body text. (None, cells) for a table row."""
    trailing: list[str] = field(default_factory=list)
    level: int | None = None

    def end_paragraph(self) -> None:
        text = clean_text("".join(self.parts)).strip()
        self.parts = []
        if text:
            self.items.append((self.level, text))
        self.items += [(None, each) for each in self.trailing]
        self.trailing = []

    def end_cell(self) -> None:
        self.cells.append(" ".join([*clean_text("".join(self.parts)).split(), *self.trailing]))
        self.parts, self.trailing = [], []

    def end_row(self) -> None:
        if self.parts:
            self.end_cell()
        if any(self.cells):
            self.items.append((None, self.cells))
        self.cells = []

    def text(self) -> str:
        self.end_row() if self.cells else self.end_paragraph()
        return "\n".join(item if isinstance(item, str) else "; ".join(item) for _, item in self.items)


@dataclass(frozen=True, slots=True)
class _State:
    """Formatting state that a group inherits and that is restored at the group's end."""

    skip: bool = False
    name: str = ""
    font: int | None = None
    after_unicode: int = 1
    deleted: bool = False
    hidden: bool = False
    is_property: bool = False
    """Whether the group is in `info` or `userprops`. The text in such a group is not part of the document."""


def parse_rtf(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    if len(data) > 8 * limits.text_chars:
        raise TooLarge(f"{len(data):,} characters of RTF, more than {8 * limits.text_chars:,}; split it up")
    reader = _Reader(omissions)
    reader.read(data.decode("latin-1"))
    outline = Outline(limits.text_chars, omissions)
    for text in reader.margins:
        outline.running_text(text)
    _fill(outline, reader.body.items)
    found = {name: reader.values[key] for key, name in _METADATA.items() if reader.values.get(key)}
    return ParsedText(outline.done(), sensible_title(reader.values.get("title", "")), found | reader.stated)


class _Reader:
    def __init__(self, omissions: Omissions) -> None:
        self.omissions = omissions
        self.body = _Flow()
        self.flows = [self.body]
        self.margins: list[str] = []
        self.values: dict[str, str] = {}
        self.stated: dict[str, Any] = {}
        """Custom properties of the document."""
        self.state = _State()
        self.groups: list[tuple[_State, int]] = []
        self.encoding = "cp1252"
        self.fonts: dict[int, str] = {}
        self.defined: int | None = None
        self.default: int | None = None
        self.pending = bytearray()
        self.high = ""
        self.value = ""
        self.ignore = 0
        self.starred = False
        self.choices: list[str] = []
        self.hidden: list[str] = []
        """Hidden text of the open paragraph or cell."""

    def read(self, source: str) -> None:
        at, end = 0, len(source)
        while at < end:
            token = _TOKEN.match(source, at)
            assert token is not None  # the last alternatives match any character
            at = token.end()
            word, number, byte, symbol, brace, text = token.groups()
            if self.ignore and (byte or text):
                at = self._fallback(at, text)
            elif byte:
                self.pending.append(int(byte, 16))
            elif text:
                self.pending += text.encode("latin-1")
            elif brace:
                self._decode()
                self._open() if brace == "{" else self._close()
            elif symbol:
                self._symbol(symbol)
            elif word == "bin":
                at += max(int(number or 0), 0)
            elif word:
                self._word(word, int(number) if number else None)
        self._decode()
        while self.groups:
            self._close()
        self._report_hidden()
        self.body.end_row() if self.body.cells else self.body.end_paragraph()

    def _fallback(self, at: int, text: str | None) -> int:
        """Skips the characters that readers without Unicode show in place of `\\u`. Returns the position at which parsing
        continues."""
        skipped = min(self.ignore, len(text)) if text else 1
        self.ignore -= skipped
        return at - (len(text) - skipped) if text else at

    def _open(self) -> None:
        if len(self.groups) >= _MAX_DEPTH:
            raise TooLarge(f"groups nested deeper than {_MAX_DEPTH:,}; exclude it")
        self.groups.append((self.state, len(self.flows)))
        self.state = replace(self.state, name="")
        self.ignore, self.starred = 0, False

    def _close(self) -> None:
        self.ignore, self.starred = 0, False
        if not self.groups:
            return
        name = self.state.name
        if name in _VALUES and not self.state.skip:
            self._end_value(name)
        elif name == "formfield" and self.choices:
            self.flows[-1].trailing.append(", ".join(self.choices))
            self.choices = []
        elif name == "ffl" and self.value.strip():
            self.choices.append(self.value.strip())
        self.state, flows = self.groups.pop()
        while len(self.flows) > flows:
            self._end_flow(self.flows.pop())

    def _end_value(self, name: str) -> None:
        value, self.value = clean_text(self.value).strip(), ""
        if name == "sv":
            if self.values.get("sn") in _SHAPE_TEXTS and value:
                self.flows[-1].trailing.append(value)
        elif name == "staticval":
            if value and self.values.get("propname"):
                self.stated.setdefault(self.values["propname"][:100], value[:1000])
        elif name in ("sn", "propname", "atnauthor"):
            self.values[name] = value
        else:
            self.values.setdefault(name, value[:1000])

    def _end_flow(self, flow: _Flow) -> None:
        text = flow.text()
        if not text:
            return
        if flow.kind in _MARGINS:
            self.margins.append(text)
        elif flow.kind in _HIDDEN:
            self.omissions.add(OmissionKind.HIDDEN, text)
        elif flow.kind == "annotation":
            self.flows[-1].trailing.append(comment_text(text, self.values.pop("atnauthor", "")))
        else:
            self.flows[-1].trailing.append(text)

    def _symbol(self, symbol: str) -> None:
        if symbol == "*":
            self.starred = True
        elif symbol in _SYMBOLS:
            self._decode()
            self.ignore = 0
            if symbol in "\r\n":
                self._word("par", None)
            else:
                self._put(_SYMBOLS[symbol])

    def _word(self, word: str, number: int | None) -> None:
        self._decode()
        starred, self.starred = self.starred, False
        if word == "u" and number is not None:
            self._unicode(number % 0x10000)
            return
        self.ignore = 0
        if word in _SKIPPED or (starred and word not in _INSIDE | _NOTES | _VALUES | _MARGINS | {"ffl"}):
            self.state = replace(self.state, skip=True, name=word)
        elif word in ("pict", "upr", "fonttbl"):
            if word == "pict" and not self.state.skip:
                self.omissions.add(OmissionKind.PICTURE)
            self.state = replace(self.state, skip=True, name=word)
        elif word in _READ_AGAIN:
            self.state = replace(self.state, skip=False, name=word)
        elif self.state.skip and word not in ("f", "fcharset", "cpg", "uc"):
            return
        elif word in _MARGINS or word in _NOTES:
            self.state = replace(self.state, name=word, hidden=False)
            self.flows.append(_Flow(word))
        elif word in _VALUES or word in _INSIDE or word == "ffl":
            is_property = self.state.is_property or word in ("info", "userprops")
            self.state = replace(self.state, name=word, is_property=is_property)
            self.value = ""
        else:
            self._control(word, number)

    def _control(self, word: str, number: int | None) -> None:
        flow = self.flows[-1]
        match word:
            case "par" | "sect" | "page" | "row" | "nestrow" | "cell" | "nestcell" if not self.state.skip:
                self._report_hidden()
                if word in ("cell", "nestcell"):
                    flow.end_cell()
                elif word in ("row", "nestrow"):
                    flow.end_row()
                elif flow.cells:
                    flow.parts.append(" ")
                else:
                    flow.end_paragraph()
            case "pard":
                flow.level = None
            case "outlinelevel":
                flow.level = number + 1 if number is not None and 0 <= number < 9 else None
            case "trowd":
                if not flow.cells and flow.parts:
                    flow.end_paragraph()
            case "f":
                self.defined = number
                self.state = replace(self.state, font=number)
            case "fcharset":
                if self.defined is not None and number in _CHARSETS:
                    self.fonts.setdefault(self.defined, _CHARSETS[number])
            case "cpg" | "ansicpg":
                self._code_page(word, number)
            case "deff":
                self.default = number
            case "ansi" | "mac" | "pc" | "pca":
                self.encoding = _CODE_PAGES[word]
            case "plain":
                self.state = replace(self.state, font=self.default, deleted=False, hidden=False)
            case "uc":
                self.state = replace(self.state, after_unicode=min(max(number or 0, 0), 16))
            case "deleted":
                self.state = replace(self.state, deleted=number != 0)
            case "v":
                self.state = replace(self.state, hidden=number != 0)
            case "u":
                pass
            case _ if word in _CHARACTERS:
                self._put(_CHARACTERS[word])

    def _code_page(self, word: str, number: int | None) -> None:
        name = "utf-8" if number == 65001 else f"cp{number}"
        try:
            codecs.lookup(name)
        except LookupError:
            return
        if word == "ansicpg":
            self.encoding = name
        elif self.defined is not None:
            self.fonts[self.defined] = name

    def _unicode(self, code: int) -> None:
        """Adds one UTF-16 unit. A surrogate pair results in one character."""
        self.ignore = self.state.after_unicode
        if 0xD800 <= code < 0xDC00:
            self.high = chr(code)
            return
        character = self.high + chr(code)
        self.high = ""
        self._put(character.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def _decode(self) -> None:
        """Decodes the pending bytes with the code page of the current font."""
        if not self.pending:
            return
        data = bytes(self.pending)
        self.pending.clear()
        if self.state.skip:
            return
        font = self.default if self.state.font is None else self.state.font
        encoding = self.fonts.get(font, self.encoding) if font is not None else self.encoding
        if encoding == "cp1252" and self.encoding != "cp1252":
            encoding = self.encoding  # the document's code page is more reliable than a default font's
        self._put(data.decode(encoding, "replace"))

    def _put(self, text: str) -> None:
        if self.state.skip:
            return
        if self.state.deleted:
            self.omissions.add(OmissionKind.HIDDEN, f"deleted: {text}")
        elif self.state.name in _VALUES or self.state.name == "ffl":
            self.value += text
        elif self.state.is_property:
            self.omissions.add_words(OmissionKind.METADATA, text)
        elif self.state.name not in ("formfield", "shpinst"):
            (self.hidden if self.state.hidden else self.flows[-1].parts).append(text)

    def _report_hidden(self) -> None:
        self.omissions.add_words(OmissionKind.HIDDEN, clean_text("".join(self.hidden)))
        self.hidden = []


def _fill(outline: Outline, items: list[tuple[int | None, str | list[str]]]) -> None:
    rows: list[list[Cell]] = []
    for level, item in [*items, (None, "")]:
        if isinstance(item, list):
            rows.append([Cell(text) for text in item])
            continue
        fill_table(outline, rows)
        rows = []
        if level is None:
            outline.text(item)
        else:
            outline.heading(level, item)
