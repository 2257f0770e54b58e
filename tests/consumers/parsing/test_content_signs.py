"""A file whose name says nothing, or an office format, is what its content is."""

import pytest

from consumers.parsing.parse_file import parse_data
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

SETTINGS = SplitSettings(max_tokens=400, min_tokens=0)
PAGE = (
    "<!DOCTYPE html>\n<html><head><title>Cooperage</title></head><body><h1>Cooperage</h1><p>Barrels of Moen.</p></body>"
    "</html>"
)
ARCHIVE = (
    "{}MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b\r\n\r\n--b\r\n"
    "Content-Type: text/html; charset=utf-8\r\n"
    "Content-Transfer-Encoding: quoted-printable\r\nContent-Location: file:///a.html\r\n\r\n"
    "<html><head><title>Runbook</title></head><body><p>Yngv=C3=A9 closes the slu=\r\nice.</p></body></html>\r\n"
    "--b\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\nContent-Location: file:///a.png\r\n\r\niVBORw0KGgo=\r\n--b--"
)


def read(name: str, data: bytes | str) -> ParsedDocument:
    [document] = parse_data(data if isinstance(data, bytes) else data.encode(), name.encode(), "file:///f", SETTINGS)
    assert document.error is None
    return document


@pytest.mark.parametrize(
    "name", ["page", "index.php?title=Cooperage", "report.doc", "table.xls", "letter.docx", "saved.txt"]
)
@pytest.mark.parametrize("lead", ["", "\ufeff", "<!-- saved from url -->\n", '<?xml version="1.0"?>\n'])
def test_html_pages_with_other_endings_are_detected(name: str, lead: str) -> None:
    document = read(name, lead + PAGE)
    assert (document.metadata["format"], document.title) == ("html", "Cooperage")
    assert document.passages[0].text == "Barrels of Moen."


def test_html_in_utf_16_with_an_office_ending_is_detected() -> None:
    assert read("report.doc", b"\xff\xfe" + PAGE.encode("utf-16-le")).title == "Cooperage"


def test_html_or_tab_separated_table_with_the_ending_xls_is_detected() -> None:
    rows = "<table><tr><th>Key</th><th>Room</th></tr><tr><td>K9</td><td>Attic</td></tr></table>"
    assert read("keys.xls", rows).passages[0].text == "Key: K9; Room: Attic"
    assert read("keys.xls", "Key\tRoom\nK9\tAttic\n").passages[0].text == "Key: K9; Room: Attic"


@pytest.mark.parametrize(
    ("name", "lead"),
    [
        ("a.mhtml", "From: <Saved by a browser>\r\nSubject: Runbook\r\n"),
        ("a", "From: <Saved by a browser>\r\nSnapshot-Content-Location: https://x.example\r\nSubject: Runbook\r\n"),
        ("a.doc", "Date: Thu, 2 May 2024 10:00:00 +0000\r\nMessage-ID: <1@wiki>\r\nSubject: Exported\r\n"),
    ],
)
def test_web_archive_in_mime_parts_is_detected(name: str, lead: str) -> None:
    document = read(name, ARCHIVE.format(lead))
    assert (document.metadata["format"], document.title) == ("web_archive", "Runbook")
    assert [passage.text for passage in document.passages] == ["Yngvé closes the sluice."]
    assert [each.kind.value for each in document.left_out] == ["picture"]


def test_mail_with_an_html_page_and_pictures_is_not_a_web_archive() -> None:
    document = read("a", ARCHIVE.format("From: a@x.example\r\nTo: b@x.example\r\nSubject: Runbook\r\n"))
    assert document.metadata["format"] == "mail"


@pytest.mark.parametrize("name", ["1382298805.004614:2,S", "Inbox"])
def test_mail_headers_with_unusual_characters_are_detected(name: str) -> None:
    mail = "Received: from a\nX-Spam_bar: +\nX.Y: b\nFrom: a@x.example\nSubject: Runbook\n\nClose the sluice.\n"
    start = "From a@x.example Thu May  2 10:00:00 2024\nX-Spam_bar: +\n" if name == "Inbox" else ""
    document = read(name, start + mail)
    assert (document.metadata["format"], document.title) == ("mail", "Runbook")


def test_flat_opendocument_is_detected_under_any_name() -> None:
    flat = (
        '<?xml version="1.0"?><office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text><text:p>The organ.</text:p>'
        "</office:text></office:body></office:document>"
    )
    for name in ("organ.fodt", "organ", "organ.odt"):
        assert read(name, flat).passages[0].text == "The organ."


@pytest.mark.parametrize("name", ["a.md", "a.py", "a.json5", "notes"])
def test_other_texts_keep_their_format(name: str) -> None:
    assert read(name, "# Words about <html> pages, and some more of them here.\n").metadata["format"] != "html"
