"""Files packed by gzip are read as what is in them, within limits."""

import gzip
import io
import os
import tarfile
import zlib
from pathlib import Path
from typing import Unpack

import pytest

from consumers.failure_codes import FailureCode
from consumers.parsing import Limits, parse_data, parse_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from tests.consumers.parsing.samples import SizeLimits

S = SplitSettings(max_tokens=400, min_tokens=0)


def read(name: str, data: bytes, **limits: Unpack[SizeLimits]) -> list[ParsedDocument]:
    return list(parse_data(data, name.encode(), f"file:///{name}", S, Limits(**limits)))


def test_inner_name_of_a_gzip_file_decides_the_format() -> None:
    (page,) = read("a.html.gz", gzip.compress(b"<nav>Menu</nav><p>Words here.</p>"))
    assert (page.metadata["format"], page.passages[0].text) == ("html", "Words here.")
    (text,) = read("notes", gzip.compress(b"Some words here."))
    assert (text.metadata["format"], text.passages[0].text, text.title) == ("text", "Some words here.", "notes")


def test_packed_json_lines_are_documents_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "one", "text": "One."}\n{"id": "two", "text": "Two."}\n'))
    os.utime(path, (4.0, 4.0))
    *found, _ = parse_file(bytes(path), "file:///a.jsonl.gz", S)
    assert [
        (each.uri, each.passages[0].text, each.modified_at) for each in found if isinstance(each, ParsedDocument)
    ] == [
        ("file:///a.jsonl.gz#one", "One.", 4.0),
        ("file:///a.jsonl.gz#two", "Two.", 4.0),
    ]


def test_packed_json_lines_in_utf_16_are_one_failed_document() -> None:
    (document,) = read("a.jsonl.gz", gzip.compress('{"text": "One."}\n{"text": "Two."}\n'.encode("utf-16")))
    assert (document.uri, document.code) == ("file:///a.jsonl.gz", FailureCode.ENCODING)


def test_members_after_each_other_are_one_file() -> None:
    (document,) = read("a.txt.gz", gzip.compress(b"One text ") + gzip.compress(b"in two members."))
    assert document.passages[0].text == "One text in two members."


def tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as package:
        package.addfile(tarfile.TarInfo("x"), io.BytesIO())
    return out.getvalue()


PUT_ASIDE = {
    "tar": ("a.tar.gz", gzip.compress(tar()), "a gzip archive; unpack it", True),
    "tar by content": ("a.gz", gzip.compress(tar()), "a gzip archive; unpack it", True),
    "twice": ("a.txt.gz.gz", gzip.compress(gzip.compress(b"Words.")), "packed by gzip twice", True),
    "empty": ("a.gz", gzip.compress(b""), "empty", True),
    "binary": ("a.gz", gzip.compress(b"\x7fELF" + bytes(range(256)) * 4), "a program", True),
    "cut": ("a.txt.gz", gzip.compress(b"Some words here. " * 90)[:-12], "cut short", False),
    "damaged": ("a.txt.gz", gzip.compress(b"Some words")[:10] + b"\x07" * 20, "damaged", False),
    "not gzip": ("a.gz", b"Some words.", "its name says .gz", False),
}


@pytest.mark.parametrize(("name", "data", "reason", "skipped"), PUT_ASIDE.values(), ids=PUT_ASIDE)
def test_skipped_or_failed_gzip_file_has_a_reason(name: str, data: bytes, reason: str, skipped: bool) -> None:
    (document,) = read(name, data)
    assert reason in (document.error or "") and document.skipped is skipped


def test_a_bomb_is_not_unpacked() -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(40)) + packer.flush()
    (document,) = read("a.txt.gz", bomb)
    assert document.skipped and "exclude it if it is a bomb" in (document.error or "")
    (document,) = read("a.txt.gz", gzip.compress(b"words " * 1000), unpacked_bytes=1000)
    assert document.skipped and "more than 1,000 bytes" in (document.error or "")
