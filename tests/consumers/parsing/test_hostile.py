"""What parsing promises of hostile files: one document each, with a reason a person can act on, and no exception."""

import gzip
import io
import os
import random
import socket
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Unpack

import pytest

from consumers.openat import FileAccess
from consumers.parsing import Limits, ParseSummary, parse_data, parse_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from tests.consumers.parsing.office_samples import opendocument, outlook
from tests.consumers.parsing.samples import SizeLimits, archive, docx, epub, flowed, pdf

S = SplitSettings()
GOOD_PDF = pdf([flowed(["Words of a report. " * 30], "Report")])
GOOD_DOCX = docx([("", "Words of a letter. " * 50)])
Refused = Callable[..., ParsedDocument]


@pytest.fixture
def refused(tmp_path: Path) -> Refused:
    """Writes a file, parses it, and gives the one document that says why it is not indexed."""

    def parse(name: str, data: bytes, **limits: Unpack[SizeLimits]) -> ParsedDocument:
        path = tmp_path / name
        path.write_bytes(data)
        *documents, summary = parse_file(bytes(path), path.as_uri(), S, Limits(**limits))
        assert isinstance(summary, ParseSummary)
        (document,) = documents
        assert isinstance(document, ParsedDocument)
        assert document.uri == path.as_uri() and document.passages == () and document.error
        return document

    return parse


def bomb(megabytes: int) -> bytes:
    body = b"<w:document>" + b"<w:p/>" * (megabytes * 174_763) + b"</w:document>"
    return archive({"[Content_Types].xml": "<Types/>", "word/document.xml": body})


def noise(size: int) -> bytes:
    return random.Random(4).randbytes(size)


def tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as package:
        package.addfile(tarfile.TarInfo("x"), io.BytesIO())
    return out.getvalue()


SKIPPED = [
    ("empty.txt", b"", "empty"),
    ("blank.md", b" \n\t\r\n", "blank"),
    ("zeros.txt", bytes(4096), "blank"),
    ("only-markup.html", b"<html><body><script>x</script></body></html>", "no text"),
    ("no-rows.csv", b",,,\n,,\n", "no text"),
    ("noise", noise(20_000), "binary"),
    ("noise.txt", noise(20_000), "binary"),
    ("noise.md", noise(20_000), "binary"),
    ("noise.csv", noise(20_000), "binary"),
    ("picture.png", b"\x89PNG\r\n\x1a\n" + noise(100), "a picture that cannot be opened"),
    ("photo", b"\xff\xd8\xff\xe0" + noise(100), "a picture that cannot be opened"),
    ("program", b"\x7fELF" + noise(1000), "a program"),
    ("pack.zip", archive({"a.txt": "x"}), "a zip archive; unpack it"),
    ("letters.zip", archive({"word/notes.txt": "x"}), "a zip archive; unpack it"),
    ("site.zip", archive({"content.xml": "<a/>", "content.xml.bak": "<a/>"}), "a zip archive; unpack it"),
    ("nested.zip", archive({"a.zip": archive({"b.zip": archive({"c.txt": "x"})})}), "a zip archive; unpack it"),
    ("pack.tar", tar(), "a tar archive; unpack it"),
    ("pack.tgz", gzip.compress(b"x" * 1000), "a gzip archive; unpack it"),
    ("old.doc", outlook({"WordDocument": noise(2000)}), "install the packages libreoffice-writer-nogui"),
    ("locked.docx", outlook({"EncryptedPackage": noise(2000)}), "without a password"),
    ("locked.pdf", pdf([flowed(["x"])], encrypt=True), "protected by a password"),
    ("scan.pdf", pdf([[], []]), "no text layer"),
    ("settings.json", b'{"a": 1}', "neither a document"),
    ("results.json", b'{"docs": []}', "hippoctl import"),
]

