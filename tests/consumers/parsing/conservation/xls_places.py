"""Excel 97 to 2003: records of [MS-XLS], cited by section."""

import struct

from tests.consumers.parsing.conservation.places import FormatTable, Words
from tests.consumers.parsing.office_samples import outlook

PLACES = {
    "text of a cell": "2.4.149",
    "shared text": "2.4.265",
    "text beyond Latin-1": "2.4.149",
    "text of a formula": "2.4.268",
    "name of a column": "2.4.149",
    "name of a sheet": "2.4.28",
    "header": "2.4.136",
    "footer": "2.4.124",
    "comment": "2.4.179",
    "author of a comment": "2.4.179",
    "long comment": "2.4.58",
    "text box": "2.4.329",
    "name in a chart": "2.4.254",
    "title of a prompt": "2.4.95",
    "prompt": "2.4.95",
    "cell of another sheet": "2.4.149",
}


def record(kind: int, data: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def string(text: str, length: str = "<HB") -> bytes:
    wide = not text.isascii()
    return struct.pack(length, len(text), wide) + text.encode("utf-16-le" if wide else "latin-1")


def start(kind: int) -> bytes:
    return record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 1997, 0, 6))


def cell(row: int, column: int, text: str) -> bytes:
    return record(0x204, struct.pack("<HHH", row, column, 15) + string(text))


def box(number: int, text: str) -> bytes:
    """An object with a text, which is cut into two records."""
    shape = record(0x5D, struct.pack("<HHHHH", 0x15, 0x12, 0x19, number, 0) + bytes(12))
    cut = [record(0x3C, b"\0" + part.encode()) for part in (text[:3], text[3:])]
    return (
        shape
        + record(0x1B6, bytes(10) + struct.pack("<HH", len(text), 16) + bytes(4))
        + b"".join(cut)
        + record(0x3C, bytes(16))
    )


def first_sheet(words: Words) -> bytes:
    body = start(0x10)
    for place, kind in (("header", 0x14), ("footer", 0x15)):
        if place in words:
            body += record(kind, string(f"&C{words[place]}"))
    row = 0
    for column, text in enumerate((words.get("name of a column", "Name"), "Area", "Year")):
        body += cell(0, column, text)
    for place in ("text of a cell", "shared text", "text beyond Latin-1", "text of a formula"):
        if place not in words:
            continue
        row += 1
        at = struct.pack("<HHH", row, 0, 15)
        if place == "shared text":
            body += record(0xFD, at + struct.pack("<I", 0))
        elif place == "text of a formula":
            body += record(0x06, at + bytes(6) + b"\xff\xff" + bytes(8) + b"\0") + record(0x207, string(words[place]))
        else:
            body += cell(row, 0, words[place] if place == "text of a cell" else f"ж {words[place]}")
        body += cell(row, 1, "North")
    notes = b""
    for number, place in enumerate(("comment", "long comment", "text box"), 1):
        if place in words or (place == "comment" and "author of a comment" in words):
            body += box(number, words.get(place, "See") + " below" * (20 if place == "long comment" else 1))
            if place != "text box":
                author = words.get("author of a comment", "Ann")
                notes += record(0x1C, struct.pack("<HHHH", 1, 0, 0, number) + string(author) + b"\0")
    if {"title of a prompt", "prompt"} & words.keys():
        texts = (words.get("title of a prompt", "\0"), "\0", words.get("prompt", "\0"), "\0")
        body += record(0x1BE, bytes(4) + b"".join(map(string, texts)) + bytes(12))
    if "name in a chart" in words:
        body += start(0x20) + record(0x100D, b"\0\0" + string(words["name in a chart"], "<BB")) + record(0x0A)
    return body + notes + record(0x0A)


def write(words: Words, formats: bytes = b"", cells: bytes = b"") -> bytes:
    """`formats` are more records of the workbook, `cells` more records of its second sheet."""
    second = start(0x10) + cell(0, 0, words.get("cell of another sheet", "The end")) + cells + record(0x0A)
    sheets = [(words.get("name of a sheet", "Stock"), first_sheet(words)), ("Other", second)]
    shared = record(0xFC, struct.pack("<II", 1, 1) + string(words.get("shared text", "a")))

    def head(places: list[int]) -> bytes:
        bounds = (
            record(0x85, struct.pack("<IBB", place, 0, 0) + string(name, "<BB"))
            for place, (name, _) in zip(places, sheets, strict=True)
        )
        return start(0x05) + record(0x42, b"\xb0\x04") + formats + b"".join(bounds) + shared + record(0x0A)

    size = len(head([0, 0]))
    stream = head([size, size + len(sheets[0][1])]) + sheets[0][1] + sheets[1][1]
    return outlook({"Workbook": stream})


TABLE = FormatTable("stock.xls", "[MS-XLS]", PLACES, write)
