"""winmail.dat: attributes of [MS-OXTNEF] and properties of [MS-OXPROPS]."""

import struct

from tests.consumers.parsing.conservation.places import FormatTable, Words

PLACES = {
    "subject": "attSubject, 2.1.3.2",
    "body": "PidTagBody, 2.618",
    "page": "PidTagHtml, 2.735",
    "short name of a file": "attAttachTitle, 2.1.3.3",
    "long name of a file": "PidTagAttachLongFilename, 2.595",
    "text of a file": "attAttachData, 2.1.3.3",
}


def attribute(level: int, number: int, value: bytes) -> bytes:
    return struct.pack("<BII", level, number, len(value)) + value + struct.pack("<H", sum(value) & 0xFFFF)


def properties(*found: tuple[int, int, bytes]) -> bytes:
    """The properties with numbers, types and values, after a fixed one and a named one with several values."""
    out = struct.pack("<I", 2 + len(found)) + struct.pack("<HHI", 0x000B, 0x0E1B, 1)
    name = "note".encode("utf-16-le") + b"\0\0"
    out += struct.pack("<HH", 0x101E, 0x8001) + bytes(16) + struct.pack("<II", 1, len(name)) + padded(name)
    out += struct.pack("<I", 2) + b"".join(
        struct.pack("<I", len(each)) + padded(each) for each in (b"one\0", b"three\0")
    )
    for number, kind, value in found:
        out += struct.pack("<HHII", kind, number, 1, len(value)) + padded(value)
    return out


def padded(value: bytes) -> bytes:
    return value + bytes(-len(value) % 4)


def write(words: Words) -> bytes:
    out = b"\x78\x9f\x3e\x22\x01\x00" + attribute(1, 0x69007, struct.pack("<II", 1252, 0))
    if "subject" in words:
        out += attribute(1, 0x18004, words["subject"].encode() + b"\0")
    body = []
    if "body" in words:
        body.append((0x1000, 0x001F, f"The {words['body']} turns.".encode("utf-16-le")))
    if "page" in words:
        body.append((0x1013, 0x0102, f"<p>The wheel {words['page']} turns.</p>".encode()))
    out += attribute(1, 0x69003, properties(*body))
    for place, text in (
        ("short name of a file", b"A text."),
        ("long name of a file", b"Another."),
        ("text of a file", b""),
    ):
        if place not in words:
            continue
        out += attribute(2, 0x69002, bytes(14))
        name = f"{words[place]}.txt" if "name" in place else "a.txt"
        out += attribute(2, 0x18010, name.encode() if place != "long name of a file" else b"LONG~1.TXT\0")
        out += attribute(2, 0x6800F, text or f"The {words[place]} stands.".encode())
        if place == "long name of a file":
            out += attribute(2, 0x69005, properties((0x3707, 0x001F, name.encode("utf-16-le"))))
    return out


TABLE = FormatTable("winmail.dat", "[MS-OXTNEF] and [MS-OXPROPS]", PLACES, write)
