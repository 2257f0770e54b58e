"""OpenDocument (OASIS, version 1.3, part 3) by lxml, packed (ODT, ODS, ODP) or as one XML file (FODT, FODS, FODP).

odfpy and ezodf are not used: they create an object for each element, and give no reading order for notes, frames and
objects.
"""

import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.embedded_data import decoded_base64
from consumers.parsing.formats.office.opendocument_elements import (
    DC,
    DRAW,
    FORM,
    MATH,
    META,
    NO_TEXT,
    OFFICE,
    PRESENTATION,
    STYLE,
    SVG,
    TABLE,
    TEXT,
    XLINK,
    ListLabels,
    TableRows,
    add_words,
    described_by,
    formula_words,
    list_styles,
    report_hidden,
    words_of,
)
from consumers.parsing.formats.office.package import whole_number
from consumers.parsing.formats.office.tables import fill_sheet, fill_table, is_generated_name
from consumers.parsing.limits import Limits, NotADocument, WrongKind
from consumers.parsing.office_properties import sensible_title
from consumers.parsing.outline import Outline, comment_text
from consumers.parsing.zip_archive import open_package, optional_xml, parse_xml, read_again, read_member
from consumers.splitting import ParsedText, Picture, TextBlock

Element = Any
_FIELDS = tuple(
    f"{TEXT}{name}"
    for name in ("page-number", "page-count", "sheet-name", "title", "date", "time", "file-name", "page-name")
)
"""Fields of headers and footers whose value is a property of the file or the page."""
_CONTENTS = frozenset(
    f"{TEXT}{name}"
    for name in ("table-of-content", "alphabetical-index", "illustration-index", "table-index", "object-index")
)
_FORM_TEXTS = tuple(f"{FORM}{name}" for name in ("label", "current-value", "value", "title"))
_FIELD_MARK = re.compile(r"<[^<>]*>")
"""Placeholder of a field in a master page, for example "<number>"."""
_MAX_OBJECT_DEPTH = 3
_MANIFEST = "META-INF/manifest.xml"
_OPENOFFICE_1, _DECLARATIONS = b"http://openoffice.org/2000/", 4096


