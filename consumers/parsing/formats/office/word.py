"""Word files (WordprocessingML, ECMA-376 part 1, 17), parsed from their parts by lxml.

No maintained library extracts all text: mammoth omits headers, footers, formulas, charts, alternative texts, included documents
and list numbers; python-docx gives no reading order for text boxes and notes.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.file_name import ending_of
from consumers.parsing.format_detection import detect_format
from consumers.parsing.formats.office.drawing import A as DRAWING
from consumers.parsing.formats.office.drawing import (
    add_pictures,
    all_words,
    alternative_texts,
    linked_texts,
    paragraph_text,
)
from consumers.parsing.formats.office.formula import formula_text
from consumers.parsing.formats.office.numbering import BULLET, W, value_of
from consumers.parsing.formats.office.package import ALTERNATE, OfficePackage, chosen, relation_id, whole_number
from consumers.parsing.formats.office.paragraph_rules import ParagraphRules
from consumers.parsing.formats.office.tables import fill_table, row_texts
from consumers.parsing.limits import Limits, NotIndexed, WrongKind
from consumers.parsing.office_properties import document_properties
from consumers.parsing.outline import Outline, comment_text
from consumers.parsing.spanned_tables import MAX_COLUMNS, Cell
from consumers.parsing.zip_archive import check_members, open_package
from consumers.splitting import ParsedText

Element = Any
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_VML = "{urn:schemas-microsoft-com:vml}"
_OFFICE_VML = "{urn:schemas-microsoft-com:office:office}"
_CONTENTS_STYLES = ("toc ", "table of figures")
_MAX_INCLUDED = 100
_MAX_INCLUDED_DEPTH = 2
_SKIPPED = frozenset(
    f"{W}{name}"
    for name in (
        "rPr", "pPr", "tblPr", "trPr", "tcPr", "tblGrid", "sdtEndPr", "instrText", "delInstrText", "fldData", "sectPr",
        "numberingChange", "proofErr", "rt",
    )
)  # fmt: skip
_SIGNS = {
    f"{W}tab": "\t", f"{W}ptab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-",
}  # fmt: skip
_NOTES = {f"{W}footnoteReference": "footnotes", f"{W}endnoteReference": "endnotes", f"{W}commentReference": "comments"}
_BLOCKS = frozenset((f"{W}p", f"{W}tbl", f"{W}altChunk"))
_PRIVATE = range(0xE000, 0xF900)
"""Unicode's private use area: the meaning of its characters depends on the font."""
_SIGN_FONT = re.compile("Symbol|Wingdings|Webdings|Marlett", re.IGNORECASE)
_OWN_SIGNS = 0x100
"""In the fonts that `_SIGN_FONT` matches, codes below this number are signs, not letters."""


def parse_docx(data: bytes, limits: Limits, omissions: Omissions, depth: int = 0) -> ParsedText:
    """Parses a file. `depth` is the number of files that include it, directly or indirectly."""
    with open_package(data, limits) as archive:
        check_members(archive)
        package = OfficePackage(archive)
        metadata, title = document_properties(archive)
        reader = _WordReader(package, package.main_part(), limits, omissions, depth)
        blocks = reader.document()
        package.report_unread(omissions)
    pictures = (*reader.margins.pictures, *reader.outline.pictures_after(len(reader.margins.blocks)))
    return ParsedText(blocks, title or reader.outline.first_heading, metadata, pictures=pictures)


