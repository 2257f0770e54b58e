"""What is read of OpenDocument, RTF, binary Excel files and Outlook's messages."""

import io
import re
import struct
import zipfile
from collections.abc import Callable

import compressed_rtf
import openpyxl
import pytest

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing import Limits, parse_data
from consumers.parsing.formats.office.binary_sheets import fill_sheets
from consumers.parsing.office_properties import sensible_title
from consumers.parsing.outline import Outline
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from tests.consumers.parsing.conservation.places import Words
from tests.consumers.parsing.conservation.xls_places import record, string
from tests.consumers.parsing.conservation.xls_places import write as xls
from tests.consumers.parsing.conservation.xlsb_places import write as xlsb
from tests.consumers.parsing.office_samples import opendocument, outlook

S = SplitSettings(max_tokens=400, min_tokens=0)
LONG = "Mara Quill repaired the seismograph before the autumn expedition set out from Tarn Harbour. " * 3


def read(name: str, data: bytes) -> ParsedDocument:
    (document,) = parse_data(data, name.encode(), f"file:///{name}", S)
    return document


def texts(document: ParsedDocument) -> list[tuple[str, str]]:
    assert document.error is None
    return [(passage.title, passage.text) for passage in document.passages]


def test_an_empty_chart_sheet_or_a_missing_sheet_does_not_fail_a_workbook() -> None:
    book = openpyxl.Workbook()
    book.active.append(["Name", "Price"])
    book.active.append(["lamp", 12])
    book.create_chartsheet("Chart")
    book.create_sheet("Gone")
    written, out = io.BytesIO(), io.BytesIO()
    book.save(written)
    left_out = ("xl/chartsheets/_rels/sheet1.xml.rels", "xl/drawings/drawing1.xml", "xl/worksheets/sheet2.xml")
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(out, "w") as target:
        for name in set(source.namelist()) - set(left_out):
            content = source.read(name)
            target.writestr(name, re.sub(rb"<drawing [^>]*>", b"", content) if "chartsheets" in name else content)
    [(_, text), *_] = texts(read("a.xlsx", out.getvalue()))
    assert "Name: lamp; Price: 12" in text


def test_odt_headings_lists_and_tables() -> None:
    body = (
        "<text:table-of-content><text:p>Findings 1</text:p></text:table-of-content><text:h "
        'text:outline-level="1">Field Report</text:h>'
        f'<text:p>{LONG}</text:p><text:h text:outline-level="2">Findings</text:h>'
        "<text:p>Basalt<text:s text:c='2'/>was<text:line-break/>found.<office:annotation><text:p>"
        "Really?</text:p></office:annotation></text:p>"
        "<text:list><text:list-item><text:p>chalk</text:p></text:list-item><text:list-item><text:p>"
        "flint</text:p></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>rock</text:p></table:table-cell>"
        "<table:table-cell><text:p>depth</text:p>"
        "</table:table-cell></table:table-row><table:table-row><table:table-cell><text:p>basalt</text:p>"
        "</table:table-cell>"
        "<table:table-cell><text:p>40 m</text:p></table:table-cell></table:table-row></table:table>"
    )
    document = read("a.odt", opendocument("text", body, title="untitled"))
    assert document.title == "Field Report"
    assert document.metadata == {"format": "opendocument", "creator": "Ada Writer"}
    assert texts(document) == [
        ("Field Report", LONG.strip()),
        (
            "Field Report › Findings",
            "Basalt  was\nfound.\n\nComment: Really?\n- chalk\n- flint\n\nrock: basalt; depth: 40 m",
        ),
    ]


def test_ods_sheets_and_repeated_rows_are_parsed() -> None:
    def row(*cells: str, repeated: int = 1) -> str:
        inner = "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in cells)
        return f'<table:table-row table:number-rows-repeated="{repeated}">{inner}</table:table-row>'

    rest = '<table:table-cell table:number-columns-repeated="16384"/>'
    empty = f'<table:table-row table:number-rows-repeated="1048000">{rest}</table:table-row>'
    sheets = (
        f'<table:table table:name="Readings">'
        f"{row('station', 'depth')}{row('Alpha', '12', repeated=2)}{row('Beta', '7')}{empty}</table:table>"
        f'<table:table table:name="Notes">{row("1", "2")}</table:table>'
    )
    document = read("a.ods", opendocument("spreadsheet", sheets))
    assert texts(document) == [
        ("Readings", "station: Alpha; depth: 12\nstation: Alpha; depth: 12\nstation: Beta; depth: 7"),
        ("Notes", "1; 2"),
    ]
    assert document.passages[0].location == {"heading": "Readings", "sheet": "Readings", "row": 2}


