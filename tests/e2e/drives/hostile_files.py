"""Two hundred hostile files, with good ones among them."""

import os
import random
import socket
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from tests.consumers.parsing.samples import archive, docx, epub, flowed, pdf

SUFFIXES = ("txt", "md", "html", "pdf", "docx", "pptx", "xlsx", "epub", "csv", "eml", "json", "jsonl")
PACKED = ("docx", "pptx", "xlsx", "epub")
FACT = "Sexton beetle number {} was catalogued by Wilhelmina Starck in the east wing."


@dataclass(frozen=True, slots=True)
class Hostile:
    """One path. `good`: its text must be found; `bad`: it must be listed with a reason; neither: one of the two."""

    path: bytes
    kind: str
    good: str = ""
    bad: bool = False


def write_hostile(folder: Path) -> list[Hostile]:
    """Creates 200 files below `folder`; returns the expectation for each."""
    made: list[Hostile] = []
    for make in (_empty, _binary, _truncated, _bombs, _huge, _encodings, _special, _links, _names, _deep, _wide, _json):
        made += make(folder / make.__name__.strip("_"))
    made += _locked(folder / "locked")
    made += _masquerading(folder / "masquerading", 200 - len(made))
    return made


def _file(folder: Path, name: str | bytes, content: bytes) -> bytes:
    folder.mkdir(parents=True, exist_ok=True)
    path = os.path.join(os.fsencode(folder), os.fsencode(name))
    with open(path, "wb") as file:
        file.write(content)
    return path


def _empty(folder: Path) -> Iterator[Hostile]:
    for suffix in SUFFIXES:
        yield Hostile(_file(folder, f"nothing.{suffix}", b""), "empty", bad=True)
    for suffix in ("txt", "md", "csv"):
        yield Hostile(_file(folder, f"blank.{suffix}", b" \n\t\n" * 50), "blank", bad=True)


def _binary(folder: Path) -> Iterator[Hostile]:
    noise = random.Random(5)
    for suffix in (*SUFFIXES, "bin", "so"):
        yield Hostile(_file(folder, f"noise.{suffix}", noise.randbytes(20_000)), "binary", bad=True)
    yield Hostile(_file(folder, "noise", noise.randbytes(20_000)), "binary", bad=True)
    yield Hostile(_file(folder, "zeros.txt", bytes(100_000)), "binary", bad=True)
    yield Hostile(_file(folder, "zeros.pdf", bytes(100_000)), "binary", bad=True)


def _truncated(folder: Path) -> Iterator[Hostile]:
    whole: dict[str, bytes] = {
        "pdf": pdf([flowed([f"{FACT.format(n)} " * 12 for _ in range(4)]) for n in range(6)]),
        "docx": docx([("", FACT.format(n) * 20) for n in range(40)]),
        "epub": epub("Beetles", [f"<p>{FACT.format(n) * 20}</p>" for n in range(9)]),
    }
    for suffix, content in whole.items():
        for share in (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97):
            # The part before the cut may be readable in a PDF; a ZIP's directory is at its end.
            path = _file(folder, f"cut-{share:g}.{suffix}", content[: int(len(content) * share)])
            yield Hostile(path, f"truncated {suffix}", bad=suffix != "pdf" or share < 0.1)
    flipped = bytearray(whole["docx"])
    for at in range(200, len(flipped), 97):
        flipped[at] ^= 0xFF
    yield Hostile(_file(folder, "flipped.docx", bytes(flipped)), "corrupt docx", bad=True)


def _bomb(member: str, size: int, others: dict[str, str | bytes] | None = None) -> bytes:
    out = BytesIO(archive(others or {}))
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as package, package.open(member, "w") as file:
        for _ in range(size // 1_000_000):
            file.write(b" " * 1_000_000)
    return out.getvalue()


def _bombs(folder: Path) -> Iterator[Hostile]:
    members = {"docx": "word/document.xml", "pptx": "ppt/presentation.xml", "xlsx": "xl/workbook.xml"}
    for suffix, member in members.items():
        content = _bomb(member, 300_000_000, {"[Content_Types].xml": "<Types/>"})
        yield Hostile(_file(folder, f"bomb.{suffix}", content), "zip bomb", bad=True)
    yield Hostile(_file(folder, "bomb.epub", _bomb("OEBPS/c0.xhtml", 300_000_000)), "zip bomb", bad=True)
    laughs = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
    )
    entities = f"{laughs}]><w:document xmlns:w='x'><w:body>&j;</w:body></w:document>"
    yield Hostile(_file(folder, "laughs.docx", archive({"word/document.xml": entities})), "entity bomb", bad=True)
    crowd = archive({f"word/part{n}.xml": "<x/>" for n in range(20_000)})
    yield Hostile(_file(folder, "crowd.docx", crowd), "zip of 20,000 parts", bad=True)
    tower = "<div>" * 100_000 + FACT.format(1) + "</div>" * 100_000
    yield Hostile(_file(folder, "tower.html", tower.encode()), "deeply nested HTML")
    quoted = "> " * 20_000 + FACT.format(1)
    yield Hostile(_file(folder, "tower.md", quoted.encode()), "deeply nested Markdown")
    mail = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(2_000))
    yield Hostile(_file(folder, "tower.eml", f"From: a@b.c\nSubject: nested\n{mail}".encode()), "deeply nested mail")