class _WordReader:
    """Adds the text of a document to an outline in reading order. Notes follow the paragraph that refers to them."""

    def __init__(self, package: OfficePackage, part: str, limits: Limits, omissions: Omissions, depth: int) -> None:
        self.package = package
        self.part = part
        self.main = part
        self.limits = limits
        self.omissions = omissions
        self.depth = depth
        self.outline = Outline(limits.text_chars, omissions)
        self.margins = Outline(limits.text_chars, omissions)
        self.target = self.outline
        self.cell: list[str] | None = None
        self.included = 0
        self.contents: list[str] = []
        self.hidden: list[str] = []
        self.rules = ParagraphRules(self._first("styles"), self._first("numbering"))
        self.notes = {
            kind: {note.get(f"{W}id") or "": note for note in self._notes(kind)}
            for kind in ("footnotes", "endnotes", "comments")
        }

    def document(self) -> tuple[Any, ...]:
        """Returns all blocks: headers and footers, then the body, then notes without a reference."""
        root = self.package.tree(self.main)
        if root is None:
            return ()
        for background in root.iterchildren(f"{W}background"):
            self._blocks(background)
        for body in root.iterchildren(f"{W}body"):
            self._blocks(body)
        if self.contents:
            self.omissions.add(OmissionKind.CONTENTS_TABLE, "; ".join(self.contents))
        for kind in self.notes:
            for note_id in list(self.notes[kind]):
                self._note(kind, note_id)
        self._margins()
        return (*self.margins.done(), *self.outline.done())

    def _first(self, kind: str) -> Element | None:
        part = next(self.package.related(self.main, kind), None)
        return None if part is None else self.package.tree(part)

    def _notes(self, kind: str) -> Iterator[Element]:
        root = self._first(kind)
        for note in () if root is None else root:
            if note.get(f"{W}type") in (None, "normal"):  # other types are separator lines
                yield note

    def _margins(self) -> None:
        """Adds headers and footers. Sections and first pages repeat headers, so each text is added only once."""
        self.target = self.margins
        for part in self.package.related(self.main, "header", "footer"):
            root = self.package.tree(part)
            if root is None:
                continue
            with self._in_part(part), self._captured() as found:
                self._blocks(root)
            for text in found:
                self.margins.running_text(text)
        self.target = self.outline

    @contextmanager
    def _in_part(self, part: str) -> Iterator[None]:
        """Resolves relation ids in `part` while the context is active."""
        before, self.part = self.part, part
        try:
            yield
        finally:
            self.part = before

    @contextmanager
    def _captured(self) -> Iterator[list[str]]:
        """Collects texts in the yielded list instead of adding blocks: for table cells and headers."""
        before, self.cell = self.cell, []
        found = self.cell
        try:
            yield found
        finally:
            self.cell = before

    def _put(self, text: str, joint: str = "\n\n") -> None:
        text = text.strip()
        if self.cell is None:
            self.target.text(text, joint)
        elif text:
            self.cell.append(text)

    def _blocks(self, container: Element) -> None:
        for child in container:
            if child.tag == f"{W}p":
                self._paragraph(child)
            elif child.tag == f"{W}tbl":
                self._table(child)
            elif child.tag == f"{W}altChunk":
                self._chunk(child)
            elif child.tag == f"{W}sdtPr":
                self._control(child)
            elif child.tag in (f"{W}moveFrom", f"{W}del"):
                self._deleted(child)
            elif child.tag == ALTERNATE:
                for each in chosen(child, all_words):
                    self._blocks(each)
            elif child.tag == f"{_MATH}oMathPara":
                self._put(formula_text(child))
            elif child.tag not in _SKIPPED:
                self._blocks(child)

    def _paragraph(self, node: Element) -> None:
        parts: list[str] = []
        trailing: list[Element | str | tuple[str, str]] = []
        self._inline(node, parts, trailing)
        text = clean_text("".join(parts)).strip()
        self.omissions.add_words(OmissionKind.HIDDEN, clean_text("".join(self.hidden)))
        self.hidden = []
        style, level, label = self.rules.of(node)
        if style.startswith(_CONTENTS_STYLES):
            self.contents += [text] if text else []
            return
        if text or label not in ("", BULLET):
            if level is not None and self.cell is None:
                self.target.heading(level, f"{'' if label == BULLET else label}{text}")
            else:
                self._put(f"{label}{text}", "\n" if label or style.startswith("list") else "\n\n")
        for each in trailing:
            if isinstance(each, str):
                self._put(each, "\n")
            elif isinstance(each, tuple):
                self._note(*each)
            else:
                self._blocks(each)

    def _inline(self, node: Element, parts: list[str], trailing: list[Element | str | tuple[str, str]]) -> None:
        """Appends the text of a paragraph to `parts`, and separate content (notes, text boxes, charts) to `trailing`."""
        for child in node:
            tag = child.tag
            if tag == f"{W}t":
                parts.append(child.text or "")
            elif tag in _SIGNS:
                parts.append(_SIGNS[tag])
            elif tag in _SKIPPED:
                continue
            elif tag == f"{W}sym":
                self._symbol(child, parts)
            elif tag in _NOTES:
                trailing.append((_NOTES[tag], child.get(f"{W}id") or ""))
            elif tag == f"{_MATH}oMath":
                parts.append(formula_text(child))
            elif tag in (f"{W}del", f"{W}moveFrom"):
                self._deleted(child)
            elif tag == f"{W}ruby":
                self._inline(child, parts, trailing)
                reading = "".join(each.text or "" for each in child.iterfind(f"{W}rt//{W}t"))
                parts.append(f"({reading})" if reading else "")
            elif tag == f"{W}ffData":
                parts.append(_form_field(child))
                trailing += _attributes(child, "helpText", "statusText")
            elif tag == f"{W}sdtPr":
                self._control(child)
            elif tag == f"{W}hyperlink":
                self._inline(child, parts, trailing)
                if tip := (child.get(f"{W}tooltip") or "").strip():
                    trailing.append(clean_text(tip))
            elif tag == f"{W}txbxContent":
                trailing.append(child)
            elif tag in (f"{W}drawing", f"{W}pict", f"{W}object"):
                self._drawing(child, trailing)
            elif tag == ALTERNATE:
                for each in chosen(child, all_words):
                    self._inline(each, parts, trailing)
            elif tag in _BLOCKS:
                trailing.append(node)
                return
            else:
                is_hidden = tag == f"{W}r" and self.rules.hides(child)
                self._inline(child, self.hidden if is_hidden else parts, trailing)

    def _drawing(self, node: Element, trailing: list[Element | str | tuple[str, str]]) -> None:
        """Appends a drawing's alternative texts, WordArt, charts, diagrams and text boxes to `trailing`."""
        found = [*alternative_texts(node), *linked_texts(node, self.part, self.package)]
        for each in node.iter(f"{_VML}textpath", f"{_VML}imagedata", f"{_VML}shape", f"{_VML}rect", f"{_VML}image"):
            for name in ("string", f"{_OFFICE_VML}title", "alt"):
                if (text := (each.get(name) or "").strip()) and text not in found:
                    found.append(clean_text(text))
        add_pictures(node, self.part, self.package, self.target, described=bool(found))
        trailing += found
        nested = set(node.iterfind(f".//{W}txbxContent//{W}txbxContent"))
        boxes = [box for box in node.iter(f"{W}txbxContent") if box not in nested]
        trailing += boxes
        words = set(" ".join(all_words(box) for box in boxes).split())
        for paragraph in node.iter(f"{DRAWING}p"):
            if (text := paragraph_text(paragraph)) and not set(text.split()) <= words:
                trailing.append(text)

    def _symbol(self, node: Element, parts: list[str]) -> None:
        """Appends a character, given by its number in a font. Reports it as unknown if the font has its own signs."""
        try:
            code = int(node.get(f"{W}char") or "", 16)
            character = chr(code)
        except (ValueError, OverflowError):
            return
        if code not in _PRIVATE and not (code < _OWN_SIGNS and _SIGN_FONT.match(node.get(f"{W}font") or "")):
            parts.append(character)
        else:
            self.omissions.add(OmissionKind.UNKNOWN_CHARACTER)

    def _deleted(self, node: Element) -> None:
        """Reports text that a tracked change deletes or moves away."""
        words = "".join(each.text or "" for each in node.iter(f"{W}delText", f"{W}t"))
        if words.strip():
            self.omissions.add(OmissionKind.HIDDEN, f"deleted: {clean_text(words).strip()}")

    def _control(self, properties: Element) -> None:
        """Reports the name of a content control (17.5.2.1). The text of the control does not contain the name."""
        for text in _attributes(properties, "alias"):
            self.omissions.add(OmissionKind.METADATA, text)

    def _note(self, kind: str, note_id: str) -> None:
        note = self.notes[kind].pop(note_id, None)
        if note is None:
            return
        part = next(self.package.related(self.main, kind))
        with self._in_part(part):
            if kind != "comments":
                self._blocks(note)
                return
            with self._captured() as found:
                self._blocks(note)
            self._put(comment_text(" ".join(found), note.get(f"{W}author") or ""))

    def _table(self, table: Element) -> None:
        properties = table.find(f"{W}tblPr")
        for text in _attributes(properties, "tblCaption", "tblDescription"):
            self._put(text)
        rows = [(row, list(_descend(row, f"{W}tc"))) for row in _descend(table, f"{W}tr")]
        if self.cell is None and all(len(cells) == 1 for _, cells in rows):  # a frame around blocks
            for _, cells in rows:
                self._blocks(cells[0])
            return
        grid: list[list[Cell]] = []
        above: dict[int, Cell] = {}
        for row, cells in rows:
            is_head = row.find(f"{W}trPr/{W}tblHeader") is not None
            column = whole_number(value_of(row.find(f"{W}trPr"), "gridBefore"))
            line: list[Cell] = []
            for cell in cells:
                width = max(1, min(whole_number(value_of(cell.find(f"{W}tcPr"), "gridSpan")), MAX_COLUMNS))
                with self._captured() as found:
                    self._blocks(cell)
                merge = cell.find(f"{W}tcPr/{W}vMerge")
                if merge is not None and merge.get(f"{W}val") != "restart" and column in above:
                    origin = above[column]
                    origin.text = " ".join(filter(None, (origin.text, *found)))
                    origin.high += 1
                else:
                    above[column] = Cell(clean_text(" ".join(found)), width, is_name=is_head)
                    line.append(above[column])
                column += width
            grid.append(line)
        if self.cell is None:
            fill_table(self.target, grid)
        else:
            self.cell += row_texts(grid, self.omissions)

    def _chunk(self, node: Element) -> None:
        """Adds a document that this document includes (17.17.2.1): HTML, text, RTF, MIME or Word."""
        relation = self.package.relations(self.part).get(relation_id(node))
        data = None if relation is None or relation.external else self.package.data(relation.target)
        self.included += 1
        if relation is None or data is None or self.depth >= _MAX_INCLUDED_DEPTH or self.included > _MAX_INCLUDED:
            self.omissions.add(OmissionKind.EMBEDDED, "" if relation is None else relation.target)
            return
        try:
            included = self._included(relation.target, data)
        except NotIndexed as error:
            self.omissions.add(OmissionKind.EMBEDDED, f"{relation.target} ({error})")
            return
        if self.cell is None:
            self.target.include(included, len(self.target.headings) + 1)
        else:
            self.cell += [block.text for block in included.blocks]

    def _included(self, name: str, data: bytes) -> ParsedText:
        format = detect_format(name.encode(), data)
        if format.name == "docx":
            return parse_docx(data, self.limits, self.omissions, self.depth + 1)
        if format.parser is None:
            raise WrongKind("it contains several documents")
        return format.load_parser(ending_of(name.encode()))(data, self.limits, self.omissions)


def _attributes(node: Element | None, *names: str) -> Iterator[str]:
    for name in names:
        if text := value_of(node, name).strip():
            yield clean_text(text)


def _descend(node: Element, tag: str) -> Iterator[Element]:
    """Yields the rows of a table or the cells of a row, also inside content controls and tracked changes."""
    for child in node:
        if child.tag == tag:
            yield child
        elif child.tag not in _SKIPPED and child.tag not in _BLOCKS and child.tag not in (f"{W}tr", f"{W}tc"):
            yield from _descend(child, tag)


def _form_field(node: Element) -> str:
    """Returns the value of a form field that is not in the text: the selected list entry or the state of a check box
    (17.16)."""
    entries = node.find(f"{W}ddList")
    if entries is not None:
        values = [each.get(f"{W}val") or "" for each in entries.iterchildren(f"{W}listEntry")]
        chosen_entry = whole_number(value_of(entries, "result"))
        return values[chosen_entry] if chosen_entry < len(values) else ""
    box = node.find(f"{W}checkBox")
    if box is None:
        return ""
    state = box.find(f"{W}checked")
    state = box.find(f"{W}default") if state is None else state
    return "☒ " if state is not None and state.get(f"{W}val") not in ("0", "false") else "☐ "
