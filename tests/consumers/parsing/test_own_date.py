"""A document's own date is read where its format has one; one that cannot be read is no date, and costs nothing."""

import zipfile
from datetime import datetime
from io import BytesIO
from typing import Any

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.parsing.own_date import published_at, read_date
from consumers.parsing.parse_file import parse_data
from consumers.splitting import SplitSettings


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2019", "2019-01-01T00:00:00+00:00"),
        ("2019-05", "2019-05-01T00:00:00+00:00"),
        ("2019-05-12", "2019-05-12T00:00:00+00:00"),
        (" 2019-05-12T10:30:00Z ", "2019-05-12T10:30:00+00:00"),
        ("2019-05-12 10:30:00 +0200", "2019-05-12T10:30:00+02:00"),
        ("D:20190512103000+02'00'", "2019-05-12T10:30:00+02:00"),
        ("D:20190512103000Z", "2019-05-12T10:30:00+00:00"),
        ("D:2019", "2019-01-01T00:00:00+00:00"),
        ("Sun, 12 May 2019 10:30:00 +0200", "2019-05-12T10:30:00+02:00"),
        ("12 May 2019 10:30:00 -0000", "2019-05-12T10:30:00+00:00"),
    ],
)
def test_dates_in_the_styles_of_each_format_are_parsed(text: str, date: str) -> None:
    found = read_date(text)
    assert found is not None
    assert found.isoformat() == date


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2019-13-45", "D:2019133", "0101-01-01T00:00:00", "99999-01-01", "D:", "May", "12:30", "9" * 50],
)
def test_text_that_is_no_date_gives_none(text: str) -> None:
    assert read_date(text) is None


@given(st.text(max_size=60) | st.from_regex(r"D:[0-9]{0,16}[+\-Z]?[0-9']{0,6}", fullmatch=True))
def test_read_date_accepts_any_text_without_an_error(text: str) -> None:
    found = read_date(text)
    assert found is None or found.tzinfo is not None


def test_publication_date_takes_precedence_over_creation_and_change() -> None:
    assert published_at({"created": "2001", "Date": "2002", "modified": "2003"}) == "2002-01-01T00:00:00+00:00"
    assert published_at({"created": "never", "modified": "2003"}) == "2003-01-01T00:00:00+00:00"
    assert published_at({"date": ["2002"], "author": "2001"}) is None


def word() -> bytes:
    made = docx.Document()
    made.add_paragraph("The board met in Ternby.")
    made.core_properties.created = datetime(2019, 5, 12, 10, 30)
    made.core_properties.modified = datetime(2020, 1, 1)
    out = BytesIO()
    made.save(out)
    return out.getvalue()


def book() -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as package:
        package.writestr("mimetype", "application/epub+zip")
        package.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="b.opf"/></rootfiles></container>',
        )
        package.writestr(
            "b.opf",
            '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
            "<dc:title>Ternby</dc:title><dc:date>2019-05-12</dc:date></metadata><manifest>"
            '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="a"/></spine></package>',
        )
        package.writestr("a.xhtml", "<html><body><p>The mill of Ternby.</p></body></html>")
    return out.getvalue()


def pdf(date: str = "D:20190512103000Z") -> bytes:
    """One page, one line, and an information dictionary, with the places of its objects."""
    stream = b"BT /F1 12 Tf 72 700 Td (The mill of Ternby was built in 1790.) Tj ET"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</CreationDate(%s)>>" % date.encode(),
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj" % number + body + b"endobj\n"
    start = len(out)
    out += b"xref\n0 7\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer<</Size 7/Root 1 0 R/Info 6 0 R>>\nstartxref\n%d\n%%%%EOF" % start


FILES: list[tuple[bytes, Any, str]] = [
    (b"a.md", b"---\ntitle: Ternby\ndate: 2019-05-12\n---\nThe mill of Ternby.\n", "2019-05-12T00:00:00+00:00"),
    (
        b"a.html",
        b'<html><head><meta property="article:published_time" content="2019-05-12T10:30:00+02:00"></head>'
        b"<body><p>The mill of Ternby.</p></body></html>",
        "2019-05-12T10:30:00+02:00",
    ),
    (
        b"a.eml",
        b"From: a@b.c\nDate: Sun, 12 May 2019 10:30:00 +0200\nSubject: Mill\n\nThe mill.\n",
        "2019-05-12T10:30:00+02:00",
    ),
    (b"a.docx", word, "2019-05-12T10:30:00+00:00"),
    (b"a.epub", book, "2019-05-12T00:00:00+00:00"),
    (b"a.pdf", pdf, "2019-05-12T10:30:00+00:00"),
]


@pytest.mark.parametrize(("name", "content", "date"), FILES, ids=[name.decode() for name, _, _ in FILES])
def test_published_at_is_set_from_the_date_of_each_format(name: bytes, content: Any, date: str) -> None:
    data = content if isinstance(content, bytes) else content()
    [document] = parse_data(data, name, "file:///x", SplitSettings(400, 40))
    assert document.error is None
    assert document.metadata["published_at"] == date


def test_a_malformed_date_is_left_as_it_is_and_fails_nothing() -> None:
    data = b"---\ndate: the day before yesterday\n---\nThe mill of Ternby.\n"
    [document] = parse_data(data, b"a.md", "file:///x", SplitSettings(400, 40))
    assert document.error is None
    assert document.metadata["date"] == "the day before yesterday"
    assert "published_at" not in document.metadata
