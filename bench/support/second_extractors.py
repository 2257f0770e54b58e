"""Extracts the text of documents with other programs and libraries, for comparison with hippod's parsers.

Runs in its own environment (`python second_extractors.py`), because hippod does not depend on these libraries. Reads paths from
standard input, one a line, and writes a JSON object for each: `path`, `by`, `text` or `error`, and `content`: all words of the
file, including its markup, attributes and properties.
"""

import email
import json
import mailbox
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable, Iterator
from email import policy
from html import unescape
from pathlib import Path
from typing import Any

TIME_LIMIT_S = 60
_PARAGRAPHS = frozenset(("p", "h", "si", "is", "cmt", "rich"))
_SPACES = frozenset(("br", "cr", "tab", "line-break", "s"))
"""Names of elements in office files: the texts inside a `_PARAGRAPHS` element form one paragraph; `_SPACES` elements separate
words."""
_DOCX2PYTHON = re.compile(r"<[^<>]+>|----[^-\n]+---->?|\b(?:foot|end)note\d+\)")
"""Additions of docx2python to the text: tags of HTML, names of pictures, marks of notes."""


def command(*arguments: str) -> str:
    return subprocess.run(arguments, capture_output=True, check=True, timeout=TIME_LIMIT_S, text=True).stdout


def pdftotext(path: Path) -> str:
    return command("pdftotext", "-enc", "UTF-8", str(path), "-")


