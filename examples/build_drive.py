"""Builds the binary documents of `drive/` from the texts in `sources/`: `python examples/build_drive.py [FOLDER]`.

For maintainers only; nothing at run time needs it. Requires python-docx, python-pptx, openpyxl and fpdf2. A source is named
after its document (`people/x.docx.md` becomes `people/x.docx`) and uses a small part of Markdown: headings, paragraphs, `- `
lists, `|` tables and `---` for a page break. Equal sources give equal bytes, because every date is fixed.
"""

import io
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "sources"
DRIVE = HERE / "drive"
WHEN = datetime(2021, 3, 1, 12, 0, 0)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a source: `kind` is h1, h2, p, li, row or break. `cells` contains a row's cells, `text` the text of other
    blocks."""

    kind: str
    text: str = ""
    cells: tuple[str, ...] = ()


def parse(text: str) -> list[Block]:
    """Returns the blocks of a source. The lines of a paragraph are joined by a space."""
    return [block for part in text.strip().split("\n\n") for block in _parse_part(part)]


def _parse_part(part: str) -> Iterator[Block]:
    lines = part.split("\n")
    if part == "---":
        yield Block("break")
    elif part.startswith("## "):
        yield Block("h2", part[3:])
    elif part.startswith("# "):
        yield Block("h1", part[2:])
    elif part.startswith("- "):
        yield from (Block("li", line[2:]) for line in lines)
    elif part.startswith("|"):
        rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
        yield from (Block("row", cells=row) for row in rows if set("".join(row)) != {"-"})
    else:
        yield Block("p", " ".join(lines))


def to_docx(blocks: list[Block]) -> bytes:
    import docx

    document = docx.Document()
    title = blocks[0].text
    properties = document.core_properties
    properties.title, properties.author, properties.comments = title, "Ostrel Cave Laboratory", ""
    properties.created = properties.modified = WHEN
    for block in blocks:
        if block.kind in ("h1", "h2"):
            document.add_heading(block.text, level=int(block.kind[1]))
        else:
            document.add_paragraph(block.text)
    return _packed(document.save)


def to_pptx(blocks: list[Block]) -> bytes:
    from pptx import Presentation

    deck = Presentation()
    properties = deck.core_properties
    properties.title, properties.author = blocks[0].text, "Ostrel Cave Laboratory"
    properties.created = properties.modified = WHEN
    for block in blocks:
        if block.kind == "h1":
            slide = deck.slides.add_slide(deck.slide_layouts[1])
            slide.shapes.title.text = block.text
            frame, used = slide.placeholders[1].text_frame, False
        else:
            paragraph = frame.add_paragraph() if used else frame.paragraphs[0]
            paragraph.text, used = block.text, True
    return _packed(deck.save)


def to_xlsx(blocks: list[Block]) -> bytes:
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for block in blocks:
        if block.kind == "h1":
            sheet = book.create_sheet(block.text)
        else:
            sheet.append([int(cell) if cell.isdigit() else cell for cell in block.cells])
    book.properties.creator = "Ostrel Cave Laboratory"
    book.properties.created = WHEN
    packed = _packed(book.save)
    # openpyxl always writes the time of saving, so the property is corrected in the finished file.
    return _rezipped(packed, lambda name, data: _with_modified(data) if name == "docProps/core.xml" else data)


def to_pdf(blocks: list[Block]) -> bytes:
    from fpdf import FPDF

    pdf = FPDF()
    pdf.set_creation_date(WHEN.replace(tzinfo=UTC))
    pdf.set_title(blocks[0].text)
    pdf.set_author("Ostrel Cave Laboratory")
    pdf.set_margins(25, 25)
    pdf.add_page()
    for block in blocks:
        if block.kind == "break":
            pdf.add_page()
            continue
        size, style = {"h1": (17, "B"), "h2": (13, "B")}.get(block.kind, (11, ""))
        pdf.set_font("Helvetica", style, size)
        pdf.multi_cell(0, size * 0.5, block.text, align="L", new_x="LMARGIN", new_y="NEXT")
        pdf.ln(3)
    return bytes(pdf.output())


def to_epub(blocks: list[Block]) -> bytes:
    """Returns an EPUB 3 with one chapter, written without a library."""
    title = escape(blocks[0].text)
    body = "\n".join(f"<{block.kind}>{escape(block.text)}</{block.kind}>" for block in blocks)
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    page = (
        f'{head}<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{title}</title></head>'
        "<body>\n%s\n</body></html>\n"
    )
    nav = (
        '<nav xmlns:epub="http://www.idpf.org/2007/ops" epub:type="toc"><ol>'
        f'<li><a href="text.xhtml">{title}</a></li></ol></nav>'
    )
    package = (
        f'{head}<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<dc:identifier id="id">urn:ostrel:{title.lower().replace(" ", "-").replace(",", "")}</dc:identifier>'
        f"<dc:title>{title}</dc:title><dc:creator>Ostrel Cave Laboratory</dc:creator><dc:language>en</dc:language>"
        f'<meta property="dcterms:modified">{WHEN:%Y-%m-%dT%H:%M:%SZ}</meta></metadata><manifest>'
        '<item id="text" href="text.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/></manifest>'
        '<spine><itemref idref="text"/></spine></package>\n'
    )
    container = (
        f'{head}<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>\n'
    )
    members = {
        "META-INF/container.xml": container,
        "OEBPS/content.opf": package,
        "OEBPS/nav.xhtml": page % nav,
        "OEBPS/text.xhtml": page % body,
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        # The format requires this member first and uncompressed.
        archive.writestr(_member("mimetype", zipfile.ZIP_STORED), "application/epub+zip")
        for name, text in members.items():
            archive.writestr(_member(name), text)
    return file.getvalue()


def _member(name: str, compression: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, WHEN.timetuple()[:6])
    info.compress_type = compression
    return info


def _packed(save: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    save(file)
    return _rezipped(file.getvalue(), lambda _name, data: data)


def _rezipped(packed: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    """Returns a zip with the same members, each dated `WHEN` and passed through `change`."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            new.writestr(_member(name), change(name, old.read(name)))
    return file.getvalue()


def _with_modified(core: bytes) -> bytes:
    start, end = core.index(b">", core.index(b"<dcterms:modified")) + 1, core.index(b"</dcterms:modified>")
    return core[:start] + WHEN.strftime("%Y-%m-%dT%H:%M:%SZ").encode() + core[end:]


WRITERS: dict[str, Callable[[list[Block]], bytes]] = {
    ".docx": to_docx,
    ".pptx": to_pptx,
    ".xlsx": to_xlsx,
    ".pdf": to_pdf,
    ".epub": to_epub,
}


def build(folder: Path) -> list[Path]:
    """Writes every document of `sources/` below `folder`; returns their paths relative to it, in order."""
    made = []
    for source in sorted(SOURCES.rglob("*.md")):
        relative = source.relative_to(SOURCES).with_suffix("")
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(WRITERS[target.suffix](parse(source.read_text(encoding="utf-8"))))
        made.append(relative)
    return made


if __name__ == "__main__":
    for path in build(Path(sys.argv[1]) if len(sys.argv) > 1 else DRIVE):
        print(path)
