"""Files in the shape of those from which public bug reports say text was lost, and all that they must give."""

import base64
import ctypes
import io
import os
from collections.abc import Sequence
from itertools import zip_longest

import pypdfium2
import pypdfium2.raw as pdfium
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from consumers.omissions import Omissions
from consumers.parsing import Limits
from consumers.parsing.decoding import clean_text, decode
from consumers.parsing.formats.office.tables import is_generated_name
from consumers.parsing.formats.pdf.document import parse_pdf
from consumers.parsing.parse_file import parse_data
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from tests.consumers.parsing.samples import pdf

SETTINGS = SplitSettings(max_tokens=400, min_tokens=40)


def read(name: str, data: bytes | str) -> ParsedDocument:
    content = data.encode() if isinstance(data, str) else data
    [document] = parse_data(content, name.encode(), f"file:///{name}", SETTINGS)
    return document


def text(document: ParsedDocument) -> str:
    assert document.error is None
    return "\n".join(f"{passage.title}\n{passage.text}" for passage in document.passages)


def account(document: ParsedDocument) -> list[str]:
    return [omission.text for omission in document.left_out]


# PDF


def test_lines_of_merged_invoices_are_no_running_headers() -> None:
    pages = [
        [
            (60, 780, 11, f"Invoice A-{number}"),
            (60, 760, 11, f"Lamp oil for the house of {name}."),
            (60, 740, 11, f"To pay: {amount} crowns"),
        ]
        for number, name, amount in ((311, "Rell", 40), (327, "Voss", 55), (341, "Teal", 61), (342, "Amber", 18))
    ]
    document = read("invoices.pdf", pdf(pages))
    for line in ("Invoice A-311", "Invoice A-342", "To pay: 40 crowns", "To pay: 61 crowns"):
        assert line in text(document)
    assert account(document) == []


@pytest.mark.parametrize("first", [1, 1001])
def test_invoices_numbered_like_pages_stay(first: int) -> None:
    pages = [[(60, 780, 11, f"Invoice {first + k}"), (60, 760, 11, f"Oil for lamp {'abcd'[k]}.")] for k in range(4)]
    assert all(f"Invoice {first + k}" in text(read("invoices.pdf", pdf(pages))) for k in range(4))


def test_headers_that_only_number_pages_stand_once() -> None:
    pages = [
        [
            (60, 810, 9, "Report of the Quill lamp works"),
            (500, 810, 9, f"{number + 340}"),
            (60, 700, 11, f"The works made lamps of type {'abcdef'[number]}."),
            (60, 30, 9, f"Page {number + 1} of 6"),
        ]
        for number in range(6)
    ]
    document = read("report.pdf", pdf(pages))
    assert text(document).count("Quill lamp works") == 1
    assert "Page 1 of 6" not in text(document)
    assert [(each.kind, each.count) for each in document.left_out] == [("running_header", 11)]
    assert account(document) == ["11 running headers: Page # of 6; Report of the Quill lamp works #"]


def test_blank_properties_and_scan_file_names_are_ignored() -> None:
    scan = pdf([[(60, 700, 11, "Lamp oil for the house of Rell.")]], title="00463065.tif")
    document = read("bill.pdf", scan.replace(b"/Title", b"/Author ( ) /Title"))
    assert document.title == "bill" and "author" not in document.metadata


def test_a_contents_table_gives_a_pdf_no_title() -> None:
    texts = ("Contents", "Lamps 1. Oil 1.", "Lamps", "The works made lamps of brass.", "Oil", "The oil came by sea.")
    lines = [(60, 700 - 30 * n, 18 - 8 * (n % 2), words) for n, words in enumerate(texts)]
    document = read("works.pdf", pdf([lines]))
    assert document.title == "works" and "Oil\nThe oil came by sea." in text(document)


def test_one_line_pdf_pages_are_no_running_headers() -> None:
    assert text(read("signs.pdf", pdf([[(60, 700, 40, f"Berth {n}")] for n in range(1, 13)]))).count("Berth ") == 12
    same = read("copies.pdf", pdf([[(60, 700, 40, "No entry")] for _ in range(5)]))
    assert text(same).count("No entry") == 5 and account(same) == []