def test_ods_values_keep_their_columns_and_rows_after_long_runs_of_empty_ones() -> None:
    def cell(text: str) -> str:
        return f"<table:table-cell><text:p>{text}</text:p></table:table-cell>"

    names = "".join(cell(f"Name{n:03d}") for n in range(1, 101))
    values = f'{cell("alpha")}<table:table-cell table:number-columns-repeated="98"/>{cell("omega")}'
    empty = '<table:table-row table:number-rows-repeated="5000"><table:table-cell/></table:table-row>'
    rows = f"<table:table-row>{names}</table:table-row>{empty}<table:table-row>{values}</table:table-row>"
    many = f'<table:table-row table:number-rows-repeated="1200">{cell("beta")}</table:table-row>'
    document = read("a.ods", opendocument("spreadsheet", f'<table:table table:name="S">{rows}{many}</table:table>'))
    first = document.passages[0]
    assert first.text.split("\n")[0] == "Name001: alpha; Name100: omega"
    assert first.location["row"] == 5002
    assert [(each.kind, each.count) for each in document.left_out] == [(OmissionKind.TOO_LARGE, 200)]


def test_odt_tables_keep_the_columns_of_values_after_repeated_cells() -> None:
    def cell(text: str, repeated: int = 1) -> str:
        words = f"<text:p>{text}</text:p>" if text else ""
        return f'<table:table-cell table:number-columns-repeated="{repeated}">{words}</table:table-cell>'

    rows = (
        f"<table:table-row>{cell('name')}{cell('low')}{cell('high')}{cell('unit')}</table:table-row>"
        f"<table:table-row>{cell('alpha')}{cell('', 2)}{cell('bar')}</table:table-row>"
        f'<table:table-row table:number-rows-repeated="2">{cell("beta")}{cell("7", 2)}{cell("kg")}</table:table-row>'
    )
    document = read("a.odt", opendocument("text", f"<table:table>{rows}</table:table>"))
    beta = "name: beta; low: 7; high: 7; unit: kg"
    assert [passage.text for passage in document.passages] == [f"name: alpha; unit: bar\n{beta}\n{beta}"]


def test_odp_slides_give_titles_and_pages() -> None:
    body = (
        '<draw:page draw:name="page1"><draw:frame presentation:class="title"><draw:text-box><text:p>The '
        "Route</text:p></draw:text-box>"
        "</draw:frame><draw:frame><draw:text-box><text:p>From Tarn to Skerry</text:p></draw:text-box>"
        "</draw:frame></draw:page>"
        '<draw:page draw:name="page2"><draw:frame><draw:text-box><text:p>No title here</text:p>'
        "</draw:text-box></draw:frame></draw:page>"
    )
    document = read("a.odp", opendocument("presentation", body, title="Expedition"))
    assert texts(document) == [
        ("Expedition › The Route", "From Tarn to Skerry"),
        ("Expedition › page2", "No title here"),
    ]
    assert [passage.location["page"] for passage in document.passages] == [1, 2]


def test_opendocument_is_detected_under_another_name_and_refused_if_encrypted() -> None:
    assert read("a.bin", opendocument("text", "<text:p>Words here.</text:p>")).metadata["format"] == "opendocument"
    assert "password" in (read("a.odt", opendocument("text", "", encrypted=True)).error or "")


