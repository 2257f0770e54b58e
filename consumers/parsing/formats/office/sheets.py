"""Excel files (SpreadsheetML, ECMA-376 part 1, 18): openpyxl reads the cells, lxml all other parts."""

import io
import re
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from lxml import etree

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.office.drawing import add_pictures, alternative_texts, linked_texts, paragraphs
from consumers.parsing.formats.office.package import OfficePackage, relation_id, transitional_file, whole_number
from consumers.parsing.formats.office.tables import fill_sheet
from consumers.parsing.limits import Limits
from consumers.parsing.office_properties import document_properties
from consumers.parsing.outline import Outline, comment_text
from consumers.parsing.xml_limits import XML_OPTIONS
from consumers.parsing.zip_archive import check_members, open_package
from consumers.splitting import ParsedText

Element = Any
_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_MARGIN_CODE = re.compile(r'&(?:&|"[^"]*"|K[0-9A-Fa-f]{6}|K\d\d[+-]\d{3}|\d+|[A-Za-z])')
"""Codes in a header or footer (18.3.1.46): fonts, sizes, page numbers, dates, and "&&" for "&"."""
_PAGE_OR_DATE_CODE = re.compile("&[PNDTFAZ]")
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
_THREADED = "[Threaded comment]"
_PROMPTS = ("promptTitle", "prompt", "errorTitle", "error")