def with_picture(data: bytes, page: int) -> bytes:
    """The PDF with an image on a page, counted from 0: its content stream draws one inline."""
    parts = data.split(b"\nendstream")
    head, _, stream = parts[page].rpartition(b"stream\n")
    image = stream + b"q 9 0 0 9 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID x EI Q "
    length = head.rpartition(b"/Length ")
    parts[page] = length[0] + b"/Length %d >>\nstream\n" % len(image) + image
    return b"\nendstream".join(parts)


def scanned(pages: list[str], scans: range) -> bytes:
    data = pdf([[(60, 700, 11, line)] if line else [] for line in pages])
    for page in scans:
        data = with_picture(data, page)
    return data


def test_omissions_count_the_pages_of_a_scan_without_text() -> None:
    document = read("lease.pdf", scanned(["Lease of the lamp house, scanned", *[""] * 8], range(1, 9)))
    assert "Lease of the lamp house" in text(document)
    assert account(document) == ["8 of 9 pages have no text layer"]


def test_a_stamp_on_each_scanned_page_is_no_text_of_the_page() -> None:
    document = read("contract.pdf", scanned(["Made by the scanner"] * 8, range(8)))
    assert text(document).count("Made by the scanner") == 1
    assert account(document) == ["7 running headers: Made by the scanner", "7 of 8 pages have no text layer"]


def test_blank_pages_are_not_reported() -> None:
    assert account(read("a.pdf", scanned(["A text of one page.", "", ""], range(0)))) == []


def no_to_unicode(data: bytes) -> bytes:
    """The PDF with a font whose codes have no meaning: a composite one without ToUnicode (ISO 32000-1, 9.10.2)."""
    font = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Own /Encoding /Identity-H /DescendantFonts [<< /Type /Font "
        b"/Subtype /CIDFontType2 /BaseFont /Own /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) "
        b"/Supplement 0 >> >>] >>"
    )
    return data.replace(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>", font)


def test_pdf_font_without_unicode_mapping_is_skipped_with_a_reason() -> None:
    document = read("own.pdf", no_to_unicode(pdf([[(60, 700, 11, "The key hangs behind the lamp, on the left.")]])))
    assert document.skipped and "fonts do not map their shapes to characters" in (document.error or "")


def with_letters(data: bytes, letters: dict[str, str]) -> bytes:
    """The PDF with a font whose codes mean other letters (ISO 32000-1, 9.10.3)."""
    entries = "".join(f"<{ord(code):02X}> <{word.encode('utf-16-be').hex()}> " for code, word in letters.items())
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /A def /CMapType 2 def "
        "1 begincodespacerange <00> <FF> endcodespacerange "
        f"{len(letters)} beginbfchar {entries}endbfchar endcmap end end"
    ).encode()
    font = b"/Encoding /WinAnsiEncoding >>"
    data = data.replace(font, b"/Encoding /WinAnsiEncoding /ToUnicode 99 0 R >>")
    stream = b"\n99 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\nxref" % (len(cmap), cmap)
    return data.replace(b"\nxref", stream, 1)


@pytest.mark.parametrize(("ligature", "letters"), [("لا", "لا"), ("ﻻ", "لا"), ("لله", "لله")])
def test_arabic_ligatures_keep_the_order_of_their_letters(ligature: str, letters: str) -> None:
    data = pdf([[(60, 700, 11, "CAB"), (60, 680, 11, "CDB")]])
    document = read("a.pdf", with_letters(data, {"A": ligature, "B": "ك", "C": "ت", "D": "ب"}))
    assert text(document).split() == [f"ك{letters}ت", "كبت"]


LEFT = ("The smokehouse burns", "alder wood, which Mari", "cuts in the winter.", "Salmon hangs there.")
RIGHT = ("The bakery of Vik burns", "birch wood, which Jon", "buys from the mill.")


def in_rows(left: Sequence[str], right: Sequence[str], x: int = 320) -> bytes:
    """A PDF that draws two columns line by line, below a title."""
    lines = [(60, 780, 11, "The fires of the village, as the parish priest saw them on his walks along the two roads")]
    for at, pair in enumerate(zip_longest(left, right)):
        lines += [(column, 740 - 14 * at, 11, text) for column, text in zip((60, x), pair, strict=True) if text]
    return pdf([[*lines, (60, 500, 11, "The end.")]])