FAILED = [
    ("short.pdf", GOOD_PDF[: len(GOOD_PDF) // 2], "cut short"),
    ("not.pdf", b"just words", "its name says .pdf"),
    ("broken.pdf", b"%PDF-1.7\n" + noise(3000) + b"\n%%EOF", "damaged"),
    ("short.docx", GOOD_DOCX[: len(GOOD_DOCX) // 2], "damaged or truncated"),
    ("not.docx", b"just words", "its name says .docx"),
    ("other.docx", archive({"readme.txt": "x"}), "without the parts of a .docx"),
    ("hollow.docx", archive({"word/x.xml": "<a/>"}), "damaged"),
    ("bad.xlsx", archive({"xl/workbook.xml": "<not", "[Content_Types].xml": "<Types/>"}), "damaged"),
    ("bad.pptx", archive({"ppt/presentation.xml": "<a/>"}), "damaged"),
    ("bad.epub", archive({"META-INF/container.xml": "<container/>"}), "names no root file"),
    ("bad.json", b'{"text": "unfinished', "not JSON"),
    ("deep.json", b"[" * 100_000, "nested too deeply"),
    ("latin.json", '{"text": "é"}'.encode("latin-1"), "UTF-8"),
]


@pytest.mark.parametrize(("name", "data", "reason"), SKIPPED, ids=[case[0] for case in SKIPPED])
def test_file_that_is_no_document_is_skipped(refused: Refused, name: str, data: bytes, reason: str) -> None:
    document = refused(name, data)
    assert document.skipped and reason in (document.error or "")


@pytest.mark.parametrize(("name", "data", "reason"), FAILED, ids=[case[0] for case in FAILED])
def test_damaged_file_fails_with_its_reason(refused: Refused, name: str, data: bytes, reason: str) -> None:
    document = refused(name, data)
    assert not document.skipped and reason in (document.error or "")


@pytest.mark.slow
@pytest.mark.parametrize(("megabytes", "reason"), [(40, "as zip bombs do"), (300, "unpacks to")])
def test_a_zip_bomb_is_detected_before_it_is_unpacked(refused: Refused, megabytes: int, reason: str) -> None:
    document = refused("bomb.docx", bomb(megabytes))
    assert document.skipped and reason in (document.error or "")


def test_an_archive_that_lies_about_its_size_fails(refused: Refused) -> None:
    data = bytearray(docx([("", "x" * 100_000)]))
    at = data.rindex(b"PK\x01\x02")
    while data[at + 46 : at + 63] != b"word/document.xml":
        at = data.rindex(b"PK\x01\x02", 0, at)
    struct.pack_into("<I", data, at + 24, 10)
    document = refused("liar.docx", bytes(data))
    assert "cannot be unpacked" in (document.error or "")


def test_xml_entity_expansion_is_refused(refused: Refused) -> None:
    entities = '<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{("&" + chr(97 + n) + ";") * 10}">' for n in range(9)
    )
    body = f"<!DOCTYPE x [{entities}]><w:document xmlns:w='x'><w:body>&j;</w:body></w:document>"
    package = archive({"[Content_Types].xml": "<Types/>", "_rels/.rels": "<Relationships/>", "word/document.xml": body})
    assert refused("laughs.docx", package).error


@pytest.mark.slow
def test_xml_and_latex_read_no_other_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret words")
    entities = f'<!DOCTYPE a [<!ENTITY s SYSTEM "{secret.as_uri()}"><!ENTITY t "ha"><!ENTITY u "&t;&t;">]>'
    files: dict[str, str | bytes] = {
        "a.xml": f"{entities}<a><p>Here is &s; and &u;.</p></a>",
        "a.tex": f"\\documentclass{{article}}\\begin{{document}}Here is \\input{{{secret}}}.\\end{{document}}",
        "a.odt": opendocument("text", "<text:p>Here is a text.</text:p>"),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        document, _ = parse_file(bytes(path), "u", S)
        assert isinstance(document, ParsedDocument)
        assert [passage.text[:7] for passage in document.passages] == ["Here is"]
        assert "secret" not in document.passages[0].text


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.rtf", b"{\\rtf1 " + b"{" * 20_000 + b"deep" + b"}" * 20_000 + b"}"),
        ("a.rst", b"* " * 300 + b"deep"),
        ("a.rst", b"::\n\n" + b" " * 20_000 + b"deep"),
        ("a.tex", b"{" * 3_000 + b"deep" + b"}" * 3_000),
        ("a.tex", b"\\begin{itemize}\\item " * 500 + b"deep"),
        ("a.xml", b"<a>" * 20_000 + b"deep"),
        ("a.1", b".TH A 1\n" + b".if n \\{\n" * 20_000 + b"deep"),
        ("a.1", b".TH A 1\n" + b".RS\n" * 20_000 + b"deep"),
        ("a.org", b"*" * 20_000 + b" deep\n" + b"[[" * 5_000),
        ("a.ipynb", b"[" * 100_000),
        ("a.py", b"(" * 20_000 + b"# words of a comment here\n"),
        ("a.txt", b"exam-\n" * 5_000),
    ],
)
def test_deep_and_strange_markup_gives_one_document(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    document, summary = parse_file(bytes(path), "u", S)
    assert isinstance(document, ParsedDocument) and isinstance(summary, ParseSummary)
    assert document.passages or document.error


def test_one_line_of_50_megabytes_is_skipped(refused: Refused) -> None:
    document = refused("line.txt", b"word " * 10_000_000)
    assert document.skipped and "lines of more than 1,048,576 characters" in (document.error or "")


def test_a_table_with_a_million_columns_is_skipped(refused: Refused) -> None:
    document = refused("wide.csv", b",".join([b"1"] * 1_000_000) + b"\n")
    assert document.skipped and "1,000,000 columns" in (document.error or "")


def test_error_for_too_many_pdf_pages_names_the_limit(refused: Refused) -> None:
    assert "more than the 1 read" in (refused("d.pdf", pdf([flowed(["x"]), flowed(["y"])]), pages=1).error or "")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.html", b"<div>" * 1_000 + b"deep" + b"</div>" * 1_000 + b"<p>after", ["deep", "after"]),
        ("a.html", b"<p>first<img src='data:" + b"a" * 10_100_000 + b"'><p>after", ["first", "after"]),
        ("a.html", b"<p>first" + b"<div>" * 3_000 + b"deep", ["first"]),
        ("a.xml", b"<a>" * 1_000 + b"<t>deep words</t>" + b"</a>" * 1_000, ["deep"]),
        ("a.xml", b"<r><t>first words</t>" + b"<a>" * 3_000 + b"deep</r>", ["first"]),
        ("a.mediawiki", b"== A ==\n" + b"<ref>abc " * 30_000 + b"after", ["abc", "after"]),
        ("a.mediawiki", b"== A ==\n" + b"<pre>abc " * 30_000 + b"after", ["abc", "after"]),
        ("a.html", b"<table>" + b"<tr><td><a href=b>Ann</a><td>x" * 8_000, ["Ann"]),
    ],
    ids=["divs", "picture", "too deep", "elements", "too deep elements", "footnotes", "verbatim", "linked rows"],
)
def test_deep_long_or_unclosed_markup_is_read_or_reported(name: str, data: bytes, words: list[str]) -> None:
    """Each input once made a parser quadratic or lose text."""
    [document] = parse_data(data, name.encode(), "u", S)
    found = " ".join(passage.text for passage in document.passages)
    assert all(word in found for word in words)
    reported = any("the text after" in omission.text for omission in document.left_out)
    assert reported == (words == ["first"])


@pytest.mark.parametrize(
    "page",
    [
        b"<div>" * 100_000 + b"deep",
        b"<table><tr><td>" * 20_000 + b"deep",
        b"<p>" + b"&amp;" * 100_000,
        b"<ul><li>" * 50_000 + b"deep",
        b"<" * 100_000,
        b"<p>\xff\xfe\x80 bad bytes </p>",
    ],
    ids=["divs", "tables", "entities", "lists", "angles", "bytes"],
)
def test_strange_html_gives_one_document(tmp_path: Path, page: bytes) -> None:
    path = tmp_path / "a.html"
    path.write_bytes(page)
    document, summary = parse_file(bytes(path), "u", S)
    assert isinstance(document, ParsedDocument) and isinstance(summary, ParseSummary)


@pytest.mark.parametrize(
    "text",
    [
        "> " * 5000 + "deep",
        "- " * 5000 + "deep",
        "*a " * 5000,
        "[" * 5000,
        "`" * 20_000,
        "---\nkey: value\n",
        "|a" * 5000,
    ],
    ids=["quotes", "items", "stars", "brackets", "ticks", "front matter", "cells"],
)
def test_strange_markdown_gives_one_document(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.md"
    path.write_text(text)
    document, _ = parse_file(bytes(path), "u", S)
    assert isinstance(document, ParsedDocument)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mail",
    [
        b"\xff\xfe\xfd\x00garbage",
        b"Subject: =?utf-8?b?////?=\r\nContent-Type: text/plain; charset=nonsense\r\n\r\nbody words",
        b"--x\r\n".join([b"Content-Type: multipart/mixed; boundary=x\r\n\r\n"] * 3000),
        b"From: " + b"<" * 20_000 + b"\r\n\r\nbody",
        b"Subject: a\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!not base64!!!",
    ],
    ids=["noise", "charset", "nested", "address", "base64"],
)
def test_strange_mail_gives_one_document(tmp_path: Path, mail: bytes) -> None:
    path = tmp_path / "a.eml"
    path.write_bytes(mail)
    document, _ = parse_file(bytes(path), "u", S)
    assert isinstance(document, ParsedDocument)


GOOD = {
    "pdf": GOOD_PDF,
    "docx": GOOD_DOCX,
    "epub": epub("B", ["<p>words</p>"]),
    "odt": opendocument("text", "<text:p>words</text:p>"),
    "msg": outlook({"__properties_version1.0": bytes(64), "__substg1.0_1000001F": "words".encode("utf-16-le")}),
    "gz": gzip.compress(b"words of a text " * 40, mtime=0),
}


@pytest.mark.parametrize("make", GOOD.values(), ids=GOOD)
def test_damage_anywhere_in_a_file_gives_one_document(tmp_path: Path, make: bytes) -> None:
    chance = random.Random(8)
    path = tmp_path / "damaged"
    for _ in range(60):
        data = bytearray(make)
        for _ in range(chance.randint(1, 12)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        document, summary = parse_file(bytes(path), "u", S)
        assert isinstance(document, ParsedDocument) and isinstance(summary, ParseSummary)
        assert document.passages or document.error


# What is not a regular file


def only(found: Any) -> ParsedDocument:
    (document,) = found
    assert isinstance(document, ParsedDocument) and document.error
    return document


def test_a_named_pipe_a_socket_a_folder_and_a_device_are_never_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert "a named pipe" in (only(parse_file(bytes(tmp_path / "pipe.txt"), "u", S)).error or "")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "s"))
        assert "a socket" in (only(parse_file(bytes(tmp_path / "s"), "u", S)).error or "")
    assert "a directory" in (only(parse_file(bytes(tmp_path), "u", S)).error or "")
    assert "a device" in (only(parse_file(b"/dev/zero", "u", S)).error or "")


