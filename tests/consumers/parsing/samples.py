"""Small files of every format, made in memory for the tests of parsing."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import TypedDict

Line = tuple[float, float, float, str]
"""x, y (from the bottom, in points), size of type, text."""


def pdf(pages: Sequence[Sequence[Line]], title: str = "", encrypt: bool = False) -> bytes:
    """A PDF with one Helvetica font; each page a list of lines."""
    objects: list[bytes] = []

    def add(body: bytes) -> int:
        objects.append(body)
        return len(objects)

    font = add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
    tree = len(objects) + 1
    objects.append(b"")
    kids = []
    for lines in pages:
        shown = b""
        for x, y, size, text in lines:
            escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").encode("cp1252")
            shown += b"BT /F1 %g Tf 1 0 0 1 %g %g Tm (%s) Tj ET\n" % (size, x, y, escaped)
        content = add(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(shown), shown))
        kids.append(
            add(
                b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
                b"/Resources << /Font << /F1 %d 0 R >> >> >>" % (tree, content, font)
            )
        )
    objects[tree - 1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (
        len(kids),
        b" ".join(b"%d 0 R" % kid for kid in kids),
    )
    catalog = add(b"<< /Type /Catalog /Pages %d 0 R >>" % tree)
    info = add(b"<< /Title (%s) >>" % title.encode("cp1252"))
    extra = b""
    if encrypt:
        lock = add(
            b"<< /Filter /Standard /V 1 /R 2 /P -44 /O <" + b"41" * 32 + b"> /U <" + b"42" * 32 + b"> >>",
        )
        extra = b" /Encrypt %d 0 R /ID [<00> <00>]" % lock
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    at = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % offset for offset in offsets)
    out.write(
        b"trailer << /Size %d /Root %d 0 R /Info %d 0 R%s >>\nstartxref\n%d\n%%%%EOF\n"
        % (len(objects) + 1, catalog, info, extra, at)
    )
    return out.getvalue()


def flowed(paragraphs: Sequence[str], heading: str = "", width: int = 80, y: float = 780) -> list[Line]:
    """Lines of one page: an optional heading in large type, then wrapped paragraphs with space between them."""
    import textwrap

    lines: list[Line] = []
    if heading:
        lines.append((60, y, 20, heading))
        y -= 40
    for paragraph in paragraphs:
        for line in textwrap.wrap(paragraph, width):
            lines.append((60, y, 11, line))
            y -= 13
        y -= 12
    return lines


class SizeLimits(TypedDict, total=False):
    """Some sizes and lengths of `Limits`."""

    file_bytes: int
    json_line_bytes: int
    text_chars: int
    line_chars: int
    unpacked_bytes: int
    columns: int
    cells: int
    pages: int


def archive(members: Mapping[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as package:
        for name, content in members.items():
            package.writestr(name, content)
    return out.getvalue()


def epub(title: str, chapters: Sequence[str]) -> bytes:
    """A book whose chapters are XHTML bodies."""
    items = "".join(
        f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>' for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    members: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata><dc:title>{title}</dc:title><dc:creator>Ada Writer</dc:creator></metadata>"
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
    }
    for number, body in enumerate(chapters):
        members[f"OEBPS/c{number}.xhtml"] = (
            f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>{body}</body></html>'
        )
    return archive(members)


_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def docx(paragraphs: Sequence[tuple[str, str]], table: Sequence[Sequence[str]] = (), title: str = "") -> bytes:
    """A Word file: (style id, text) paragraphs, then perhaps a table."""

    def shown(text: str) -> str:
        return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'

    def paragraph(style: str, text: str) -> str:
        properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        return f"<w:p>{properties}{shown(text)}</w:p>"

    body = "".join(paragraph(style, text) for style, text in paragraphs)
    if table:
        rows = "".join(
            "<w:tr>" + "".join(f"<w:tc><w:p>{shown(cell)}</w:p></w:tc>" for cell in row) + "</w:tr>" for row in table
        )
        body += f"<w:tbl>{rows}</w:tbl>"
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/></w:style>'
        for key, name in (("Title", "Title"), ("Heading1", "heading 1"), ("Heading2", "heading 2"))
    )
    types = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    return archive(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{types}.document.main+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}">'
            f'<Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{_RELATIONS}">'
            f'<Relationship Id="s1" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
            "word/styles.xml": f'<w:styles xmlns:w="{_WORD}">{styles}</w:styles>',
            "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
            "docProps/core.xml": '<cp:coreProperties xmlns:dc="http://purl.org/dc/elements/1.1/" '
            'xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties">'
            f"<dc:title>{title}</dc:title></cp:coreProperties>",
        }
    )