def test_columns_that_are_drawn_line_by_line_are_read_one_after_the_other() -> None:
    shown = text(read("a.pdf", in_rows(LEFT, RIGHT))).split("\n")
    places = [shown.index(line) for line in (*LEFT, *RIGHT, "The end.")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("left", "right", "x"),
    [
        (LEFT[:2], RIGHT[:2], 320),
        (
            ("Keeper of the lamp", "Keeper of the weir", "Keeper of the mill"),
            ("Ann of old Vik", "Bo of old Vik", "Cy of Vik"),
            320,
        ),
        (("Lamp", "weir", "Mill"), ("The first of", "all the lamps", "and mills"), 320),
    ],
)
def test_pdf_table_rows_are_not_split_into_columns(left: Sequence[str], right: Sequence[str], x: int) -> None:
    shown = text(read("a.pdf", in_rows(left, right, x)))
    assert all(f"{a} {b}" in shown for a, b in zip(left, right, strict=True))


def test_vertical_text_that_cannot_be_read_is_reported() -> None:
    vertical = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Ryumin-Light-V /Encoding /V /DescendantFonts [<< /Type /Font "
        b"/Subtype /CIDFontType0 /BaseFont /Ryumin-Light /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) "
        b"/Supplement 1 >> >>] >>"
    )
    font = b"/Font << /F1 1 0 R >>"

    def document_of(*pages: str) -> ParsedDocument:
        data = pdf([[(60, 700, 11, line)] for line in pages]).replace(font, b"/Font << /F1 99 0 R >>", 1)
        return read("a.pdf", data.replace(b"\nxref", b"\n99 0 obj\n%s\nendobj\nxref" % vertical, 1))

    assert "vertical columns" in str(document_of('$"$$$&').error)
    document = document_of('$"$$$&', "A text.")
    assert "A text." in text(document)
    assert "1 other omission: vertical text on page 1, in pieces: 1" in account(document)


# Encodings


SENTENCES = {
    "cp1252": "Frau Jäger überprüfte die Mühle. Das kostet 40 £.",
    "cp1250": "Klucz do młyna ma Łucja, a zapasowy leży w świetlicy.",
    "cp1251": "Ключ от мельницы хранится у сторожа.",
    "cp1253": "Το κλειδί του μύλου το κρατά η Ελένη.",
    "cp1254": "Değirmenin anahtarı Ayşe Güneş hanımda duruyor. Yedek anahtar kışlık bölümde, mavi kutuda.",
    "cp1255": "המפתח של הטחנה נמצא אצל רבקה. המפתח השני מונח בקופסה הכחולה.",
    "cp1256": "مفتاح الطاحونة عند فاطمة.",
    "koi8_r": "Ключ от мельницы хранится у сторожа.",
    "cp437": "Frau Jäger überprüfte die Mühle in der Küche.",
    "mac_roman": "La clé du moulin est chez Éloïse, à côté de l’entrée.",
    "big5": "水車的鑰匙由守門人保管，備用鑰匙在箱子裡。",
    "gb18030": "水车的钥匙由守门人保管，备用钥匙在箱子里。",
    "cp932": "水車の鍵は番人が保管しています。",
    "euc_jp": "水車の鍵は番人が保管しています。",
    "cp949": "물레방아 열쇠는 관리인이 보관합니다.",
    "utf-16": "Frau Jäger überprüfte die Mühle, und nichts geschah.",
}


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("encoding", SENTENCES)
def test_text_in_any_common_encoding_is_decoded(encoding: str, late: bool) -> None:
    before = "The gauge reads nine.\n\n" * 3000 if late else ""
    document = read("a.txt", (before + SENTENCES[encoding] + "\n").encode(encoding))
    assert SENTENCES[encoding] in text(document) and account(document) == []


@pytest.mark.parametrize("encoding", ["big5", "cp1251", "cp932"])
def test_mail_declared_as_ascii_is_decoded_by_its_bytes(encoding: str) -> None:
    head = b"Subject: Key\nContent-Type: text/plain; charset=us-ascii\nContent-Transfer-Encoding: 8bit\n\n"
    assert SENTENCES[encoding] in text(read("a.eml", head + SENTENCES[encoding].encode(encoding)))


