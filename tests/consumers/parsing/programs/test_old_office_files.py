"""Old office files are read by the real LibreOffice, which reaches neither the network nor other files."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from consumers.omissions import Omissions
from consumers.parsing import Limits, parse_data
from consumers.parsing.formats.office import converted
from consumers.parsing.formats.pdf.document import parse_pdf
from consumers.parsing.programs.confinement import SOCKET_FOLDERS
from consumers.parsing.programs.installed import CONVERTER, KNOWN_PROGRAMS, Program, find_programs
from consumers.parsing.programs.libreoffice import convert
from consumers.splitting import SplitSettings
from daemon.contract.advice import PROGRAM_OF_REASON
from tests.consumers.folder.support import until
from tests.consumers.parsing.office_samples import outlook
from tests.consumers.parsing.programs.word_97_sample import WORD_97
from tests.consumers.parsing.samples import archive, pdf

REAL = [
    pytest.mark.process,
    pytest.mark.skipif(
        which("soffice") is None, reason="LibreOffice is not installed (Debian: libreoffice-writer-nogui)"
    ),
]


def real(test):
    for mark in REAL:
        test = mark(test)
    return test


@pytest.fixture
def limits() -> Limits:
    return Limits(programs=find_programs("off"), program_seconds=150)


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


def linked_document(port: int, file: Path) -> str:
    """A flat OpenDocument text with a linked picture, a linked section and a linked frame."""
    names = ("office", "text", "draw")
    spaces = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{kind}:1.0"'
        for name, kind in zip(names, ("office", "text", "drawing"), strict=True)
    )
    return f"""<?xml version="1.0"?><office:document{spaces} xmlns:xlink="http://www.w3.org/1999/xlink"
     office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.text"><office:body><office:text>
     <text:p>The lamps of the quay.</text:p>
     <text:p><draw:frame><draw:image xlink:href="http://127.0.0.1:{port}/lamp.png"/></draw:frame></text:p>
     <text:section text:name="a"><text:section-source xlink:href="{file.as_uri()}"/><text:p>old</text:p></text:section>
     <text:section text:name="b"><text:section-source xlink:href="http://127.0.0.1:{port}/b.odt"/><text:p>old</text:p>
     </text:section></office:text></office:body></office:document>"""


@real
def test_conversion_does_not_follow_links_to_files_and_servers(
    limits: Limits, server: socket.socket, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("The password of the lamp house is amber.")
    os.utime(secret, ns=(0, secret.stat().st_mtime_ns))  # a later read would set this time
    # Without its settings and its confinement, LibreOffice requests the picture for this format.
    pdf = convert(linked_document(server.getsockname()[1], secret).encode(), "fodt", "pdf", limits)
    text = str(parse_pdf(pdf, limits, Omissions()).blocks)
    assert "lamps of the quay" in text and "amber" not in text
    assert secret.stat().st_atime_ns == 0
    with pytest.raises(BlockingIOError):
        server.accept()


@real
def test_word_97_file_is_converted_and_names_the_program(limits: Limits) -> None:
    stale = office_sockets()
    [document] = parse_data(WORD_97, b"letter.doc", "file:///letter.doc", SplitSettings(), limits)
    text = "\n".join(f"{passage.title}\n{passage.text}" for passage in document.passages)
    for words in (
        "Delivery of lamps",
        "forty lamps to the southern pier",
        "Lamp: Quay lamp; Price: 41 crowns",
        "Payment",
    ):
        assert words in text
    assert document.title == "Letter of the lamp works"
    assert document.metadata["converted_by"].startswith("LibreOffice ")
    # Another process of the tests may be converting a file: its socket disappears soon.
    left = office_sockets() - stale
    until(lambda: not left & office_sockets(), "no socket of LibreOffice stays")


def office_sockets() -> set[Path]:
    return {path for folder in SOCKET_FOLDERS for path in Path(folder.decode()).glob(f"OSL_PIPE_{os.getuid()}_*")}


def test_ole_file_is_identified_by_its_own_parts_despite_embedded_content() -> None:
    """An embedded picture or document may end an OLE file like a zip archive; the case of names has no meaning."""
    quill = outlook({"Contents": b""}, {"Quill": {"QuillSub": {"CONTENTS": b""}}})
    files = {
        "doc": WORD_97 + archive({"a": "b"}), "ppt": outlook({"POWERPOINT DOCUMENT": b""}), "pub": quill,
        "pages": archive({"index.xml": "<a/>", "buildVersionHistory.plist": ""}),
    }  # fmt: skip
    for ending, data in files.items():
        [document] = parse_data(data, f"a.{ending}".encode(), f"file:///a.{ending}", SplitSettings())
        assert (document.error or "").startswith(f"a .{ending} file, which hippod reads with LibreOffice")


def test_a_converted_file_keeps_its_own_properties(monkeypatch: pytest.MonkeyPatch) -> None:
    """LibreOffice states the time of the conversion as a PDF's date, which would differ each time."""
    drawing = pdf([[(60, 700, 11, "The lamps of the quay.")]]).replace(
        b"/Title (", b"/CreationDate (D:20261127) /Title ("
    )
    monkeypatch.setattr(converted, "convert", lambda *_: drawing)
    monkeypatch.setattr(converted, "ole_properties", lambda _: ({"created": "2003-04-05T06:07:08Z"}, "Lamp plan"))
    known = Limits(programs={CONVERTER: Program("/nowhere", "LibreOffice 7.4", ())})
    [document] = parse_data(outlook({"VisioDocument": b""}), b"a.vsd", "file:///a.vsd", SplitSettings(), known)
    assert document.title == "Lamp plan" and document.metadata["published_at"].startswith("2003-04-05")
    monkeypatch.setattr(converted, "ole_properties", lambda _: ({}, ""))
    [document] = parse_data(outlook({"VisioDocument": b""}), b"a.vsd", "file:///a.vsd", SplitSettings(), known)
    assert "published_at" not in document.metadata and document.passages[0].text == "The lamps of the quay."