def test_rtf_text_title_and_tables() -> None:
    source = (
        r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Times;}}{\info{\title The Tarn Survey}{\author Ada}{\operator Mork}}"
        r"\pard\b Tides\b0\par\par "
        r"The caf\'e9 costs 3 \u8364?.\par{\pict\pngblip " + "89504e47" * 200 + r"}\par\trowd part\cell year\cell\row"
        "\n"
        r"\trowd gauge\cell 1911\cell\row}"
    )
    document = read("a.rtf", source.encode())
    assert document.title == "The Tarn Survey"
    assert document.metadata == {"format": "rtf", "author": "Ada", "last_author": "Mork"}
    assert texts(document) == [("The Tarn Survey", "Tides\n\nThe café costs 3 €.\n\npart: gauge; year: 1911")]


def message(code_pages: bytes = b"", **streams: bytes) -> bytes:
    wide = {key: value.decode().encode("utf-16-le") for key, value in streams.items() if key.endswith("001F")}
    fixed = bytes(32) + struct.pack("<HHIQ", 0x40, 0x39, 6, 133_907_544_000_000_000) + code_pages
    inner = {f"__substg1.0_{key}": value for key, value in (streams | wide).items()}
    named = {"__substg1.0_3707001F": "gauge.pdf".encode("utf-16-le")}
    return outlook({"__properties_version1.0": fixed, **inner}, {"__attach_version1.0_#00000000": named})


def test_outlook_message_gives_people_and_attachments() -> None:
    data = message(
        **{
            "0037001F": "Tide gauge – spare parts".encode(),
            "0C1A001F": b"Mara Quill",
            "5D01001F": b"mara@tarn.example",
            "0E04001F": b"Joss",
            "1000001F": b"The gauge needs a new float.\r\n\r\nMara",
        }
    )
    document = read("a.msg", data)
    assert document.title == "Tide gauge – spare parts"
    assert document.metadata["attachments"] == ["gauge.pdf"]
    assert texts(document)[0][1] == (
        "From: Mara Quill <mara@tarn.example>\nTo: Joss\nDate: 2025-05-03T14:00:00+00:00\n\n"
        "The gauge needs a new float.\n\nMara"
    )


def test_an_outlook_message_has_the_addresses_of_its_internet_headers() -> None:
    headers = b"From: Mara Quill <mara@tarn.example>\r\nTo: Joss <joss@tarn.example>\r\nSubject: Tides\r\n\r\n"
    document = read("a.msg", message(**{"0C1A001F": b"Mara Quill", "0E04001F": b"Joss", "007D001F": headers}))
    assert document.metadata["from"] == "Mara Quill <mara@tarn.example>"
    assert document.metadata["to"] == "Joss <joss@tarn.example>"


@pytest.mark.parametrize("pages", [{0x3FFD: 950}, {0x3FDE: 950}, {0x3FFD: 20127, 0x3FDE: 950}])
def test_an_outlook_message_without_unicode_is_decoded_by_either_code_page(pages: dict[int, int]) -> None:
    stated = b"".join(struct.pack("<HHIQ", 3, key, 6, page) for key, page in pages.items())
    document = read(
        "a.msg", message(stated, **{"0037001E": "格式測試".encode("cp950"), "1000001E": "中文".encode("cp950")})
    )
    assert document.title == "格式測試" and texts(document)[0][1].endswith("中文")


def test_outlook_message_with_only_html_or_compressed_rtf_is_parsed() -> None:
    assert "A new float." in texts(read("a.msg", message(**{"10130102": b"<p>A <b>new</b> float.</p>"})))[0][1]
    packed = compressed_rtf.compress(rb"{\rtf1 A new float.\par}")
    assert "A new float." in texts(read("b", message(**{"10090102": packed})))[0][1]


@pytest.mark.parametrize(("name", "write"), [("a.xls", xls), ("a.xlsb", xlsb)])
def test_binary_excel_files_give_rows_with_column_names(name: str, write: Callable[[Words], bytes]) -> None:
    document = read(name, write({"name of a sheet": "Stalls", "text of a cell": "Ada"}))
    assert document.metadata["format"] == "xls"
    assert texts(document)[0][0] == "Stalls"
    assert texts(document)[0][1].startswith("Name: Ada; Area: North")
    assert document.passages[0].location == {"heading": "Stalls", "sheet": "Stalls", "row": 2}


