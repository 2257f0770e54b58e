"""Small files of LibreOffice and Outlook, made in memory for the tests of parsing."""

import struct
from collections.abc import Mapping
from itertools import pairwise

from tests.consumers.parsing.samples import archive

_SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{path}:1.0"'
    for name, path in (
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("draw", "drawing"),
        ("presentation", "presentation"),
        ("meta", "meta"),
    )
)
_SECTOR = 512
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def opendocument(kind: str, body: str, title: str = "", encrypted: bool = False) -> bytes:
    """A file whose body is of a kind: `text`, `spreadsheet` or `presentation`."""
    dublin = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    entry = "<encryption-data/>" if encrypted else ""
    return archive(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"<office:document-content {_SPACES}><office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>",
            "meta.xml": f"<office:document-meta {_SPACES} {dublin}><office:meta><dc:title>{title}</dc:title>"
            "<dc:creator>Ada Writer</dc:creator></office:meta></office:document-meta>",
            "META-INF/manifest.xml": f"<manifest>{entry}</manifest>",
        }
    )


Storage = Mapping[str, "bytes | Storage"]
"""The streams and storages in a storage of an OLE file, by name."""


def outlook(streams: Storage, storages: Storage | None = None) -> bytes:
    """An OLE file ([MS-CFB]) with these streams, and storages that hold others. Streams are padded: none is small."""
    entries: list[tuple[str, int, list[int], bytes]] = [("Root Entry", 5, [], b"")]

    def add(name: str, kind: int, content: bytes) -> int:
        entries.append((name, kind, [], content.ljust(4096, b"\0") if kind == 2 else b""))
        return len(entries) - 1

    def fill(at: int, inner: Storage) -> None:
        for name, content in inner.items():
            child = add(name, 2, content) if isinstance(content, bytes) else add(name, 1, b"")
            entries[at][2].append(child)
            if not isinstance(content, bytes):
                fill(child, content)

    fill(0, {**streams, **(storages or {})})

    tables = 2 + len(entries) // 12  # a sector of the table has room for 128 sectors; an entry takes at most 9
    sectors: list[bytes] = []
    chains: list[list[int]] = []

    def place(content: bytes) -> int:
        pieces = [content[at : at + _SECTOR].ljust(_SECTOR, b"\0") for at in range(0, len(content), _SECTOR)]
        chains.append(list(range(len(sectors) + tables, len(sectors) + tables + len(pieces))))
        sectors.extend(pieces)
        return chains[-1][0]

    starts = [place(content) if content else _END for _, _, _, content in entries]
    right = {below: after for _, _, children, _ in entries for below, after in pairwise(children)}
    directory = b"".join(
        (name + "\0").encode("utf-16-le").ljust(64, b"\0")
        + struct.pack("<HBB", 2 * len(name) + 2, kind, 1)
        + struct.pack("<III", _FREE, right.get(index, _FREE), children[0] if children else _FREE)
        + bytes(36)
        + struct.pack("<IQ", starts[index], len(content))
        for index, (name, kind, children, content) in enumerate(entries)
    )
    first_directory = place(directory)
    table = [_FREE] * (tables * _SECTOR // 4)
    table[:tables] = [_FAT] * tables
    for chain in chains:
        for sector, following in zip(chain, [*chain[1:], _END], strict=True):
            table[sector] = following
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    header += struct.pack("<IIIIIIIII", 0, tables, first_directory, 0, 4096, _END, 0, _END, 0)
    header += struct.pack(f"<{tables}I", *range(tables))
    return header.ljust(_SECTOR, b"\xff") + struct.pack(f"<{len(table)}I", *table) + b"".join(sectors)