def test_symbolic_links_are_followed_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("real words.")
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "real.txt")
    assert "symbolic link" in (only(parse_file(bytes(link), "u", S)).error or "")
    document, _ = parse_file(bytes(link), "u", S, access=FileAccess(follow_symlinks=True))
    assert isinstance(document, ParsedDocument) and document.passages
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert only(parse_file(bytes(loop), "u", S, access=FileAccess(follow_symlinks=True))).skipped


def test_missing_file_fails_without_being_skipped(tmp_path: Path) -> None:
    document = only(parse_file(bytes(tmp_path / "gone.txt"), "u", S))
    assert not document.skipped and "not there any more" in (document.error or "")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_file_without_read_permission_fails_with_that_reason(tmp_path: Path) -> None:
    path = tmp_path / "secret.txt"
    path.write_text("x")
    path.chmod(0)
    assert "no permission" in (only(parse_file(bytes(path), "u", S)).error or "")


def test_file_with_a_name_that_is_not_utf_8_is_parsed(tmp_path: Path) -> None:
    path = bytes(tmp_path) + b"/bad\xff\nname.txt"
    with open(path, "wb") as file:
        file.write(b"some words.")
    document, _ = parse_file(path, "u", S)
    assert isinstance(document, ParsedDocument) and document.passages
    assert document.title == "bad\ufffd\nname"


def test_parse_summary_has_the_digest_and_reports_a_concurrent_change(tmp_path: Path) -> None:
    from hashlib import blake2b

    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "a", "text": "one"}\n{"id": "b", "text": "two"}\n')
    found = parse_file(bytes(path), "u", S)
    next(found)
    with path.open("a") as file:
        file.write('{"id": "c", "text": "three"}\n')
    *_, summary = found
    assert isinstance(summary, ParseSummary) and summary.changed
    *_, summary = parse_file(bytes(path), "u", S)
    assert isinstance(summary, ParseSummary) and not summary.changed
    assert summary.digest == blake2b(path.read_bytes(), digest_size=16).hexdigest()
    assert (summary.size, summary.inode) == (path.stat().st_size, path.stat().st_ino)