def _huge(folder: Path) -> Iterator[Hostile]:
    line = b"all work and no stop " * 2_500_000
    for suffix in ("txt", "md", "csv"):
        yield Hostile(_file(folder, f"line.{suffix}", line), "50 MB of one line", bad=True)


def _encodings(folder: Path) -> Iterator[Hostile]:
    number = 100
    for suffix in ("txt", "md"):
        for encoding in ("utf-8-sig", "utf-16", "utf-32"):
            number += 1
            text = FACT.format(number)
            yield Hostile(_file(folder, f"{encoding}.{suffix}", text.encode(encoding)), encoding, good=text)
        for encoding in ("utf-16-le", "utf-16-be"):
            text = FACT.format(number) + "\n" + "Über die Käfer. " * 20
            yield Hostile(_file(folder, f"{encoding}.{suffix}", text.encode(encoding)), f"{encoding} without mark")
    for suffix in ("txt", "md", "html", "csv", "eml", "json", "jsonl"):
        broken = b"The beetle \xff\xfe\x80 sat on \xc3\x28 a leaf \xed\xa0\x80 and \xf8\xa1\xa1\xa1\xa1 slept.\n" * 5
        yield Hostile(_file(folder, f"invalid.{suffix}", broken), "invalid UTF-8", bad=suffix in ("json", "jsonl"))
    nul = b"Half a text\x00and the other half \x1b[31m in red.\n" * 3
    yield Hostile(_file(folder, "controls.txt", nul), "control characters")


def _special(folder: Path) -> Iterator[Hostile]:
    folder.mkdir(parents=True)
    for suffix in ("txt", "pdf", "jsonl", "docx"):
        path = folder / f"pipe.{suffix}"
        os.mkfifo(path)
        yield Hostile(os.fsencode(path), "FIFO", bad=True)
    here = Path.cwd()
    os.chdir(folder)  # a Unix socket's name is at most 107 bytes
    try:
        for suffix in ("txt", "md", "csv"):
            with socket.socket(socket.AF_UNIX) as end:
                end.bind(f"socket.{suffix}")
            yield Hostile(os.fsencode(folder / f"socket.{suffix}"), "socket", bad=True)
    finally:
        os.chdir(here)


def _links(folder: Path) -> Iterator[Hostile]:
    folder.mkdir(parents=True)
    links = {"self.txt": "self.txt", "ping.md": "pong.md", "pong.md": "ping.md", "gone.txt": "nowhere.txt", "up": ".."}
    links |= {"me": ".", "root": "/", "null.txt": "/dev/null", "zero.txt": "/dev/zero"}
    for name, target in links.items():
        (folder / name).symlink_to(target)
        yield Hostile(os.fsencode(folder / name), f"link to {target}", bad=True)


def _names(folder: Path) -> Iterator[Hostile]:
    names: list[bytes] = [
        b"two\nlines.txt", b"\n.md", b"tab\there.txt", b"bell\x07.txt", b"\x1b[2J\x1b[31mred.txt", b"caf\xe9.txt",
        b"\xff\xfe\xfd.md", b"\xed\xa0\x80.txt", b"\xc0\xaf.txt", b"#fragment#.txt", b"what?.txt", b"100%25%zz.txt",
        b"'; DROP TABLE passages; --.txt", b"$(reboot).txt", b"`reboot`.md", b"-rf.txt", b"--json.txt", b" .txt",
        b" padded .txt", b"back\\slash.txt", b'"quoted".md', b"<script>.txt", b"a" * 251 + b".txt",
        "e\u0301 and \u00e9.txt".encode(), "\u202egnp.txt".encode(), "\U0001f41e.md".encode(), b"file:.txt",
        b"{braces}.txt", b"x;y&z.txt", b"con.txt", b"UPPER.TXT", b"dots...txt",
    ]  # fmt: skip
    for number, name in enumerate(names, 200):
        text = FACT.format(number)
        yield Hostile(_file(folder, name, text.encode()), "name", good=text)