def test_encoding_that_puts_symbols_within_words_is_rejected() -> None:
    line = "Weil das wohl auch in der ursprünglichen Mail so war"
    assert line in text(read("a.txt", f"Ein Anhang mit Text.\n{line}\n".encode("cp1252")))


@pytest.mark.parametrize("words", ["£40 a week", "Zoë", "Löffel;3", "20 °C", "“so”", "– no", "naïve", "½ cup", "it’s"])
def test_text_with_one_windows_1252_character_is_decoded(words: str) -> None:
    assert words in text(read("a.txt", f"The fee is {words} at the pier.".encode("cp1252")))


def test_damaged_utf8_stays_utf8_and_is_counted() -> None:
    data = ("Frau Jäger überprüfte die Mühle. " * 9).encode() + b"It is \xff here and \xfe there."
    document = read("a.txt", data)
    assert "überprüfte" in text(document) and "It is \ufffd here" in text(document)
    assert account(document) == ["2 characters of unknown meaning"]


def test_a_table_with_zero_bytes_is_no_utf16() -> None:
    for data in (
        b"name,place\nAnn,\x00weir\nBo,mill\n",
        b"name,place\n\x00,\x00\nBo,mill\n",
        "name,place\nJörg,Mühle\x00\n".encode(),
    ):
        document = read("a.csv", data)
        assert all(words in text(document) for words in ("name", "place")) and account(document) == []
        assert any(words in text(document) for words in ("mill", "Mühle"))


@settings(max_examples=60, deadline=None, database=None)
@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=20),
    st.integers(0, 19),
)
def test_single_zero_byte_does_not_change_the_decoding(words: str, place: int) -> None:
    data = f"The mill stands. {words}".encode()
    assert decode(data[:place] + b"\0" + data[place:]) == clean_text(f"{data[:place].decode()} {data[place:].decode()}")


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("words", list(SENTENCES.values()))
def test_utf16_without_byte_order_mark_is_decoded(words: str, order: str) -> None:
    lines = f"{words}, {words}\n" * 3
    assert decode(lines.encode(f"utf-16-{order}")) == lines


def test_soft_hyphens_do_not_break_words() -> None:
    for name, content in (
        ("a.txt", "The ship\u00adyard and the light\u00ad\nhouse stand at the pier."),
        ("a.html", "<p>The ship&shy;yard and the light&shy;house stand at the pier."),
        ("a.md", "The ship\u00adyard and the light\u00adhouse stand at the pier."),
        ("a.csv", "Place,What\nShip\u00adyard,the shipyard and the lighthouse stand"),
    ):
        assert "shipyard and the lighthouse" in " ".join(text(read(name, content)).split()), name


# Mail


def mail(kind: str, body: str, **headers: str) -> bytes:
    lines = ["From: ann@example.org", "Subject: Oil", *(f"{key}: {value}" for key, value in headers.items())]
    return "\r\n".join([*lines, "MIME-Version: 1.0", f"Content-Type: {kind}", "", body]).encode()


def test_mail_text_after_a_picture_and_list_footer_are_kept() -> None:
    body = "\r\n".join(
        [
            "--b", "Content-Type: text/plain; charset=us-ascii", "", "Here is the lamp:",
            "--b", "Content-Type: image/png; name=lamp.png", "Content-Transfer-Encoding: base64",
            "Content-Disposition: inline", "", "iVBORw0KGgo=",
            "--b", "Content-Type: text/plain; charset=us-ascii", "", "Sabine Rell ground its lens.",
            "--b", "Content-Type: text/plain", "", "The list of the lamp makers", "--b--",
        ]
    )  # fmt: skip
    document = read("a.eml", mail("multipart/mixed; boundary=b", body))
    assert all(part in text(document) for part in ("Here is the lamp", "ground its lens", "list of the lamp makers"))
    assert account(document) == ["1 attachment not read: lamp.png"]


