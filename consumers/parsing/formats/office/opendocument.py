"""OpenDocument (OASIS, version 1.3, part 3) by lxml, packed (ODT, ODS, ODP) or as one XML file (FODT, FODS, FODP).

odfpy and ezodf create an object for each element, and neither has a reading order for notes, frames and objects.
"""

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.embedded_data import decoded_base64
from consumers.parsing.formats.office.numbering import letters, roman
from consumers.parsing.formats.office.package import parse_xml
from consumers.parsing.formats.office.tables import fill_table, is_made_up, table_cell
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.office_properties import sensible_title
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import named_rows
from consumers.parsing.zip_archive import open_package, read_again, read_member
from consumers.splitting import ParsedText, Picture, TextBlock

Element = Any
_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
_TEXT, _TABLE, _OFFICE, _DRAW, _PRESENTATION, _STYLE, _FORM, _META, _SVG = (
    f"{{{_NAMESPACE.format(name)}}}"
    for name in ("text", "table", "office", "drawing", "presentation", "style", "form", "meta", "svg-compatible")
)
_DC = "{http://purl.org/dc/elements/1.1/}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_MATH = "{http://www.w3.org/1998/Math/MathML}"
_BREAKS = {f"{_TEXT}s": " ", f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_FIELDS = tuple(
    f"{_TEXT}{name}"
    for name in ("page-number", "page-count", "sheet-name", "title", "date", "time", "file-name", "page-name")
)
"""Fields of headers and footers whose value is a property of the file or the page."""
_NO_TEXT = frozenset(
    (
        f"{_TEXT}sequence-decls", f"{_TEXT}variable-decls", f"{_TEXT}user-field-decls", f"{_OFFICE}automatic-styles",
        f"{_OFFICE}scripts", f"{_OFFICE}font-face-decls", f"{_TEXT}note-citation", f"{_OFFICE}event-listeners",
        f"{_TABLE}calculation-settings", f"{_TABLE}named-expressions", f"{_DRAW}layer-set", f"{_OFFICE}settings",
        f"{_TABLE}database-ranges",
    )
)  # fmt: skip
_CONTENTS = frozenset(
    f"{_TEXT}{name}"
    for name in ("table-of-content", "alphabetical-index", "illustration-index", "table-index", "object-index")
)
_BLOCKS = frozenset((f"{_TEXT}p", f"{_TEXT}h", f"{_TEXT}list", f"{_TABLE}table"))
_FORM_TEXTS = tuple(f"{_FORM}{name}" for name in ("label", "current-value", "value", "title"))
_MOST_REPEATED = 1000
"""Maximum repetition of a column or row: a sheet's empty remainder is one row that repeats a million times."""
_FIELD_MARK = re.compile(r"<[^<>]*>")
"""The placeholder of a field in a master page: "<number>"."""
_DEEPEST_OBJECT = 3
_OPENOFFICE_1, _DECLARATIONS = b"http://openoffice.org/2000/", 4096


def parse_opendocument(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    if not data.startswith(b"PK"):
        root = parse_xml(data, "the file")
        return _parse(root, root, root, limits, omissions, None)
    with open_package(data, limits) as package:
        if b"encryption-data" in _member(package, "META-INF/manifest.xml"):
            raise NotADocument("protected by a password; save it without one", FailureCode.PROTECTED)
        data = read_member(package, "content.xml")
        if _OPENOFFICE_1 in data[:_DECLARATIONS]:
            raise NotADocument("a file of OpenOffice.org 1; open it in LibreOffice and save it as .odt, .ods or .odp")
        content = parse_xml(data, "content.xml")
        styles, meta = (_optional(_member(package, name), name) for name in ("styles.xml", "meta.xml"))
        return _parse(content, styles, meta, limits, omissions, package)


def _parse(
    content: Element,
    styles: Element | None,
    meta: Element | None,
    limits: Limits,
    omissions: Omissions,
    package: zipfile.ZipFile | None,
) -> ParsedText:
    reader = _Reader(Outline(limits.text_chars, omissions), limits, omissions, package, _list_styles(content, styles))
    body = content.find(f"{_OFFICE}body")
    for kind in () if body is None else body:
        reader.body(kind)
    above, pictures = _margins(reader, styles)
    blocks = (*above, *reader.outline.done())
    title, metadata = _properties(meta)
    is_sheet = any(block.sheet is not None for block in blocks)  # a sheet's name is not the file's title
    title = title or ("" if is_sheet else reader.outline.first_heading)
    return ParsedText(blocks, title, metadata, pictures=(*pictures, *reader.outline.pictures_after(len(above))))


def _member(package: zipfile.ZipFile, name: str) -> bytes:
    return read_member(package, name) if name in package.namelist() else b""


def _optional(data: bytes, name: str) -> Element | None:
    """Return the parsed part, or None if it is missing or damaged; the text does not depend on it."""
    try:
        return parse_xml(data, name) if data else None
    except Unreadable:
        return None


def _properties(root: Element | None) -> tuple[str, dict[str, Any]]:
    if root is None:
        return "", {}
    names = {"title": f"{_DC}title", "creator": f"{_DC}creator", "subject": f"{_DC}subject", "description": f"{_DC}description",
             "language": f"{_DC}language", "keywords": f"{_META}keyword", "created": f"{_META}creation-date",
             "modified": f"{_DC}date", "author": f"{_META}initial-creator"}  # fmt: skip
    found: dict[str, Any] = {}
    for name, tag in names.items():
        stated = [clean_text(node.text.strip()) for node in root.iter(tag) if node.text and node.text.strip()]
        if stated:
            found[name] = "; ".join(stated)[:1000]
    for node in root.iter(f"{_META}user-defined"):
        name = clean_text(node.get(f"{_META}name") or "").strip()
        if name and node.text and node.text.strip():
            found.setdefault(name[:100], clean_text(node.text.strip())[:1000])
    return sensible_title(found.pop("title", "")), found


def _report_hidden(node: Element, omissions: Omissions) -> None:
    """Report a master page's text that no page shows."""
    text = _FIELD_MARK.sub(" ", " ".join(node.itertext()))
    if any(map(str.isalnum, text)):
        omissions.add(OmissionKind.HIDDEN, clean_text(text))


def _margins(reader: "_Reader", styles: Element | None) -> tuple[tuple[TextBlock, ...], Iterator[Picture]]:
    """Return the headers, footers and fixed texts of master pages, each text once, and their pictures."""
    margins = _Reader(
        Outline(reader.limits.text_chars, reader.omissions),
        reader.limits,
        reader.omissions,
        reader.package,
        reader.lists,
    )
    margins.in_margins = True
    for page in () if styles is None else styles.iter(f"{_STYLE}master-page"):
        for part in page:
            if part.get(f"{_STYLE}display") != "false" and not _is_placeholder(part):
                margins.blocks(part)
            else:
                _report_hidden(part, reader.omissions)
    for handout in () if styles is None else styles.iter(f"{_STYLE}handout-master"):
        _report_hidden(handout, reader.omissions)
    seen: set[str] = set()
    kept = []
    for block in margins.outline.done():
        if block.text in seen:
            reader.omissions.add(OmissionKind.RUNNING_HEADER, block.text)
        else:
            seen.add(block.text)
            kept.append(block)
    return tuple(kept), (replace(picture, before=0) for picture in margins.outline.pictures)


def _is_placeholder(node: Element) -> bool:
    """Whether a node of a master page is a frame that only prompts for text, or the notes of the master."""
    return (
        node.get(f"{_PRESENTATION}placeholder") == "true"
        or node.get(f"{_PRESENTATION}class") is not None
        or node.tag == f"{_PRESENTATION}notes"
    )


class _Reader:
    """Adds headings, paragraphs, lists, tables, slides and sheets to the outline, in the order of the file.

    Notes, comments, frames and shapes follow the paragraph that they are anchored in.
    """

    def __init__(
        self,
        outline: Outline,
        limits: Limits,
        omissions: Omissions,
        package: zipfile.ZipFile | None,
        lists: dict[str, Element],
        depth: int = 0,
    ) -> None:
        self.outline = outline
        self.limits = limits
        self.omissions = omissions
        self.package = package
        self.lists = lists
        self.depth = depth
        self.cells = 0
        self.page: int | None = None
        self.sheet: str | None = None
        self.in_sheets = False
        self.sheets = 0
        self.label = ""
        self.in_list = False
        self.in_margins = False
        self.counters: dict[tuple[str, int], int] = {}

    def body(self, kind: Element) -> None:
        self.in_sheets = kind.tag == f"{_OFFICE}spreadsheet"
        self.sheets = sum(1 for _ in kind.iterchildren(f"{_TABLE}table"))
        self.blocks(kind)

    def blocks(self, node: Element) -> None:
        for child in node:
            self._block(child)

    def _block(self, node: Element) -> None:
        tag = node.tag
        if tag in _NO_TEXT or not isinstance(tag, str):
            return
        if tag in (f"{_TEXT}p", f"{_TEXT}h"):
            self._paragraph(node)
        elif tag == f"{_TEXT}list":
            self._list(node, node.get(f"{_TEXT}style-name") or "", 1)
        elif tag == f"{_TABLE}table":
            self._table(node)
        elif tag == f"{_DRAW}page":
            self._slide(node)
        elif tag == f"{_TEXT}tracked-changes":
            for deletion in node.iter(f"{_TEXT}deletion"):
                words = " ".join(" ".join(each.itertext()) for each in deletion.iter(f"{_TEXT}p", f"{_TEXT}h"))
                self.omissions.add(OmissionKind.HIDDEN, f"deleted: {words}")
        elif tag in _CONTENTS:
            for below in node.iterchildren(f"{_TEXT}index-body"):
                self.omissions.add(OmissionKind.CONTENTS_TABLE, " ".join(below.itertext()))
        elif tag == f"{_TABLE}tracked-changes":
            for cell in node.iter(f"{_TABLE}change-track-table-cell"):
                self.omissions.add(OmissionKind.HIDDEN, f"deleted: {' '.join(cell.itertext())}")
        elif tag == f"{_OFFICE}annotation":
            self._annotation(node)
        elif tag == f"{_OFFICE}forms":
            self._form(node)
        elif tag in (f"{_TABLE}help-message", f"{_TABLE}error-message"):
            self._put(node.get(f"{_TABLE}title") or "")
            self.blocks(node)
        elif tag.startswith(_DRAW):
            self._shape(node)
        elif not tag.startswith(_SVG) and tag not in (f"{_TABLE}title", f"{_TABLE}desc"):
            self._put(node.text or "")
            self.blocks(node)

    def _put(self, text: str, joint: str = "\n\n") -> None:
        self.outline.text(clean_text(text), joint, page=self.page, sheet=self.sheet)

    def _paragraph(self, node: Element) -> None:
        parts: list[str] = []
        behind: list[Element] = []
        self._inline(node, parts, behind)
        text = clean_text("".join(parts)).strip()
        if node.tag == f"{_TEXT}h":
            level = node.get(f"{_TEXT}outline-level") or "1"
            self.outline.heading(
                int(level) if level.isdecimal() else 1, f"{self._taken_label('')}{text}", page=self.page
            )
        elif text and self._states_place(node, text):
            self.omissions.add(OmissionKind.RUNNING_HEADER, text)
        elif text:
            self._put(f"{self._taken_label('')}{text}", "\n" if self.in_list else "\n\n")
        for each in behind:
            self._block(each)

    def _states_place(self, node: Element, text: str) -> bool:
        """Whether a line contains only the page's number; in a header also the date, the sheet's or the file's name."""
        fields = [field for field in node.iter() if field.tag in (_FIELDS if self.in_margins else _FIELDS[:2])]
        stated = " ".join("".join(field.itertext()) for field in fields).split()
        words = text.split()
        return bool(fields) and len(words) < 8 and len([word for word in words if word not in stated]) <= 2

    def _taken_label(self, label: str) -> str:
        label, self.label = self.label, label
        return label

    def _inline(self, node: Element, parts: list[str], behind: list[Element]) -> None:
        """Append the text of a paragraph to `parts`, and its notes, comments and frames to `behind`."""
        parts.append(node.text or "")
        for child in node:
            tag = child.tag
            if tag in _BREAKS:
                count = child.get(f"{_TEXT}c") or "1"
                parts.append(_BREAKS[tag] * (min(int(count), 80) if count.isdecimal() else 1))
            elif tag == f"{_TEXT}note":
                behind += child.iterchildren(f"{_TEXT}note-body")
            elif tag == f"{_OFFICE}annotation" or tag in _BLOCKS or str(tag).startswith(_DRAW):
                if tag == f"{_DRAW}a":
                    behind += child
                else:
                    behind.append(child)
            elif tag in (f"{_TEXT}hidden-text", f"{_TEXT}conditional-text"):
                stated = (child.get(f"{_TEXT}{name}") for name in ("string-value", "string-value-if-true"))
                parts.append(child.text or "")
                parts.extend(f" {text} " for text in stated if text and text != child.text)
                other = child.get(f"{_TEXT}string-value-if-false")
                parts.append(f" {other} " if other and other != child.text else "")
            elif tag == f"{_TEXT}ruby-text":
                parts.append(f"({child.text})" if child.text else "")
            elif tag == f"{_TEXT}a":
                self._inline(child, parts, behind)
                parts.append(f" ({tip})" if (tip := (child.get(f"{_OFFICE}title") or "").strip()) else "")
            elif tag not in _NO_TEXT and isinstance(tag, str):
                self._inline(child, parts, behind)
            parts.append(child.tail or "")

    def _list(self, node: Element, style: str, level: int) -> None:
        """Add a list and its nested lists (5.3). Its numbers continue those of another list only if it declares so."""
        key = (style, level)
        if node.get(f"{_TEXT}continue-numbering") != "true" and node.get(f"{_TEXT}continue-list") is None:
            self.counters.pop(key, None)
        before, self.in_list = self.in_list, True
        for item in node:
            if item.tag == f"{_TEXT}list-item":
                start = item.get(f"{_TEXT}start-value")
                if start and start.isdecimal():
                    self.counters[key] = int(start) - 1
                self.label = self._next_label(style, level)
            for child in item:
                if child.tag == f"{_TEXT}list":
                    self._list(child, child.get(f"{_TEXT}style-name") or style, level + 1)
                else:
                    self._block(child)
            self.label = ""
        self.in_list = before

    def _next_label(self, style: str, level: int) -> str:
        rules = self.lists.get(style)
        at = {} if rules is None else {each.get(f"{_TEXT}level"): each for each in rules}
        rule = at.get(str(level))
        if rule is None or rule.tag != f"{_TEXT}list-level-style-number":
            return "- "
        start = rule.get(f"{_TEXT}start-value") or "1"
        key = (style, level)
        self.counters[key] = self.counters[key] + 1 if key in self.counters else int(start) if start.isdecimal() else 1
        shown = rule.get(f"{_TEXT}display-levels") or "1"
        first = level - (int(shown) if shown.isdecimal() else 1) + 1
        numbers = []
        for each in range(max(first, 1), level + 1):
            above = at.get(str(each))
            if above is not None and above.tag == rule.tag:
                numbers.append(_formatted(above.get(f"{_STYLE}num-format") or "", self.counters.get((style, each), 1)))
        number = ".".join(filter(None, numbers))
        label = f"{rule.get(f'{_STYLE}num-prefix') or ''}{number}{rule.get(f'{_STYLE}num-suffix') or ''}".strip()
        return f"{label} " if label else ""

    def _annotation(self, node: Element) -> None:
        author = node.find(f"{_DC}creator")
        by = "" if author is None or not author.text else f" by {author.text.strip()}"
        text = " ".join(self._words(each) for each in node.iter(f"{_TEXT}p")).strip()
        self._put(f"Comment{by}: {text}" if text else "")

    def _words(self, node: Element) -> str:
        """Return a paragraph on one line, including everything that is anchored in it."""
        parts: list[str] = []
        behind: list[Element] = []
        self._inline(node, parts, behind)
        for each in behind:
            parts.append(" " + " ".join(self._words(below) for below in each.iter(f"{_TEXT}p", f"{_TEXT}h")))
            parts.extend(f" {text}" for text in _described(each))
        return " ".join(clean_text("".join(parts)).split())

    def _form(self, node: Element) -> None:
        """Add the labels and values of form controls (13.5)."""
        for control in node.iter():
            texts = dict.fromkeys(control.get(name) or "" for name in _FORM_TEXTS)
            words = [text.strip() for text in texts if text.strip()]
            if isinstance(control.tag, str) and control.tag != f"{_FORM}form" and words:
                self._put(": ".join(words), "\n")
        for paragraph in node.iter(f"{_TEXT}p"):
            self._put(self._words(paragraph), "\n")

    def _shape(self, node: Element) -> None:
        """Add a frame, picture, drawing or object with its title and description."""
        described = list(_described(node))
        for text in described:
            self._put(text)
        if node.tag == f"{_DRAW}object":
            self._object(node)
        elif node.tag in (f"{_DRAW}object-ole", f"{_DRAW}plugin", f"{_DRAW}applet", f"{_DRAW}floating-frame"):
            self.omissions.add(OmissionKind.EMBEDDED, node.get(f"{_XLINK}href") or "")
        elif node.tag == f"{_DRAW}image":
            frame = node.getparent()
            is_preview = frame is not None and frame.find(f"{_DRAW}object") is not None
            if not is_preview:
                self._picture(node, described=frame is not None and any(_described(frame)))
        self.blocks(node)

    def _picture(self, node: Element, *, described: bool) -> None:
        """Add a picture that OCR may read. A picture outside the file is reported."""
        name = (node.get(f"{_XLINK}href") or "").removeprefix("./")
        image: Callable[[], bytes] | None = None
        if self.package is not None and self.package.fp is not None and name in self.package.namelist():
            image = partial(read_again, self.package.fp, name)
        elif data := node.findtext(f"{_OFFICE}binary-data"):
            image = partial(decoded_base64, data)
        if image is not None:
            self.outline.picture(image, name.rpartition("/")[2], described=described, page=self.page, sheet=self.sheet)
        elif not described:
            self.omissions.add(OmissionKind.PICTURE)

    def _object(self, node: Element) -> None:
        """Add an embedded chart, formula or document, which is in a folder of the package or in the element itself."""
        root = next(iter(node), None)
        name = (node.get(f"{_XLINK}href") or "").removeprefix("./")
        if root is None and self.package is not None and name:
            root = _optional(_member(self.package, f"{name}/content.xml"), name)
        if root is None or self.depth >= _DEEPEST_OBJECT:
            self.omissions.add(OmissionKind.EMBEDDED, name)
            return
        if root.tag == f"{_MATH}math":
            self._put("".join(each for each in _formula(root)))
            return
        inner = _Reader(
            self.outline, self.limits, self.omissions, self.package, _list_styles(root, None), self.depth + 1
        )
        inner.page, inner.sheet = self.page, self.sheet
        body = root if root.tag != f"{_OFFICE}document-content" else root.find(f"{_OFFICE}body")
        if body is not None:
            inner.blocks(body)

    def _slide(self, node: Element) -> None:
        self.page = (self.page or 0) + 1
        self.limits.check_pages(self.page, "slides")
        title, heading = None, ""
        for frame in node.iterfind(f".//{_DRAW}frame[@{_PRESENTATION}class='title']"):
            heading = " ".join(self._words(each) for each in frame.iter(f"{_TEXT}p")).strip()
            if heading:
                title = frame
                break
        name = clean_text(node.get(f"{_DRAW}name") or "")
        self.outline.heading(1, heading or name or f"Slide {self.page}", page=self.page)
        for child in node:
            if child is title:
                for text in _described(child):
                    self._put(text)
            else:
                self._block(child)

    def _table(self, table: Element) -> None:
        if not self.in_sheets or self.depth:
            for tag in ("title", "desc"):
                described = table.find(f"{_TABLE}{tag}")
                self._put("" if described is None else " ".join(described.itertext()))
            if (name := clean_text(table.get(f"{_TABLE}name") or "")) and not is_made_up(name):
                self.omissions.add(OmissionKind.METADATA, name)
            rows = []
            for row in _table_rows(table):
                rows.append([self._laid_cell(cell) for cell in row if cell.tag == f"{_TABLE}table-cell"])
                self._count(len(rows[-1]))
            fill_table(self.outline, rows, self.page)
            return
        self.sheet = clean_text(table.get(f"{_TABLE}name") or "")
        if self.sheets > 1 or not is_made_up(self.sheet):
            self.outline.heading(1, self.sheet, sheet=self.sheet)
        for number, text in named_rows(self._sheet_rows(table)):
            self.outline.text(text, "\n", page=self.page, sheet=self.sheet, row=number)
        for shapes in table.iterchildren(f"{_TABLE}shapes", f"{_OFFICE}forms"):
            self._block(shapes)
        for cell in table.iter(f"{_TABLE}table-cell"):
            for child in cell:
                if child.tag == f"{_OFFICE}annotation" or str(child.tag).startswith(_DRAW):
                    self._block(child)

    def _laid_cell(self, cell: Element) -> Element:
        wide, high = (cell.get(f"{_TABLE}number-{what}-spanned") or "1" for what in ("columns", "rows"))
        texts = [self._words(each) for each in cell.iter(f"{_TEXT}p", f"{_TEXT}h") if not _anchored(each, cell)]
        return table_cell(" ".join(filter(None, texts)), wide=wide, high=high)

    def _sheet_rows(self, table: Element) -> Iterator[tuple[int, list[str]]]:
        number = 0
        for row in _table_rows(table):
            cells: list[str] = []
            for cell in row:
                if cell.tag in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
                    text = self._value(cell)
                    cells += [text] * (_repeated(cell, "columns") if text else min(_repeated(cell, "columns"), 64))
            while cells and not cells[-1]:
                cells.pop()
            repeated = _repeated(row, "rows")
            self._count((len(cells) or 1) * (repeated if cells else 1))
            for _ in range(repeated):
                number += 1
                if cells:
                    yield number, cells

    def _value(self, cell: Element) -> str:
        """Return the text of a cell, or its formula if the file has no result."""
        words = (self._words(each) for each in cell.iterchildren(f"{_TEXT}p", f"{_TEXT}h"))
        text = " ".join(filter(None, words))
        if not text:
            stated = (
                cell.get(f"{_OFFICE}{name}")
                for name in ("string-value", "value", "date-value", "time-value", "boolean-value")
            )
            text = next((each for each in stated if each), "")
        formula = (cell.get(f"{_TABLE}formula") or "").removeprefix("of:").removeprefix("oooc:")
        if not text and formula:
            self.omissions.add(OmissionKind.FORMULA, formula)
            return clean_text(formula)
        return clean_text(text)

    def _count(self, cells: int) -> None:
        self.cells += cells or 1
        self.limits.check_cells(self.cells)


def _table_rows(table: Element) -> Iterator[Element]:
    """Yield the rows of a table, except rows of tables in its cells."""
    for child in table:
        if child.tag == f"{_TABLE}table-row":
            yield child
        elif isinstance(child.tag, str) and child.tag.startswith(_TABLE) and child.tag != f"{_TABLE}table":
            yield from _table_rows(child)


def _anchored(paragraph: Element, cell: Element) -> bool:
    """Whether a paragraph of a cell is inside another paragraph, whose text includes it."""
    return any(above.tag in (f"{_TEXT}p", f"{_TEXT}h") for above in _ancestors(paragraph, cell))


def _ancestors(node: Element, top: Element) -> Iterator[Element]:
    for above in node.iterancestors():
        if above is top:
            return
        yield above


def _described(node: Element) -> Iterator[str]:
    for tag in (f"{_SVG}title", f"{_SVG}desc"):
        for child in node.iterchildren(tag):
            if child.text and child.text.strip():
                yield clean_text(child.text.strip())


def _formula(root: Element) -> Iterable[str]:
    """Yield the symbols of a MathML formula, without the annotation with its source in another language."""
    for node in root.iter():
        if isinstance(node.tag, str) and not node.tag.startswith(f"{_MATH}annotation") and node.text:
            yield node.text.strip()


def _list_styles(*roots: Element | None) -> dict[str, Element]:
    return {
        node.get(f"{_STYLE}name") or "": node
        for root in roots
        if root is not None
        for node in root.iter(f"{_TEXT}list-style")
    }


def _formatted(name: str, number: int) -> str:
    shown = {"": "", "a": letters(number), "i": roman(number)}.get(name.lower(), str(number))
    return shown.upper() if name.isupper() else shown


def _repeated(node: Element, what: str) -> int:
    stated = node.get(f"{_TABLE}number-{what}-repeated") or "1"
    return min(int(stated), _MOST_REPEATED) if stated.isdecimal() else 1