def _deep(folder: Path) -> Iterator[Hostile]:
    text = FACT.format(300)
    deep = folder
    for level in range(120):
        deep = deep / f"level-{level:03}"
    yield Hostile(_file(deep, "bottom.txt", text.encode()), "deep", good=text)
    text = FACT.format(301)
    long = folder
    while len(os.fsencode(long)) < 3_700:
        long = long / ("l" * 200)
    yield Hostile(_file(long, "bottom.txt", text.encode()), "long path", good=text)


def _wide(folder: Path) -> Iterator[Hostile]:
    yield Hostile(
        _file(folder, "wide.csv", b",".join(b"%d" % n for n in range(1_000_000))), "million columns", bad=True
    )
    yield Hostile(_file(folder, "commas.csv", b"," * 1_000_000), "million empty columns", bad=True)
    rows = b"\n".join(b",".join(b"%d" % n for n in range(100_000)) for _ in range(10))
    yield Hostile(_file(folder, "rows.csv", rows), "many columns, ten rows", bad=True)
    yield Hostile(_file(folder, "quote.csv", b'a,b\n1,"open ' + b"x,y\n" * 20_000), "open quote")
    yield Hostile(_file(folder, "ragged.csv", b"\n".join(b"x," * n for n in range(300))), "ragged")


def _json(folder: Path) -> Iterator[Hostile]:
    values: dict[str, bytes] = {
        "deep": b"[" * 100_000 + b"]" * 100_000,
        "deep-object": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        "open": b'{"text": "never closed',
        "number": b"1" * 5_000,
        "null": b"null",
        "string": b'"only a string"',
        "no-text": b'{"id": "1", "title": "a title alone"}',
        "wrong-text": b'{"id": "1", "text": {"of": "another type"}}',
        "array": b"[1, 2, 3]",
        "trailing": b'{"id": "1", "text": "One."} {"id": "2"}',
        "infinity": b'{"id": "1", "text": Infinity}',
    }
    for name, content in values.items():
        yield Hostile(_file(folder, f"{name}.json", content), f"JSON {name}", bad=True)
    for name in ("deep", "open", "null", "no-text", "wrong-text"):
        yield Hostile(_file(folder, f"{name}.jsonl", values[name]), f"JSON line {name}", bad=True)
    text = FACT.format(400)
    lone = b'{"id": "lone", "text": "' + text.encode() + b' \\ud800 half"}'
    yield Hostile(_file(folder, "surrogate.json", lone), "lone surrogate", good=text)
    triples = (
        b'{"id": "t", "text": "' + FACT.format(401).encode() + b'", "triples": [[1, 2], "x", ["a", "b", "c", "d"]]}'
    )
    yield Hostile(_file(folder, "triples.json", triples), "malformed triples")
    odd = b'{"id": {"a": 1}, "text": "' + FACT.format(403).encode() + b'"}'
    yield Hostile(_file(folder, "odd-id.json", odd), "an id that is an object")
    long = b'{"id": "' + b"i" * 100_000 + b'", "text": "' + FACT.format(402).encode() + b'"}'
    yield Hostile(_file(folder, "long-id.json", long), "an id of 100 kB")


def _locked(folder: Path) -> Iterator[Hostile]:
    for suffix in ("txt", "pdf", "jsonl"):
        path = _file(folder, f"locked.{suffix}", b"For nobody's eyes.")
        os.chmod(path, 0)
        yield Hostile(path, "no permission", bad=True)
    inner = _file(folder / "room", "inside.txt", b"Behind a locked door.")
    os.chmod(os.path.dirname(inner), 0)
    yield Hostile(os.path.dirname(inner), "directory without permission", bad=True)


def _masquerading(folder: Path, count: int) -> Iterator[Hostile]:
    """Yields `count` files of one kind under the name of another."""
    png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + random.Random(6).randbytes(4_000)
    elf = b"\x7fELF\x02\x01\x01" + random.Random(7).randbytes(4_000)
    gzip = b"\x1f\x8b\x08\x00" + random.Random(8).randbytes(4_000)
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4_000)
    fake: list[Callable[[int], bytes]] = [
        lambda n: png + b"%d" % n,
        lambda n: elf + b"%d" % n,
        lambda n: gzip + b"%d" % n,
        lambda n: ole + b"%d" % n,
    ]
    for number in range(count):
        suffix = SUFFIXES[number % len(SUFFIXES)]
        content = fake[number // len(SUFFIXES) % len(fake)](number)
        yield Hostile(_file(folder, f"other-{number}.{suffix}", content), "another format's content", bad=True)