def test_html_alternative_replaces_a_placeholder_text_in_mail() -> None:
    body = "\r\n".join(
        [
            "--b", "Content-Type: text/plain", "", "Use a program that shows pages.",
            "--b", "Content-Type: text/html", "", "<p>Four cans of oil go to the house of Voss on 3 June.</p>", "--b--",
        ]
    )  # fmt: skip
    document = read("a.eml", mail("multipart/alternative; boundary=b", body))
    assert "Four cans of oil go to the house of Voss" in text(document)
    assert "program that shows pages" not in text(document)
    assert account(document) == ["1 alternative version: Use program that shows pages"]


def test_bytes_decide_against_the_declared_charset() -> None:
    words = "Der Schlüssel hängt in der Bäckerei."
    for charset, encoding in (("us-ascii", "utf-8"), ("iso-8859-1", "utf-8"), ("utf-8", "cp1252"), ("gb2312", "utf-8")):
        head, _, _ = mail(f"text/plain; charset={charset}", "").partition(b"\r\n\r\n")
        assert words in text(read("a.eml", head + b"\r\n\r\n" + words.encode(encoding)))
    japanese = "鍵は番人が保管しています。"
    head, _, _ = mail("text/plain; charset=iso-2022-jp", "").partition(b"\r\n\r\n")
    assert japanese in text(read("a.eml", head + b"\r\n\r\n" + japanese.encode("iso-2022-jp")))


def test_mail_headers_with_raw_non_ascii_bytes_are_decoded() -> None:
    for encoding in ("utf-8", "cp1252"):
        data = b"From: ann@example.org\r\nSubject: " + "Schlüssel für Jörg".encode(encoding) + b"\r\n\r\nA text."
        assert read("a.eml", data).title == "Schlüssel für Jörg"


# Pages and Markdown


def test_text_of_buttons_components_and_frames_in_html_is_kept() -> None:
    page = (
        "<main><h1>The ferry</h1><h2><button class=fold>Are dogs allowed on the ferry?</button></h2><div>On a leash.</div>"
        "<pre>sail</pre><button>Copy</button>"
        "<x-hours><template shadowrootmode=open><p>It sails at nine.</p></template></x-hours>"
        "<iframe srcdoc='&lt;p&gt;Pier two is closed.&lt;/p&gt;'></iframe></main>"
    )
    document = read("a.html", page)
    for words in ("Are dogs allowed on the ferry?", "It sails at nine.", "Pier two is closed."):
        assert words in text(document)
    assert account(document) == ["1 button or field: Copy"]


def test_text_after_unclosed_html_elements_is_kept() -> None:
    assert "and the rest" in text(read("a.html", "<p>A long<wbr>word <embed src=a.swf> and the rest.</p><p>More.</p>"))


def test_navigation_and_hidden_parts_of_a_page_are_listed_as_omissions() -> None:
    document = read(
        "a.html", "<nav><a href=/>Home</a> <a href=/b>Boats</a></nav><p>The ferry sails.</p><p hidden>Draft."
    )
    assert account(document) == ["1 part of a site's navigation: Home Boats", "1 hidden part: Draft."]


def test_a_footnote_of_one_word_is_text() -> None:
    assert "oak" in text(read("a.md", "The wheel[^1] turns.\n\n[^1]: oak\n"))


def test_restructured_text_with_a_long_line_is_text() -> None:
    assert "wheel" in text(read("a.rst", f"The mill stands.\n\n{'It turns. ' * 1200}wheel\n"))


def test_omissions_of_source_code_count_its_code_lines() -> None:
    document = read("a.py", "# The mill stands at the weir.\nimport os\n\nx = 1  # gate\n")
    assert account(document) == ["1 comment: gate", "2 lines of code"]


def test_base64_pictures_in_markdown_are_counted_and_removed() -> None:
    picture = "data:image/png;base64," + "iVBORw0KGgo" * 200_000
    document = read(
        "a.md", f"# The lamp\n\n![a drawing of the lamp]({picture})\n\nSabine Rell built it.\n\n[1]: <{picture}>\n"
    )
    assert "a drawing of the lamp" in text(document) and "Sabine Rell built it." in text(document)
    assert "iVBOR" not in text(document)
    assert account(document) == ["2 pictures: image/png"]


# Data between texts, and files of other programs


