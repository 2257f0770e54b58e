"""Binary Excel workbooks: records of [MS-XLSB], cited by section."""

import io
import struct
import zipfile

from tests.consumers.parsing.conservation.office_parts import element
from tests.consumers.parsing.conservation.places import FormatTable, Words

PLACES = {
    "picture": "[MS-XLSB] 2.1.7.20",
    "text of a cell": "2.4.307",
    "shared text": "2.4.306",
    "text of a formula": "2.4.657",
    "name of a column": "2.4.307",
    "name of a sheet": "2.4.301",
    "header": "2.4.40",
    "comment": "2.4.309",
    "author of a comment": "2.4.308",
    "text box": "ECMA-376 20.5.2.29",
    "title": "ECMA-376 part 2, 8.3.3.1",
}
_TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"


def record(kind: int, data: bytes = b"") -> bytes:
    head = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    size = len(data)
    return head + (bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])) + data


def wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def cell(column: int, text: str) -> bytes:
    return record(6, struct.pack("<II", column, 0) + wide(text))


def row(number: int, *cells: bytes) -> bytes:
    return record(0, struct.pack("<IIHHHI", number, 0, 300, 0, 0, 0)) + b"".join(cells)


def sheet(words: Words, last: tuple[int, int] | None = None) -> bytes:
    rows = [row(0, *(cell(at, text) for at, text in enumerate((words.get("name of a column", "Name"), "Area"))))]
    for place in ("text of a cell", "shared text", "text of a formula"):
        if place not in words:
            continue
        head = struct.pack("<II", 0, 0)
        first = {
            "text of a cell": cell(0, words[place]),
            "shared text": record(7, head + struct.pack("<I", 0)),
            "text of a formula": record(8, head + wide(words[place]) + bytes(10)),
        }[place]
        rows.append(row(len(rows), first, cell(1, "North")))
    if last is not None:
        rows.append(row(last[0], cell(last[1], "far away")))
    body = (
        record(129) + record(148, struct.pack("<IIII", 0, len(rows), 0, 1)) + record(145) + b"".join(rows) + record(146)
    )
    if "header" in words:
        body += record(479, b"\0\0" + wide(f"&C{words['header']}") + b"\xff\xff\xff\xff" * 5) + record(480)
    return body + record(130)


def relations(*parts: tuple[str, str]) -> str:
    listed = "".join(
        f'<Relationship Id="r{number}" Type="{_TYPE}{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(parts)
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{listed}</Relationships>'
    )


def write(words: Words, last: tuple[int, int] | None = None) -> bytes:
    """A workbook with the words; `last` is the row and column of a further cell."""
    core = '<c xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>' + words.get("title", "") + "</dc:title></c>"
    book = record(131) + record(143)
    book += record(156, struct.pack("<II", 0, 1) + wide("r0") + wide(words.get("name of a sheet", "Stock")))
    book += record(156, struct.pack("<II", 0, 2) + wide("r1") + wide("Other")) + record(144) + record(132)
    parts: dict[str, bytes | str] = {
        "_rels/.rels": relations(("officeDocument", "xl/workbook.bin")),
        "docProps/core.xml": core,
        "xl/workbook.bin": book,
        "xl/_rels/workbook.bin.rels": relations(
            ("worksheet", "worksheets/sheet1.bin"), ("worksheet", "worksheets/sheet2.bin"),
            ("sharedStrings", "sharedStrings.bin"),
        ),
        "xl/worksheets/sheet1.bin": sheet(words, last),
        "xl/worksheets/sheet2.bin": sheet({}),
        "xl/sharedStrings.bin": record(159, struct.pack("<II", 1, 1))
        + record(19, b"\0" + wide(words.get("shared text", "a"))) + record(160),
    }  # fmt: skip
    related = []
    if {"comment", "author of a comment"} & words.keys():
        related.append(("comments", "../comments1.bin"))
        parts["xl/comments1.bin"] = (
            record(628) + record(630) + record(632, wide(words.get("author of a comment", "Ann"))) + record(631) + record(633)
            + record(635, struct.pack("<IIIII", 0, 1, 1, 0, 0) + bytes(16))
            + record(637, b"\0" + wide(words.get("comment", "See below"))) + record(636) + record(634) + record(629)
        )  # fmt: skip
    if {"text box", "picture"} & words.keys():
        related.append(("drawing", "../drawings/drawing1.xml"))
        paragraph = f"<xdr:txBody><a:p><a:r><a:t>{words.get('text box', 'a')}</a:t></a:r></a:p></xdr:txBody>"
        shown = f"<xdr:twoCellAnchor><xdr:sp>{paragraph}</xdr:sp></xdr:twoCellAnchor>"
        if "picture" in words:
            shown += "<xdr:twoCellAnchor><xdr:pic><a:blip r:embed='r0'/></xdr:pic></xdr:twoCellAnchor>"
            parts["xl/drawings/_rels/drawing1.xml.rels"] = relations(("image", f"{words['picture']}.png"))
            parts[f"xl/drawings/{words['picture']}.png"] = b"a picture"
        parts["xl/drawings/drawing1.xml"] = element("xdr:wsDr", shown)
    if related:
        parts["xl/worksheets/_rels/sheet1.bin.rels"] = relations(*related)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


TABLE = FormatTable("stock.xlsb", "[MS-XLSB]", PLACES, write)
