"""Extracts the text of documents with other programs and libraries, for comparison with hippod's parsers.

Runs in its own environment (`python second_extractors.py`), because hippod does not depend on these libraries. Reads paths from
standard input, one a line, and writes a JSON object for each: `path`, `by`, and `text` or `error`.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TIME_LIMIT_S = 60


def command(*arguments: str) -> str:
    return subprocess.run(arguments, capture_output=True, check=True, timeout=TIME_LIMIT_S, text=True).stdout


def pdftotext(path: Path) -> str:
    return command("pdftotext", "-enc", "UTF-8", str(path), "-")


def libreoffice(path: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command("soffice", "--headless", "--convert-to", "txt:Text (encoded):UTF8", "--outdir", folder, str(path))
        return next(Path(folder).glob("*.txt")).read_text("utf-8")


def ebook_convert(path: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "book.txt"
        command("ebook-convert", str(path), str(target))
        return target.read_text("utf-8")


def pdfminer(path: Path) -> str:
    from pdfminer.high_level import extract_text

    return str(extract_text(path))


def docx2python(path: Path) -> str:
    from docx2python import docx2python as read

    with read(path, html=False) as found:
        return str(found.text)


def slide_texts(path: Path) -> str:
    """Returns every text frame, table and chart title that python-pptx finds."""
    from pptx import Presentation

    def shapes(found: Any) -> Iterator[str]:
        for shape in found:
            if hasattr(shape, "shapes"):
                yield from shapes(shape.shapes)
            elif shape.has_text_frame:
                yield shape.text_frame.text
            elif getattr(shape, "has_table", False):
                yield from (cell.text for row in shape.table.rows for cell in row.cells)
            elif getattr(shape, "has_chart", False):
                yield from chart_texts(shape.chart)

    def chart_texts(chart: Any) -> Iterator[str]:
        if chart.has_title and chart.chart_title.has_text_frame:
            yield chart.chart_title.text_frame.text
        for plot in chart.plots:
            yield from map(str, plot.categories)
            for series in plot.series:
                yield from (str(each) for each in (series.name, *series.values))

    deck = Presentation(str(path))
    parts: list[str] = []
    for slide in deck.slides:
        parts += shapes(slide.shapes)
        if slide.has_notes_slide:
            parts.append(slide.notes_slide.notes_text_frame.text if slide.notes_slide.notes_text_frame else "")
    return "\n".join(parts).replace("\v", "\n")


def calamine(path: Path) -> str:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_path(str(path))
    lines = list(book.sheet_names)
    for name in book.sheet_names:
        for row in book.get_sheet_by_name(name).to_python():
            lines += [str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell) for cell in row]
    return "\n".join(lines)


def odfpy(path: Path) -> str:
    from odf import opendocument, teletype
    from odf.draw import Page
    from odf.table import Table
    from odf.text import H, P

    document = opendocument.load(str(path))
    nodes = [node for kind in (H, P) for node in document.body.getElementsByType(kind)]
    names = [
        node.getAttribute("name") or "" for kind in (Table, Page) for node in document.body.getElementsByType(kind)
    ]
    return "\n".join([*names, *map(teletype.extractText, nodes)])


def mail_parser(path: Path) -> str:
    import mailparser

    mail = mailparser.parse_from_file(str(path))
    headers = [f"{name} {mail.message[name]}" for name in ("From", "To", "Cc", "Date") if mail.message[name]] + [
        mail.subject or ""
    ]
    return "\n".join([*headers, *mail.text_plain, *map(_page, mail.text_html)])


def striprtf(path: Path) -> str:
    from striprtf.striprtf import rtf_to_text

    return str(rtf_to_text(path.read_text("latin-1"), errors="ignore"))


def page(path: Path) -> str:
    return _page(path.read_bytes())


def _page(data: bytes | str) -> str:
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(data, "html.parser")
    for node in soup(["script", "style", "template", "svg"]):
        node.decompose()
    return str(soup.get_text("\n"))


def book(path: Path) -> str:
    from ebooklib import ITEM_DOCUMENT, epub

    opened = epub.read_epub(str(path))
    spine = [opened.get_item_with_id(name) for name, _ in opened.spine]
    return "\n".join(
        _page(item.get_content()) for item in spine if item is not None and item.get_type() == ITEM_DOCUMENT
    )


def table(path: Path) -> str:
    """Reads a table with the standard library, given only the most frequent delimiter."""
    import csv

    text = path.read_bytes().decode("utf-8-sig", "replace")
    mark = max(",;\t|", key=text[:5000].count)
    return "\n".join(cell for row in csv.reader(text.splitlines(True), delimiter=mark) for cell in row)


EXTRACTORS: dict[str, tuple[tuple[str, str, Callable[[Path], str]], ...]] = {
    "pdf": (("pdftotext", "pdftotext", pdftotext), ("", "pdfminer.six", pdfminer)),
    "docx": (("soffice", "LibreOffice", libreoffice), ("", "docx2python", docx2python)),
    "pptx": (("", "python-pptx", slide_texts),),
    "xlsx": (("", "python-calamine", calamine),),
    "odt": (("soffice", "LibreOffice", libreoffice), ("", "odfpy", odfpy)),
    "odp": (("", "odfpy", odfpy),),
    "ods": (("", "odfpy", odfpy),),
    "eml": (("", "mail-parser", mail_parser),),
    "rtf": (("soffice", "LibreOffice", libreoffice), ("", "striprtf", striprtf)),
    "html": (("", "BeautifulSoup", page),),
    "epub": (("ebook-convert", "ebook-convert", ebook_convert), ("", "EbookLib", book)),
    "csv": (("", "csv of Python", table),),
}
"""By file extension: the required command ("" for none), a name, and the function; the first available one is used."""


def extractor(path: Path) -> tuple[str, Callable[[Path], str]]:
    for needed, name, function in EXTRACTORS[path.suffix.lower().removeprefix(".")]:
        if not needed or shutil.which(needed):
            return name, function
    raise LookupError(path.suffix)


def main() -> None:
    for line in sys.stdin:
        path = Path(line.rstrip("\n"))
        name, function = extractor(path)
        try:
            found = {"text": function(path)}
        except Exception as error:  # noqa: BLE001 - a library's error for a damaged file is a result too
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps({"path": str(path), "by": name, **found}), flush=True)


if __name__ == "__main__":
    main()
