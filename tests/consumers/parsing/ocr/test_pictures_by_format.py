"""Pictures in the files of every format that may contain some: OCR reads them, or the account counts them."""

import base64
import io
import zipfile
from collections.abc import Callable

import openpyxl
import pytest
from openpyxl.drawing.image import Image as SheetImage

from consumers.parsing import Limits, parse_data
from consumers.parsing.ocr import recognition
from consumers.parsing.ocr.tesseract import Paragraph
from consumers.parsing.programs.installed import OCR, Program
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from tests.consumers.parsing.conservation.opendocument_markup import frame, opendocument, row
from tests.consumers.parsing.ocr.test_pictures_in_documents import png
from tests.consumers.parsing.samples import archive, epub

PICTURE = png()
BASE64 = base64.b64encode(PICTURE).decode()
IMG = f"<img src='data:image/png;base64,{BASE64}'>"
NOW = Limits(ocr="now", programs={OCR: Program("/nowhere", "Tesseract 5.9 (eng)", ("eng",))})


def workbook() -> bytes:
    book, out = openpyxl.Workbook(), io.BytesIO()
    book.create_sheet("Quay").append(["The lamp of the quay"])
    book["Quay"].add_image(SheetImage(io.BytesIO(PICTURE)))
    book.save(out)
    with zipfile.ZipFile(out) as package:
        parts = {name: package.read(name) for name in package.namelist()}
    drawing = "xl/drawings/drawing1.xml"
    parts[drawing] = parts[drawing].replace(b' descr="Picture"', b"")  # openpyxl describes each picture so
    return archive(parts)


def sheets() -> bytes:
    picture = frame("<draw:image xlink:href='Pictures/a.png'/>")
    shown = f"<table:shapes>{picture}</table:shapes>"
    table = f"<table:table table:name='Quay'>{shown}{row('The lamp', 'of the quay')}</table:table>"
    return opendocument("spreadsheet", table, pictures={"Pictures/a.png": PICTURE})


def flat_text() -> bytes:
    data = f"<office:binary-data>{BASE64}</office:binary-data>"
    names = "office", "text", "draw"
    declared = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{"drawing" if name == "draw" else name}:1.0"'
        for name in names
    )
    body = f"<text:p>The lamp of the quay.</text:p><text:p>{frame(f'<draw:image>{data}</draw:image>')}</text:p>"
    text = f"<office:body><office:text>{body}</office:text></office:body>"
    return f"<office:document {declared}>{text}</office:document>".encode()


def book() -> bytes:
    data = epub("Lamps", ["<p>The lamp of the quay.</p><p><img src='img/a.png'/></p>"])
    with io.BytesIO(data) as file:
        with zipfile.ZipFile(file, "a") as package:
            package.writestr("OEBPS/img/a.png", PICTURE)
        return file.getvalue()


def web_archive() -> bytes:
    lines = (
        'MIME-Version: 1.0', 'Content-Type: multipart/related; type="text/html"; boundary="b"', "",
        "--b", "Content-Type: text/html", "", "<p>The lamp of the quay.</p><p><img src='cid:a@b'></p>",
        "--b", "Content-Type: image/png", "Content-Transfer-Encoding: base64", "Content-ID: <a@b>", "", BASE64, "--b--", "",
    )  # fmt: skip
    return "\r\n".join(lines).encode()


def mail(inner: str) -> bytes:
    return f"From: Ann\r\nSubject: Quay\r\nContent-Type: text/html\r\n\r\n<p>The lamp of the quay.</p>{inner}".encode()


def feed() -> bytes:
    page = f"<![CDATA[<p>The lamp of the quay.</p>{IMG}]]>"
    return f"<rss><item><title>Quay</title><description>{page}</description></item></rss>".encode()


def note() -> bytes:
    page = f"<![CDATA[<en-note>The lamp of the quay.{IMG}</en-note>]]>"
    return f"<en-export><note><title>Quay</title><content>{page}</content></note></en-export>".encode()


FILES: dict[str, Callable[[], bytes]] = {
    "a.html": lambda: f"<h1>Quay</h1><p>The lamp of the quay.</p><p>{IMG}</p>".encode(),
    "cell.html": lambda: f"<p>The lamp of the quay.</p><table><tr><td>{IMG}</td><td>b</td></tr></table>".encode(),
    "frame.html": lambda: f"<p>The lamp of the quay.</p><iframe srcdoc=\"{IMG}\"></iframe>".encode(),
    "drawn.html": lambda: f"<p>The lamp of the quay.</p><svg><image href='data:image/png;base64,{BASE64}'/></svg>".encode(),
    "a.mhtml": web_archive,
    "a.eml": lambda: mail(IMG),
    "a.xml": feed,
    "a.enex": note,
    "a.epub": book,
    "a.xlsx": workbook,
    "a.ods": sheets,
    "a.fodt": flat_text,
}  # fmt: skip
EACH = pytest.mark.parametrize("name", FILES)


def read(name: str, data: bytes, limits: Limits) -> ParsedDocument:
    [document] = parse_data(data, name.encode(), f"file:///{name}", SplitSettings(min_tokens=0), limits)
    return document


def pictures(document: ParsedDocument) -> list[int]:
    return [each.count for each in document.left_out if each.kind == "picture"]


@EACH
def test_picture_text_is_added_by_ocr_in_its_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "recognise", lambda *_: [Paragraph("Words in a picture", 91.0)])
    document = read(name, FILES[name](), NOW)
    text = " ".join(passage.text for passage in document.passages)
    assert text.index("of the quay") < text.index("Words in a picture")
    assert pictures(document) == []


@EACH
def test_without_ocr_the_picture_is_counted(name: str) -> None:
    document = read(name, FILES[name](), Limits())
    assert any("of the quay" in passage.text for passage in document.passages)
    assert pictures(document) == [1]


def test_pictures_that_cannot_be_decoded_are_counted_with_ocr() -> None:
    drawing = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'/>").decode()
    page = f"<p>Quay</p><img src='data:image/svg+xml;base64,{drawing}'><img src='data:image/png;base64,!'>"
    assert pictures(read("a.html", page.encode(), NOW)) == [2]


def test_remote_and_hidden_pictures_are_ignored() -> None:
    page = f"<p>Quay</p><img src='http://a.example/a.png'><div hidden>{IMG}</div><table hidden><tr><td>{IMG}</td></tr></table>"
    assert pictures(read("a.html", page.encode(), Limits())) == []


def test_text_of_a_picture_has_the_location_of_its_sheet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "recognise", lambda *_: [Paragraph("Words in a picture", 91.0)])
    for name in ("a.xlsx", "a.ods"):
        found = [each for each in read(name, FILES[name](), NOW).passages if "Words" in each.text]
        assert [each.location["sheet"] for each in found] == ["Quay"]