BASE64 = "\n".join(["iVBORw0KGgo" * 7 + "q9"] * 4)


def test_lines_of_base64_are_no_text() -> None:
    for name in ("a.txt", "a.md", "a.unknown"):
        document = read(name, f"The mill stands.\n\n{BASE64}\nQm9v\n\nIts wheel turns.\n")
        assert "wheel turns" in text(document) and "iVBOR" not in text(document)
        assert account(document) == ["1 embedded object: 4 lines of base64"]
    hashes = "\n".join("0123456789abcdef" * 4 for _ in range(3))
    assert hashes in text(read("a.txt", f"The sums of the files:\n{hashes}\n"))


def test_blocks_within_a_text_of_xml_end_words() -> None:
    data = "<a><td>Mill<p>Weir</p>turns<br/>twice</td><p>The <b>w</b>eir</p></a>"
    assert text(read("a.xml", data)).split() == ["Mill", "Weir", "turns", "twice", "The", "weir"]


def test_html_and_base64_files_in_xml_are_recognised() -> None:
    document = read(
        "notes.xml",
        "<?xml version='1.0'?><!DOCTYPE en-export SYSTEM 'x.dtd'><en-export><note><title>Bread</title><content><![CDATA["
        f"<en-note><div>Feed it with <b>rye</b>.</div></en-note>]]></content><resource><data>{BASE64}</data></resource>"
        "</note><note><title>Oil</title><content>Four cans.</content></note></en-export>",
    )
    assert document.metadata["format"] == "xml"
    assert "Bread\nFeed it with rye." in text(document).replace("\n\n", "\n") and "<div>" not in text(document)
    assert "iVBOR" not in text(document)
    assert account(document) == ["1 embedded object: 319 characters of base64"]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("a.xps", "print it as PDF"),
        ("a.one", "export it as PDF"),
    ],
)
def test_error_for_files_of_unsupported_programs_names_a_remedy(name: str, advice: str) -> None:
    document = read(name, b"PK\x03\x04\x14\x00\x00\x00\x08\x00" + bytes(range(256)))
    assert document.skipped and advice in (document.error or "")
    assert "mill" in text(read(name, "The mill stands."))


def test_a_calendar_and_a_contact_read_as_people_write_them() -> None:
    event = read("a.ics", "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nDTSTART;TZID=Europe/Oslo:20240613T180000\r\n"
                          "SUMMARY:Fair of the mil\r\n lers\\, with bread\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")  # fmt: skip
    assert (event.title, text(event)) == (
        "Fair of the millers, with bread",
        "Fair of the millers, with bread\nStart: 2024-06-13 18:00 Europe/Oslo",
    )
    lines = [
        "BEGIN:VCALENDAR", "BEGIN:VTIMEZONE", "TZID:Oslo", "BEGIN:STANDARD", "DTSTART:19701025T030000", "RRULE:FREQ=YEARLY",
        "END:STANDARD", "END:VTIMEZONE", "BEGIN:VEVENT", "UID:4", "ATTENDEE;RSVP=", " TRUE;CN=Ann:mailto:ann@x.example",
        "SUMMARY:Fair", "DTSTART:20240613", "RRULE:FREQ=WEEKLY;BYDAY=TH", "X-MOZ-GENERATION:2", "BEGIN:VALARM",
        "DESCRIPTION:This is an event reminder", "END:VALARM", "END:VEVENT", "END:VCALENDAR",
    ]  # fmt: skip
    repeated = read("a.ics", "\ufeff" + "\r\n".join(lines))
    assert text(repeated).split("\n") == [
        "Fair", "Attendee: Ann <ann@x.example>", "Start: 2024-06-13", "Repeats: FREQ=WEEKLY;BYDAY=TH",
    ]  # fmt: skip
    lines = [
        "BEGIN:VCARD", "N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=B8ller;Bj=C3=B8rg;;;", "FN:Bjørg",
        "NOTE;ENCODING=QUOTED-PRINTABLE:Repairs =", "wheels",
        "TEL;TYPE=work,voice:+47 1", "TEL;HOME;FAX:+47 2", "TEL:+47 3", "PHOTO;ENCODING=b:aWFh", "  aWFh", "END:VCARD",
    ]  # fmt: skip
    person = read("a.vcf", "\n".join(lines))
    assert text(person).split("\n") == [
        "Bjørg", "Name: Møller, Bjørg", "Note: Repairs wheels", "Telephone (work): +47 1", "Telephone (home, fax): +47 2",
        "Telephone: +47 3",
    ]  # fmt: skip
    assert account(person) == ["1 embedded object: photo, 9 characters"]