def parse_opendocument(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    if not data.startswith(b"PK"):
        root = parse_xml(data, "the file")
        return _parse(root, root, root, limits, omissions, None)
    with open_package(data, limits) as package:
        names = package.namelist()
        if _MANIFEST in names and b"encryption-data" in read_member(package, _MANIFEST):
            raise NotADocument("protected by a password; save it without one", FailureCode.PROTECTED)
        data = read_member(package, "content.xml")
        if _OPENOFFICE_1 in data[:_DECLARATIONS]:
            raise WrongKind("a file of OpenOffice.org 1; open it in LibreOffice and save it as .odt, .ods or .odp")
        content = parse_xml(data, "content.xml")
        styles, meta = (optional_xml(package, name) for name in ("styles.xml", "meta.xml"))
        return _parse(content, styles, meta, limits, omissions, package)


def _parse(
    content: Element,
    styles: Element | None,
    meta: Element | None,
    limits: Limits,
    omissions: Omissions,
    package: zipfile.ZipFile | None,
) -> ParsedText:
    report_hidden(content, omissions, styles)
    if styles is not None and styles is not content:
        report_hidden(styles, omissions)
    lists, rows = list_styles(content, styles), TableRows(limits, omissions)
    reader = _Reader(Outline(limits.text_chars, omissions), limits, package, rows, ListLabels(lists))
    body = content.find(f"{OFFICE}body")
    for kind in () if body is None else body:
        reader.body(kind)
    margin_outline = Outline(limits.text_chars, omissions)
    margins = _Reader(margin_outline, limits, package, rows, ListLabels(lists), in_margins=True)
    above, pictures = _margins(margins, styles)
    blocks = (*above, *reader.outline.done())
    title, metadata = _properties(meta)
    is_sheet = any(block.sheet is not None for block in blocks)  # a sheet's name is not the file's title
    title = title or ("" if is_sheet else reader.outline.first_heading)
    return ParsedText(blocks, title, metadata, pictures=(*pictures, *reader.outline.pictures_after(len(above))))


def _properties(root: Element | None) -> tuple[str, dict[str, Any]]:
    if root is None:
        return "", {}
    names = {"title": f"{DC}title", "creator": f"{DC}creator", "subject": f"{DC}subject", "description": f"{DC}description",
             "language": f"{DC}language", "keywords": f"{META}keyword", "created": f"{META}creation-date",
             "modified": f"{DC}date", "author": f"{META}initial-creator"}  # fmt: skip
    found: dict[str, Any] = {}
    for name, tag in names.items():
        stated = [clean_text(node.text.strip()) for node in root.iter(tag) if node.text and node.text.strip()]
        if stated:
            found[name] = "; ".join(stated)[:1000]
    for node in root.iter(f"{META}user-defined"):
        name = clean_text(node.get(f"{META}name") or "").strip()
        if name and node.text and node.text.strip():
            found.setdefault(name[:100], clean_text(node.text.strip())[:1000])
    return sensible_title(found.pop("title", "")), found


def _report_unshown(node: Element, omissions: Omissions) -> None:
    """Reports a master page's text that no page shows."""
    omissions.add_words(OmissionKind.HIDDEN, clean_text(_FIELD_MARK.sub(" ", " ".join(node.itertext()))))


def _margins(reader: "_Reader", styles: Element | None) -> tuple[tuple[TextBlock, ...], Iterator[Picture]]:
    """Returns the headers, footers and fixed texts of master pages (each text once), and the pictures of master
    pages."""
    omissions = reader.outline.omissions
    for page in () if styles is None else styles.iter(f"{STYLE}master-page"):
        for part in page:
            if part.get(f"{STYLE}display") != "false" and not _is_placeholder(part):
                reader.blocks(part)
            else:
                _report_unshown(part, omissions)
    for handout in () if styles is None else styles.iter(f"{STYLE}handout-master"):
        _report_unshown(handout, omissions)
    kept: dict[str, TextBlock] = {}
    for block in reader.outline.done():
        if block is not kept.setdefault(block.text, block):
            omissions.add(OmissionKind.RUNNING_HEADER, block.text)
    return tuple(kept.values()), (replace(picture, before=0) for picture in reader.outline.pictures)


def _is_placeholder(node: Element) -> bool:
    """Whether a node of a master page is a frame that only prompts for text, or the notes of the master page."""
    return (
        node.get(f"{PRESENTATION}placeholder") == "true"
        or node.get(f"{PRESENTATION}class") is not None
        or node.tag == f"{PRESENTATION}notes"
    )


@dataclass(slots=True)
class _Reader:
    """Adds headings, paragraphs, lists, tables, slides and sheets to the outline, in the order of the file.

    Notes, comments, frames and shapes follow the paragraph that anchors them.
    """

    outline: Outline
    limits: Limits
    package: zipfile.ZipFile | None
    rows: TableRows
    lists: ListLabels
    depth: int = 0
    """Number of nested objects around this text."""
    in_margins: bool = False
    in_sheets: bool = False
    sheets: int = 0
    page: int | None = None
    sheet: str | None = None
    label: str = ""
    """The label of the list item that begins."""
    in_list: bool = False

    def body(self, kind: Element) -> None:
        self.in_sheets = kind.tag == f"{OFFICE}spreadsheet"
        self.sheets = sum(1 for _ in kind.iterchildren(f"{TABLE}table"))
        self.blocks(kind)

    def blocks(self, node: Element) -> None:
        for child in node:
            self._block(child)

    def _block(self, node: Element) -> None:
        tag = node.tag
        if tag in NO_TEXT or not isinstance(tag, str):
            return
        if tag in (f"{TEXT}p", f"{TEXT}h"):
            self._paragraph(node)
        elif tag == f"{TEXT}list":
            self._list(node, node.get(f"{TEXT}style-name") or "", 1)
        elif tag == f"{TABLE}table":
            self._table(node)
        elif tag == f"{DRAW}page":
            self._slide(node)
        elif tag == f"{TEXT}tracked-changes":
            for deletion in node.iter(f"{TEXT}deletion"):
                words = " ".join(" ".join(each.itertext()) for each in deletion.iter(f"{TEXT}p", f"{TEXT}h"))
                self.outline.omissions.add(OmissionKind.HIDDEN, f"deleted: {words}")
        elif tag in _CONTENTS:
            for below in node.iterchildren(f"{TEXT}index-body"):
                self.outline.omissions.add(OmissionKind.CONTENTS_TABLE, " ".join(below.itertext()))
        elif tag == f"{TABLE}tracked-changes":
            for cell in node.iter(f"{TABLE}change-track-table-cell"):
                self.outline.omissions.add(OmissionKind.HIDDEN, f"deleted: {' '.join(cell.itertext())}")
        elif tag == f"{OFFICE}annotation":
            text = " ".join(words_of(each) for each in node.iter(f"{TEXT}p"))
            self._put(comment_text(text, node.findtext(f"{DC}creator") or ""))
        elif tag == f"{OFFICE}forms":
            self._form(node)
        elif tag in (f"{TABLE}help-message", f"{TABLE}error-message"):
            self._put(node.get(f"{TABLE}title") or "")
            self.blocks(node)
        elif tag.startswith(DRAW):
            self._shape(node)
        elif not tag.startswith(SVG) and tag not in (f"{TABLE}title", f"{TABLE}desc"):
            self._put(node.text or "")
            self.blocks(node)

    def _put(self, text: str, joint: str = "\n\n") -> None:
        self.outline.text(clean_text(text), joint, page=self.page, sheet=self.sheet)

    def _paragraph(self, node: Element) -> None:
        parts: list[str] = []
        trailing: list[Element] = []
        add_words(node, parts, trailing)
        text = clean_text("".join(parts)).strip()
        if node.tag == f"{TEXT}h":
            level = whole_number(node.get(f"{TEXT}outline-level"), 1)
            self.outline.heading(level, f"{self._take_label()}{text}", page=self.page)
        elif text and self._is_page_number(node, text):
            self.outline.omissions.add(OmissionKind.RUNNING_HEADER, text)
        elif text:
            self._put(f"{self._take_label()}{text}", "\n" if self.in_list else "\n\n")
        for each in trailing:
            self._block(each)

    def _is_page_number(self, node: Element, text: str) -> bool:
        """Whether a line contains little more than the page number; in a header also the date or the name of the sheet
        or file."""
        fields = [field for field in node.iter() if field.tag in (_FIELDS if self.in_margins else _FIELDS[:2])]
        stated = " ".join("".join(field.itertext()) for field in fields).split()
        words = text.split()
        return bool(fields) and len(words) < 8 and len([word for word in words if word not in stated]) <= 2

    def _take_label(self) -> str:
        label, self.label = self.label, ""
        return label

    def _list(self, node: Element, style: str, level: int) -> None:
        self.lists.begin(node, style, level)
        before, self.in_list = self.in_list, True
        for item in node:
            if item.tag == f"{TEXT}list-item":
                self.label = self.lists.next(item, style, level)
            for child in item:
                if child.tag == f"{TEXT}list":
                    self._list(child, child.get(f"{TEXT}style-name") or style, level + 1)
                else:
                    self._block(child)
            self.label = ""
        self.in_list = before

    def _form(self, node: Element) -> None:
        """Adds the labels and values of form controls (13.5)."""
        for control in node.iter():
            texts = dict.fromkeys(control.get(name) or "" for name in _FORM_TEXTS)
            words = [text.strip() for text in texts if text.strip()]
            if isinstance(control.tag, str) and control.tag != f"{FORM}form" and words:
                self._put(": ".join(words), "\n")
        for paragraph in node.iter(f"{TEXT}p"):
            self._put(words_of(paragraph), "\n")

    def _shape(self, node: Element) -> None:
        """Adds a frame, picture, drawing or object with its title and description."""
        described = list(described_by(node))
        for text in described:
            self._put(text)
        if node.tag == f"{DRAW}object":
            self._object(node)
        elif node.tag in (f"{DRAW}object-ole", f"{DRAW}plugin", f"{DRAW}applet", f"{DRAW}floating-frame"):
            self.outline.omissions.add(OmissionKind.EMBEDDED, node.get(f"{XLINK}href") or "")
        elif node.tag == f"{DRAW}image":
            frame = node.getparent()
            is_preview = frame is not None and frame.find(f"{DRAW}object") is not None
            if not is_preview:
                self._picture(node, described=frame is not None and any(described_by(frame)))
        self.blocks(node)

    def _picture(self, node: Element, *, described: bool) -> None:
        """Adds a picture that is in the file, for OCR. Reports a picture outside the file."""
        name = (node.get(f"{XLINK}href") or "").removeprefix("./")
        image: Callable[[], bytes] | None = None
        if self.package is not None and self.package.fp is not None and name in self.package.namelist():
            image = partial(read_again, self.package.fp, name)
        elif data := node.findtext(f"{OFFICE}binary-data"):
            image = partial(decoded_base64, data)
        if image is not None:
            self.outline.picture(image, name.rpartition("/")[2], described=described, page=self.page, sheet=self.sheet)
        elif not described:
            self.outline.omissions.add(OmissionKind.PICTURE)

    def _object(self, node: Element) -> None:
        """Adds an embedded chart, formula or document from a folder of the package or from the element itself."""
        root = next(iter(node), None)
        name = (node.get(f"{XLINK}href") or "").removeprefix("./")
        if root is None and self.package is not None and name:
            root = optional_xml(self.package, f"{name}/content.xml")
            if root is not None:
                report_hidden(root, self.outline.omissions)
        if root is None or self.depth >= _MAX_OBJECT_DEPTH:
            self.outline.omissions.add(OmissionKind.EMBEDDED, name)
            return
        if root.tag == f"{MATH}math":
            self._put("".join(formula_words(root)))
            return
        lists = ListLabels(list_styles(root))
        inner = _Reader(self.outline, self.limits, self.package, self.rows, lists, self.depth + 1)
        inner.page, inner.sheet = self.page, self.sheet
        body = root if root.tag != f"{OFFICE}document-content" else root.find(f"{OFFICE}body")
        if body is not None:
            inner.blocks(body)

    def _slide(self, node: Element) -> None:
        self.page = (self.page or 0) + 1
        self.limits.check_pages(self.page, "slides")
        title, heading = None, ""
        for frame in node.iterfind(f".//{DRAW}frame[@{PRESENTATION}class='title']"):
            heading = " ".join(words_of(each) for each in frame.iter(f"{TEXT}p")).strip()
            if heading:
                title = frame
                break
        name = clean_text(node.get(f"{DRAW}name") or "")
        self.outline.heading(1, heading or name or f"Slide {self.page}", page=self.page)
        for child in node:
            if child is title:
                for text in described_by(child):
                    self._put(text)
            else:
                self._block(child)

    def _table(self, table: Element) -> None:
        if not self.in_sheets or self.depth:
            for tag in ("title", "desc"):
                described = table.find(f"{TABLE}{tag}")
                self._put("" if described is None else " ".join(described.itertext()))
            if (name := clean_text(table.get(f"{TABLE}name") or "")) and not is_generated_name(name):
                self.outline.omissions.add(OmissionKind.METADATA, name)
            fill_table(self.outline, self.rows.of_text(table), self.page)
            return
        self.sheet = clean_text(table.get(f"{TABLE}name") or "")
        fill_sheet(self.outline, self.sheet, self.rows.of_sheet(table), is_only=self.sheets <= 1)
        for shapes in table.iterchildren(f"{TABLE}shapes", f"{OFFICE}forms"):
            self._block(shapes)
        for cell in table.iter(f"{TABLE}table-cell"):
            for child in cell:
                if child.tag == f"{OFFICE}annotation" or str(child.tag).startswith(DRAW):
                    self._block(child)