def libreoffice(path: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        profile = f"-env:UserInstallation={Path(tempfile.gettempdir(), 'second-extractors').as_uri()}"
        target = ("--convert-to", "txt:Text (encoded):UTF8", "--outdir", folder)
        command("soffice", profile, "--headless", *target, str(path))
        return next(Path(folder).glob("*.txt")).read_text("utf-8-sig")


def catdoc(path: Path) -> str:
    return command("catdoc", "-w", "-d", "utf-8", str(path))


def catppt(path: Path) -> str:
    return command("catppt", "-d", "utf-8", str(path))


def pandoc(path: Path) -> str:
    """Converts markup to text without line breaks inside paragraphs and without emphasis marks."""
    kinds = {"tex": "latex", "wiki": "mediawiki", "fb2": "fb2", "ipynb": "ipynb", "md": "markdown", "dbk": "docbook"}
    kind = path.suffix.lower()[1:]
    return command("pandoc", "--sandbox", "-f", kinds.get(kind, kind), "-t", "plain", "--wrap=none", str(path))


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
        return re.sub(_DOCX2PYTHON, " ", str(found.text))


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


def xlrd_cells(path: Path) -> str:
    import xlrd

    book = xlrd.open_workbook(str(path))
    lines = book.sheet_names()
    for sheet in book.sheets():
        for number in range(sheet.nrows):
            for cell in sheet.row(number):
                is_whole = cell.ctype == xlrd.XL_CELL_NUMBER and float(cell.value).is_integer()
                if cell.ctype == xlrd.XL_CELL_DATE:
                    lines.append(str(xlrd.xldate_as_datetime(cell.value, book.datemode)))
                elif cell.ctype == xlrd.XL_CELL_BOOLEAN:
                    lines.append(str(bool(cell.value)))
                elif cell.ctype in (xlrd.XL_CELL_TEXT, xlrd.XL_CELL_NUMBER):
                    lines.append(str(int(cell.value)) if is_whole else str(cell.value))
    return "\n".join(lines)


def outlook(path: Path) -> str:
    import extract_msg

    with extract_msg.openMsg(str(path)) as mail:
        stated = (mail.subject, mail.sender, mail.to, mail.cc, mail.bcc, mail.body)
        date = mail.date.replace(microsecond=0).isoformat() if mail.date else ""
        return "\n".join([date, *(str(each) for each in stated if each)])


def mailbox_texts(path: Path) -> str:
    """Returns subject, sender and first plain text of each message, by Python's own modules."""
    texts: list[str] = []
    for message in mailbox.mbox(path, create=False):
        parsed = email.message_from_bytes(bytes(message), policy=policy.default)
        body = parsed.get_body(("plain", "html"))
        text = str(body.get_content()) if body is not None else ""
        is_page = body is not None and body.get_content_subtype() == "html"
        texts += [str(parsed["subject"] or ""), str(parsed["from"] or ""), _page(text) if is_page else text]
    return "\n".join(texts)


def cues(path: Path) -> str:
    import pysubs2

    return "\n".join(cue.plaintext for cue in pysubs2.load(str(path)))


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
    """Reads a table with the standard library, using the most frequent delimiter."""
    import csv

    text = path.read_bytes().decode("utf-8-sig", "replace")
    mark = max(",;\t|", key=text[:5000].count)
    return "\n".join(cell for row in csv.reader(text.splitlines(True), delimiter=mark) for cell in row)


EXTRACTORS: dict[str, tuple[tuple[str, str, Callable[[Path], str]], ...]] = {
    "pdf": (("pdftotext", "pdftotext", pdftotext), ("", "pdfminer.six", pdfminer)),
    "docx": (("soffice", "LibreOffice", libreoffice), ("", "docx2python", docx2python)),
    "doc": (("catdoc", "catdoc", catdoc), ("soffice", "LibreOffice", libreoffice)),
    "pptx": (("", "python-pptx", slide_texts),),
    "ppt": (("catppt", "catppt", catppt),),
    "xlsx": (("", "python-calamine", calamine),),
    "xls": (("", "xlrd", xlrd_cells),),
    "odt": (("soffice", "LibreOffice", libreoffice), ("", "odfpy", odfpy)),
    "odp": (("", "odfpy", odfpy),),
    "ods": (("", "odfpy", odfpy),),
    "eml": (("", "mail-parser", mail_parser),),
    "mbox": (("", "mailbox of Python", mailbox_texts),),
    "msg": (("", "extract-msg", outlook),),
    "srt": (("", "pysubs2", cues),),
    "vtt": (("", "pysubs2", cues),),
    "rtf": (("soffice", "LibreOffice", libreoffice), ("", "striprtf", striprtf)),
    "html": (("", "BeautifulSoup", page),),
    "epub": (("ebook-convert", "ebook-convert", ebook_convert), ("", "EbookLib", book)),
    "csv": (("", "csv of Python", table),),
    **dict.fromkeys(("rst", "org", "tex", "wiki", "fb2", "ipynb", "md", "dbk"), (("pandoc", "pandoc", pandoc),)),
}
"""(required command or "", name, function) by file extension; the first available one is used."""


def extractor(path: Path) -> tuple[str, Callable[[Path], str]] | None:
    for needed, name, function in EXTRACTORS[path.suffix.lower().removeprefix(".")]:
        if not needed or shutil.which(needed):
            return name, function
    return None


def content(path: Path) -> str:
    """Returns all words of a file. Packages: texts and attributes of each XML part. Mails: also the decoded parts."""
    data = path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as package:
            names = package.namelist()
            return "\n".join(
                (*names, *(_words_of_markup(package.read(name)) for name in names if not name.endswith("/")))
            )
    found = [data.decode("utf-8", "replace"), data.decode("cp1252", "replace"), data.decode("utf-16-le", "replace")]
    if path.suffix.lower() in (".eml", ".mbox"):
        message = email.message_from_bytes(data)
        parts = (part.get_payload(decode=True) for part in message.walk() if not part.is_multipart())
        texts = [part for part in parts if isinstance(part, bytes)]
        found += [part.decode(encoding, "replace") for part in texts for encoding in ("utf-8", "cp1252")]
    if path.suffix.lower() == ".msg":
        found += ["From To Cc Bcc Date", data[1:].decode("utf-16-le", "replace")]
    if path.suffix.lower() == ".pdf":
        found += [function(path) for needed, _, function in EXTRACTORS["pdf"] if not needed or shutil.which(needed)]
    return "\n".join((*found, unescape(found[0])))


def _words_of_markup(data: bytes) -> str:
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError:
        return unescape(data.decode("utf-8", "replace"))
    texts: list[str] = []
    for node in root.iter():
        name = node.tag.rpartition("}")[2]
        if name in _SPACES:
            node.text = f" {node.text or ''}"
        texts += node.attrib.values()
    for node in root.iter():
        if node.tag.rpartition("}")[2] in _PARAGRAPHS:
            texts.append("".join(node.itertext()))
    return "\n".join((*texts, "\n".join(root.itertext())))


def main() -> None:
    for line in sys.stdin:
        path = Path(line.rstrip("\n"))
        if (reader := extractor(path)) is None:
            continue
        name, function = reader
        try:
            found = {"text": function(path), "content": content(path)}
        except Exception as error:  # noqa: BLE001 - a library's error for a damaged file is a result too
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps({"path": str(path), "by": name, **found}), flush=True)


if __name__ == "__main__":
    main()
