"""OpenDocument (ODT, ODS, ODP): its content.xml by lxml, a paragraph at a time; odfpy would make objects of all of it first."""

import zipfile
from collections.abc import Iterator
from typing import Any

from lxml import etree

from consumers.failure_codes import FailureCode
from consumers.parsing.decoding import clean_text
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.office_properties import sensible_title
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import is_header, row_text
from consumers.parsing.zip_archive import open_package, read_member
from consumers.splitting import ParsedText

Element = Any
_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
_TEXT, _TABLE, _OFFICE, _DRAW, _PRESENTATION = (
    f"{{{_NAMESPACE.format(name)}}}" for name in ("text", "table", "office", "drawing", "presentation")
)
_DC = "{http://purl.org/dc/elements/1.1/}"
_META = f"{{{_NAMESPACE.format('meta')}}}"
_LEFT_OUT = frozenset(
    (
        f"{_TEXT}tracked-changes", f"{_OFFICE}annotation", f"{_TEXT}table-of-content", f"{_TEXT}alphabetical-index",
        f"{_TEXT}sequence-decls", f"{_OFFICE}forms", f"{_TEXT}illustration-index", f"{_TEXT}table-index",
        f"{_TABLE}tracked-changes", f"{_OFFICE}automatic-styles", f"{_OFFICE}scripts", f"{_OFFICE}font-face-decls",
    )
)  # fmt: skip
_BREAKS = {f"{_TEXT}s": " ", f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_MOST_REPEATED = 1000
"""Of columns and rows: a sheet says of its empty rest that it repeats a million times."""


def parse_opendocument(data: bytes, limits: Limits) -> ParsedText:
    with open_package(data, limits) as package:
        if b"encryption-data" in _member(package, "META-INF/manifest.xml"):
            raise NotADocument("protected by a password; save it without one", FailureCode.PROTECTED)
        root = _tree(read_member(package, "content.xml"))
        title, metadata = _properties(_member(package, "meta.xml"))
    outline = Outline(limits.text_chars)
    walk = _Walk(outline, limits)
    body = root.find(f".//{_OFFICE}body")
    for kind in () if body is None else body:
        walk.run(kind)
    blocks = outline.done()
    is_sheet = any(block.sheet is not None for block in blocks)  # a sheet's name is not the file's title
    return ParsedText(blocks, title or ("" if is_sheet else outline.first_heading), metadata)


def _member(package: zipfile.ZipFile, name: str) -> bytes:
    return read_member(package, name) if name in package.namelist() else b""


def _tree(data: bytes) -> Element:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise Unreadable(f"damaged: content.xml is not XML ({error}); save it again", FailureCode.DAMAGED) from error


def _properties(data: bytes) -> tuple[str, dict[str, str]]:
    try:
        root = _tree(data) if data else None
    except Unreadable:
        root = None  # the text does not depend on it
    if root is None:
        return "", {}
    names = {"title": f"{_DC}title", "creator": f"{_DC}creator", "subject": f"{_DC}subject", "description": f"{_DC}description",
             "language": f"{_DC}language", "created": f"{_META}creation-date", "modified": f"{_DC}date"}  # fmt: skip
    found = {}
    for name, tag in names.items():
        node = root.find(f".//{tag}")
        if node is not None and node.text and node.text.strip():
            found[name] = clean_text(node.text.strip())[:1000]
    return sensible_title(found.pop("title", "")), found


class _Walk:
    """Headings, paragraphs, lists, tables, slides and sheets, in the order of the file."""

    def __init__(self, outline: Outline, limits: Limits) -> None:
        self.outline = outline
        self.limits = limits
        self.cells = 0
        self.page: int | None = None
        self.sheet: str | None = None

    def run(self, root: Element) -> None:
        walk = etree.iterwalk(root, events=("start", "end"))
        lists = 0
        first = False
        for event, node in walk:
            tag = node.tag
            if tag == f"{_TEXT}list":
                lists += 1 if event == "start" else -1
            if event == "end":
                continue
            if tag in _LEFT_OUT:
                walk.skip_subtree()
            elif tag == f"{_TEXT}list-item":
                first = True
            elif tag == f"{_DRAW}page":
                self._slide(node)
            elif tag == f"{_TABLE}table":
                self._table(node, root)
                walk.skip_subtree()
            elif tag == f"{_TEXT}h":
                level = node.get(f"{_TEXT}outline-level") or "1"
                self.outline.heading(int(level) if level.isdigit() else 1, _text(node), page=self.page)
                walk.skip_subtree()
            elif tag == f"{_TEXT}p":
                text = _text(node).strip()
                self.outline.text(
                    f"- {text}" if lists and first and text else text, "\n" if lists else "\n\n", page=self.page
                )
                first = False
                if node.find(f".//{_DRAW}frame") is None:
                    walk.skip_subtree()

    def _slide(self, node: Element) -> None:
        self.page = (self.page or 0) + 1
        if self.page > self.limits.pages:
            raise NotADocument(f"more than {self.limits.pages:,} slides; split it up", FailureCode.TOO_LARGE)
        for frame in node.iterfind(f".//{_DRAW}frame[@{_PRESENTATION}class='title']"):
            title = " ".join(_text(each) for each in frame.iter(f"{_TEXT}p")).strip()
            for each in frame:
                frame.remove(each)
            if title:
                self.outline.heading(1, title, page=self.page)
                return
        self.outline.heading(1, node.get(f"{_DRAW}name") or f"Slide {self.page}", page=self.page)

    def _table(self, table: Element, root: Element) -> None:
        sheet = None
        if root.tag == f"{_OFFICE}spreadsheet":
            sheet = clean_text(table.get(f"{_TABLE}name") or "")
            if sum(1 for _ in root.iterchildren(f"{_TABLE}table")) > 1:
                self.outline.heading(1, sheet, sheet=sheet)
        header: list[str] | None = None
        number = 0
        for row, repeated in self._rows(table):
            if any(row) and header is None:
                header = row if is_header(row) else []
                if header:
                    number += repeated
                    continue
            for _ in range(repeated if any(row) else 0):
                number += 1
                joint = "\n" if sheet is not None or number > 2 else "\n\n"
                self.outline.text(row_text(header or [], row), joint, page=self.page, sheet=sheet, row=number)
            number += 0 if any(row) else repeated
        if header and not any(block.row for block in self.outline.blocks[-1:]):
            self.outline.text("; ".join(cell for cell in header if cell), page=self.page, sheet=sheet, row=1)

    def _rows(self, table: Element) -> Iterator[tuple[list[str], int]]:
        for row in table.iter(f"{_TABLE}table-row"):
            cells: list[str] = []
            for cell in row:
                if cell.tag in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
                    text = " ".join(_text(each).strip() for each in cell.iter(f"{_TEXT}p", f"{_TEXT}h"))
                    cells += [text] * (_repeated(cell, "columns") if text else 1)
            self.cells += len(cells) or 1
            if self.cells > self.limits.cells:
                raise NotADocument(
                    f"more than {self.limits.cells:,} cells; exclude it, or split it up", FailureCode.TOO_LARGE
                )
            yield cells, _repeated(row, "rows")


def _repeated(node: Element, what: str) -> int:
    stated = node.get(f"{_TABLE}number-{what}-repeated") or "1"
    return min(int(stated), _MOST_REPEATED) if stated.isdigit() else 1


def _text(node: Element) -> str:
    """The words of a paragraph, without notes of other people and what tables and frames in it hold."""
    parts = [node.text or ""]
    walk = etree.iterwalk(node, events=("start", "end"))
    for event, below in walk:
        if below is node:
            continue
        if event == "end":
            parts.append(below.tail or "")
        elif below.tag in _LEFT_OUT or below.tag == f"{_DRAW}frame":
            walk.skip_subtree()
        elif below.tag in _BREAKS:
            count = below.get(f"{_TEXT}c") or "1"
            parts.append(_BREAKS[below.tag] * (min(int(count), 80) if count.isdigit() else 1))
        else:
            parts.append(below.text or "")
    return clean_text("".join(parts))