@pytest.mark.parametrize(
    ("name", "made_up"),
    [
        ("Sheet1", True),
        ("Tabelle 2", True),
        ("シート1", True),
        ("Table", True),
        ("Sheet music", False),
        ("Tabelle der Mühlen", False),
    ],
)
def test_generated_sheet_names_are_recognised(name: str, made_up: bool) -> None:
    assert is_generated_name(name) is made_up


@pytest.mark.parametrize("name", ["a.html", "a.xml", "a.fodt"])
@pytest.mark.parametrize("kind", ["deep", "long"])
def test_text_after_a_deep_element_or_a_long_text_is_read(name: str, kind: str) -> None:
    """libxml2 stops at 256 levels and at texts of 10 MB unless told otherwise."""
    around = ("<div>" * 300, "</div>" * 300)
    picture = base64.b64encode(os.urandom(9_000_000)).decode()
    if name == "a.fodt":
        data = f"<draw:image><office:binary-data>{picture}</office:binary-data></draw:image>"
        inner = f"<text:p>{'<text:span>' * 300}inside{'</text:span>' * 300}</text:p>" if kind == "deep" else data
        names = " ".join(
            f'xmlns:{each}="urn:oasis:names:tc:opendocument:xmlns:{each if each != "draw" else "drawing"}:1.0"'
            for each in ("office", "text", "draw")
        )
        text = (
            f"<?xml version='1.0'?><office:document {names} office:mimetype='application/vnd.oasis.opendocument.text'>"
            f"<office:body><office:text>{inner}<text:p>after</text:p></office:text></office:body></office:document>"
        )
    else:
        inner = (
            f"{around[0]}<p>inside</p>{around[1]}"
            if kind == "deep"
            else f'<img src="data:image/png;base64,{picture}"/>'
        )
        text = f"<p>first</p>{inner}<p>after</p>"
        text = f"<doc>{text}</doc>" if name == "a.xml" else text
    words = " ".join(passage.text for passage in read(name, text).passages)
    assert "after" in words and ("inside" in words or kind == "long")


@pytest.mark.parametrize("name", ["a.html", "a.xml"])
def test_text_beyond_the_limit_of_depth_is_in_the_account(name: str) -> None:
    document = read(name, f"<doc><p>first</p>{'<div>' * 5000}inside{'</div>' * 5000}</doc>")
    assert [each for each in account(document) if "the text after line 1" in each], document


@pytest.mark.parametrize("strips", [1, 4])
def test_a_scan_with_a_stamp_awaits_ocr_also_if_it_is_stored_as_strips(strips: int) -> None:
    jpeg, width, height = io.BytesIO(), 600.0, 800.0
    Image.new("L", (60, 80), 200).save(jpeg, "JPEG")
    document = pypdfium2.PdfDocument.new()
    page = document.new_page(width, height)
    for number in range(strips):
        strip = pypdfium2.PdfImage.new(document)
        strip.load_jpeg(io.BytesIO(jpeg.getvalue()))
        strip.set_matrix(pypdfium2.PdfMatrix(width, 0, 0, height / strips, 0, number * height / strips))
        page.insert_obj(strip)
    stamp = pdfium.FPDFPageObj_NewTextObj(document.raw, b"Helvetica", 12.0)
    letters = ctypes.create_string_buffer("Scanned by office 1\0".encode("utf-16-le"))
    pdfium.FPDFText_SetText(stamp, ctypes.cast(letters, ctypes.POINTER(ctypes.c_ushort)))
    pdfium.FPDFPage_InsertObject(page.raw, stamp)
    page.gen_content()
    saved = io.BytesIO()
    document.save(saved)
    parsed = parse_pdf(saved.getvalue(), Limits(), Omissions())
    assert [(picture.page, picture.is_page) for picture in parsed.pictures] == [(1, True)]