def test_numbers_of_xls_are_no_dates_if_the_file_gives_their_format_another_meaning() -> None:
    """Gnumeric numbers its formats from 50; Excel's own formats 50 to 58 are East Asian dates."""
    formats = b"".join(
        record(0x41E, struct.pack("<H", key) + string(text)) for key, text in ((50, "0.0"), (51, "yy/mm"))
    )
    formats += b"".join(record(0xE0, struct.pack("<HH", 0, key) + bytes(16)) for key in (0, 50, 51, 14))
    rows = record(0x203, struct.pack("<HHHd", 1, 0, 1, 14.0616724)) + record(
        0x203, struct.pack("<HHHd", 2, 0, 2, 366.0)
    )
    rows += record(0x27E, struct.pack("<HHHI", 3, 0, 1, 1234 << 2 | 3)) + record(
        0x27E, struct.pack("<HHHI", 4, 0, 3, 366 << 2 | 2)
    )
    rows += record(0xBD, struct.pack("<HHHIHIH", 5, 0, 1, 0x40100000, 1, 0xFFFFFFFE, 1))
    rows += record(0x06, struct.pack("<HHHd", 6, 0, 1, 2.5) + bytes(8))
    document = read("a.xls", xls({}, formats, rows))
    shown = "\n".join(text for _, text in texts(document)).partition("The end")[2].split("\n")
    assert shown[1:7] == ["14.0616724", "1900-12-31", "12.34", "1900-12-31", "4; -1", "2.5"]


def test_xls_file_with_a_password_is_skipped_with_that_reason() -> None:
    document = read("a.xls", xls({}, record(0x2F, bytes(6))))
    assert document.skipped and "protected by a password" in (document.error or "")


def test_a_sheet_with_two_distant_cells_takes_no_memory() -> None:
    document = read("a.xlsb", xlsb({}, last=(1_048_575, 16_383)))
    assert document.skipped and "more than 2,000,000 cells" in (document.error or "")


def test_other_ole_files_and_texts_with_the_ending_msg_are_distinguished() -> None:
    assert "save it as .docx" in (read("a.msg", outlook({"WordDocument": b"x"})).error or "")
    embedded = outlook({"WordDocument": b"x"}, {"ObjectPool": {"Workbook": b"x"}})
    assert "save it as .docx" in (read("a.doc", embedded).error or "")
    assert "damaged" in (read("a.xls", outlook({"Workbook": b"x"})[:700]).error or "")
    assert texts(read("de.msg", b"msgcat set de quit Beenden")) == [("", "msgcat set de quit Beenden")]


@pytest.mark.parametrize("title", ["PowerPoint-Präsentation", "Présentation PowerPoint", "Presentación de PowerPoint"])
def test_default_powerpoint_titles_in_other_languages_are_ignored(title: str) -> None:
    assert sensible_title(title) == "" and sensible_title("Lamps of the PowerPoint hall") != ""


def test_cells_of_excel_95_are_read_and_its_other_texts_are_counted() -> None:
    end = record(0x0A)
    start = record(0x809, struct.pack("<HHHH", 0x500, 5, 0, 1995))
    sheet = record(0x809, struct.pack("<HHHH", 0x500, 0x10, 0, 1995)) + record(0x14, b"\4Quay")
    sheet += record(0x204, struct.pack("<HHHH", 0, 0, 15, 8) + b"The lamp") + end
    name = struct.pack("<HB", 0, 4) + b"Pier"
    at = len(start) + 4 + 4 + len(name) + len(end)
    book = start + record(0x85, struct.pack("<I", at) + name) + end + sheet
    document = read("a.xls", outlook({"Book": book}))
    assert document.passages[0].text.endswith("The lamp")
    assert [(each.kind, each.count) for each in document.left_out] == [("other", 1)]


def test_known_numbers_of_binary_sheets_stay_in_their_columns() -> None:
    book = openpyxl.Workbook()
    book.active.title = "Data"
    for row in (("Name", "Price", "Size"), ("alpha", 12, 7)):
        book.active.append([None, None, *row])
    data = io.BytesIO()
    book.save(data)
    outline = Outline(10_000, Omissions())
    fill_sheets(outline, data.getvalue(), {}, Limits(), numbers={"Data": {(1, 3): 12.5}})
    assert [block.text for block in outline.done()] == ["Name: alpha; Price: 12.5; Size: 7"]