def parse_xlsx(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    with open_package(data, limits) as archive:
        check_members(archive)
        package = OfficePackage(archive)
        metadata, title = document_properties(archive)
        data = transitional_file(archive, data)
        outline = Outline(limits.text_chars, omissions)
        main = package.main_part()
        root = package.tree(main)
        relations = package.relations(main)
        parts = {}
        for node in () if root is None else root.iter(f"{_S}sheet"):
            relation = relations.get(relation_id(node))
            if relation is not None and not relation.external:
                parts[node.get("name") or ""] = relation.target
        values = _workbook(data, data_only=True)
        computed = any(_FORMULA.search(package.data(part) or b"") for part in parts.values())
        formulas = _workbook(data, data_only=False) if computed else None
        cells = _Cells(limits, omissions)
        for name, part in parts.items():
            has_cells = name in values.sheetnames
            rows = cells.rows(values[name], None if formulas is None else formulas[name]) if has_cells else ()
            fill_sheet(outline, name, rows, _texts_outside_cells(part, package, omissions), is_only=len(parts) == 1)
            add_sheet_pictures(part, package, outline, name)
        for book in (values, formulas):
            if book is not None:
                book.close()
        package.report_unread(omissions)
    return ParsedText(outline.done(), title, metadata, pictures=tuple(outline.pictures))


def _workbook(data: bytes, *, data_only: bool) -> Any:
    """Opens a workbook without its chart sheets: these have no cells, and openpyxl refuses empty chart sheets."""
    from openpyxl.reader.excel import ExcelReader

    class CellReader(ExcelReader):  # type: ignore[misc] # openpyxl has no types
        def read_chartsheet(self, sheet: Any, rel: Any) -> None:
            pass

    reader = CellReader(io.BytesIO(data), read_only=True, data_only=data_only, keep_links=False)
    reader.read()
    return reader.wb


class _Cells:
    """Yields the texts of cells. Raises NotADocument if the limit of cells is exceeded."""

    def __init__(self, limits: Limits, omissions: Omissions) -> None:
        self.limits = limits
        self.omissions = omissions
        self.count = 0

    def rows(self, sheet: Any, formulas: Any) -> Iterator[tuple[int, list[str]]]:
        sheet.reset_dimensions()  # the dimensions stated in the file may be wrong
        if formulas is not None:
            formulas.reset_dimensions()
        stated = repeat(()) if formulas is None else formulas.iter_rows(values_only=True)
        for number, (values, sources) in enumerate(zip(sheet.iter_rows(values_only=True), stated), 1):  # noqa: B905
            self.count += len(values) or 1
            self.limits.check_cells(self.count)
            row = [clean_text(cell_text(value)) for value in values]
            for index, source in enumerate(sources):
                if source is not None and values[index] is None:
                    row[index] = self._formula(source)
            yield number, row

    def _formula(self, source: Any) -> str:
        """Returns a formula that has no stored result, and reports it. Programs that only write files compute no
        results."""
        text = clean_text(str(getattr(source, "text", source)))
        if text.startswith("="):
            self.omissions.add(OmissionKind.FORMULA, text)
        return text


def _texts_outside_cells(part: str, package: OfficePackage, omissions: Omissions) -> Iterator[str]:
    """Yields the texts of a sheet outside its cells: comments, shapes, charts, headers and footers, prompts and tooltips."""
    yield from _comments(part, package)
    yield from drawing_texts(part, package)
    seen: set[str] = set()
    for text in _stated(package.data(part) or b"", omissions):
        text = " ".join(clean_text(text).split())
        if text and text not in seen:
            seen.add(text)
            yield text


def drawing_texts(part: str, package: OfficePackage) -> Iterator[str]:
    """Yields the texts of shapes, pictures and charts on a sheet."""
    for drawing in package.related(part, "drawing"):
        root = package.tree(drawing)
        if root is not None:
            yield from alternative_texts(root)
            yield from paragraphs(root)
            yield from linked_texts(root, drawing, package)


def add_sheet_pictures(part: str, package: OfficePackage, outline: Outline, sheet: str) -> None:
    """Adds the pictures on a sheet and its background to the outline. Reports the pictures in its header and footer."""
    for drawing in package.related(part, "drawing"):
        root = package.tree(drawing)
        for anchor in () if root is None else root:
            described = any(alternative_texts(anchor))
            add_pictures(anchor, drawing, package, outline, described=described, sheet=sheet)
    for name in package.related(part, "image"):
        if (background := package.picture(name)) is not None:
            outline.picture(background, name.rpartition("/")[2], sheet=sheet)
    for name in package.related(part, "vmlDrawing"):
        outline.omissions.add(OmissionKind.PICTURE, count=(package.data(name) or b"").count(b"imagedata"))


def _comments(part: str, package: OfficePackage) -> Iterator[str]:
    threaded = False
    for name in package.related(part, "threadedComment"):
        root = package.tree(name)
        for node in () if root is None else root.iter("{*}threadedComment"):
            threaded = True
            yield cell_comment(node.get("ref"), "", "".join(each.text or "" for each in node.iterchildren("{*}text")))
    for name in package.related(part, "comments"):
        root = package.tree(name)
        if root is None:
            continue
        authors = [node.text or "" for node in root.iter(f"{_S}author")]
        for node in root.iter(f"{_S}comment"):
            text = "".join(each.text or "" for each in node.iter(f"{_S}t"))
            index = whole_number(node.get("authorId"), len(authors))
            author = authors[index] if index < len(authors) else ""
            if not (threaded and text.startswith(_THREADED)):
                yield cell_comment(node.get("ref"), author, text.removeprefix(f"{author}:"))


def cell_comment(cell: str | None, author: str, text: str) -> str:
    return comment_text(" ".join(text.split()), "" if author.startswith("tc=") else author, cell or "")


def _stated(data: bytes, omissions: Omissions) -> Iterator[str]:
    """Yields the header and footer of a sheet, its prompts, and the tooltips of its links. Skips the cells."""
    if not data:
        return
    tags = [f"{_S}{name}" for name in ("row", "headerFooter", "dataValidation", "hyperlink")]
    walk = etree.iterparse(io.BytesIO(data), events=("end",), tag=tags, remove_comments=True, **XML_OPTIONS)
    for _, node in walk:
        if node.tag == f"{_S}headerFooter":
            for child in node:
                yield from margin_text(child.text or "", omissions)
        elif node.tag == f"{_S}dataValidation":
            yield from (node.get(name) or "" for name in _PROMPTS)
        elif node.tag == f"{_S}hyperlink":
            yield node.get("tooltip") or ""
        node.clear()


def margin_text(stated: str, omissions: Omissions) -> Iterator[str]:
    """Yields the text of a header or footer without its codes. A text that consists of a page number, date or name is reported,
    not yielded."""
    text = _MARGIN_CODE.sub(lambda code: "&" if code[0] == "&&" else " ", stated).strip()
    if _PAGE_OR_DATE_CODE.search(stated) and len(text.split()) <= 2:
        omissions.add(OmissionKind.RUNNING_HEADER, text, int(bool(text)))
    else:
        yield text


def cell_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = str(value)
    return text.removesuffix(" 00:00:00")
