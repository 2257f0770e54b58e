"""Word, PowerPoint and Excel files: by mammoth, python-pptx and openpyxl, the libraries that MarkItDown uses too.

They are used directly: MarkItDown turns everything into one Markdown text, in which slides, sheets and rows have lost their
numbers, and importing it costs a second and 160 MB.
"""

import io
from collections.abc import Iterator
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.omissions import Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.markup.html_text import walk
from consumers.parsing.formats.markup.html_tree import tree
from consumers.parsing.limits import Limits, NotADocument
from consumers.parsing.office_properties import document_properties
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import is_header, row_text
from consumers.parsing.zip_archive import check_members, open_package
from consumers.splitting import ParsedText

_DEFAULT_SHEETS = ("sheet", "tabelle", "feuille", "hoja", "foglio", "лист", "工作表", "シート")


def parse_docx(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    import mammoth

    with open_package(data, limits) as package:
        check_members(package)
        metadata, title = document_properties(package)
    styles = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"
    result = mammoth.convert_to_html(
        io.BytesIO(data),
        style_map=styles,
        convert_image=mammoth.images.img_element(lambda _: {}),
        external_file_access=False,
    )
    outline = Outline(limits.text_chars, omissions)
    root = tree(f"<html><body>{result.value}</body></html>".encode("utf-8", "replace"))
    if root is not None:
        walk(root, outline, lines=False)
    blocks = outline.done()
    return ParsedText(blocks, title or outline.first_heading, metadata)


def parse_pptx(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    from pptx import Presentation

    with open_package(data, limits) as package:
        check_members(package)
        metadata, title = document_properties(package)
    outline = Outline(limits.text_chars, omissions)
    slides = Presentation(io.BytesIO(data)).slides
    if len(slides) > limits.pages:
        raise NotADocument(
            f"{len(slides):,} slides, more than the {limits.pages:,} read at most; split it up", FailureCode.TOO_LARGE
        )
    for number, slide in enumerate(slides, 1):
        heading = slide.shapes.title
        if heading is not None and heading.has_text_frame:
            outline.heading(1, clean_text(heading.text_frame.text), page=number)
        else:
            outline.heading(1, f"Slide {number}", page=number)
        for shape in _shapes(slide.shapes):
            if heading is None or shape.shape_id != heading.shape_id:
                _shape_text(shape, outline, number)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            outline.text(clean_text(slide.notes_slide.notes_text_frame.text), page=number)
    blocks = outline.done()
    return ParsedText(blocks, title or outline.first_heading, metadata)


def _shapes(shapes: Any) -> Iterator[Any]:
    """All shapes in order, groups opened. A stack, because groups can be nested without end."""
    stack = [iter(shapes)]
    while stack:
        shape = next(stack[-1], None)
        if shape is None:
            stack.pop()
        elif hasattr(shape, "shapes"):
            stack.append(iter(shape.shapes))
        else:
            yield shape


def _shape_text(shape: Any, outline: Outline, page: int) -> None:
    if getattr(shape, "has_table", False):
        rows = [[clean_text(cell.text) for cell in row.cells] for row in shape.table.rows]
        header = rows[0] if rows and is_header(rows[0]) else []
        for number, row in enumerate(rows[1:] if header else rows, 1):
            outline.text(row_text(header, row), "\n\n" if number == 1 else "\n", page=page, row=number)
    elif getattr(shape, "has_text_frame", False):
        for index, paragraph in enumerate(shape.text_frame.paragraphs):
            text = clean_text("".join(run.text for run in paragraph.runs)).strip()
            outline.text(text, "\n\n" if index == 0 else "\n", page=page)


def parse_xlsx(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    from openpyxl import load_workbook

    with open_package(data, limits) as package:
        check_members(package)
        metadata, title = document_properties(package)
    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    outline = Outline(limits.text_chars, omissions)
    cells = 0
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # what a file says of its own size may be wrong, or a lie
        if len(book.worksheets) > 1 or not sheet.title.lower().startswith(_DEFAULT_SHEETS):
            outline.heading(1, sheet.title, sheet=sheet.title)
        header: list[str] | None = None
        for number, values in enumerate(sheet.iter_rows(values_only=True), 1):
            cells += len(values) or 1
            if cells > limits.cells:
                raise NotADocument(
                    f"more than {limits.cells:,} cells; exclude it, or split it up", FailureCode.TOO_LARGE
                )
            row = [clean_text(_cell(value)) for value in values]
            if header is None and any(row):
                header = row if is_header(row) else []
                if header:
                    continue
            outline.text(row_text(header or [], row), "\n", sheet=sheet.title, row=number)
        if header and not any(block.sheet == sheet.title and block.row for block in outline.blocks[-1:]):
            outline.text("; ".join(cell for cell in header if cell), sheet=sheet.title, row=1)
    book.close()
    return ParsedText(outline.done(), title, metadata)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = str(value)
    return text.removesuffix(" 00:00:00")