@pytest.mark.parametrize(
    "streams",
    [
        {"WordDocument": b"\xec\xa5\xc1\0" + bytes(6) + b"\0\x01"},
        {"PowerPoint Document": b"", "Current User": bytes(12) + b"\xdf\xc4\xd1\xf3"},
    ],
)
def test_office_file_with_a_password_is_skipped_with_that_reason(streams: dict[str, bytes]) -> None:
    [document] = parse_data(outlook(streams), b"a.doc", "file:///a.doc", SplitSettings())
    assert document.skipped and "protected by a password" in (document.error or "")


def test_placeholder_text_of_libreoffice_notes_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    slides = pdf([[(60, 700, 11, "The lamps of the quay.")], [(60, 700, 11, "Click to edit the notes format")]])
    monkeypatch.setattr(converted, "convert", lambda *_: slides)
    known = Limits(programs={CONVERTER: Program("/nowhere", "LibreOffice 7.4", ())})
    [document] = parse_data(outlook({"VisioDocument": b""}), b"a.vsd", "file:///a.vsd", SplitSettings(), known)
    assert [passage.text for passage in document.passages] == ["The lamps of the quay."]
    assert [each.text for each in document.left_out] == ["1 hidden part: Click to edit the notes format"]


def test_without_the_program_the_error_names_its_packages() -> None:
    [document] = parse_data(WORD_97, b"letter.doc", "file:///letter.doc", SplitSettings())
    assert document.skipped and document.code == "needs LibreOffice"
    assert "libreoffice-writer-nogui" in (document.error or "")


def test_the_status_names_the_packages_of_the_programs() -> None:
    assert set(PROGRAM_OF_REASON.values()) == {(known.title, known.package) for known in KNOWN_PROGRAMS.values()}
