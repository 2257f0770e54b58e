"""Which rows of a table name its columns, in CSV, Excel and OpenDocument alike."""

import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.parsing.parse_file import parse_data
from consumers.parsing.table_rows import is_header, named_rows
from consumers.splitting import SplitSettings

SETTINGS = SplitSettings(max_tokens=400, min_tokens=0)


def named(*rows: Sequence[str]) -> list[str]:
    return [text for _, text in named_rows(enumerate(rows, 1))]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            "Account:;DE00 1234\nPeriod:;01.2024\n;\nBooked;Payee;Purpose;Amount\n1 Feb;Ann;Loom;-7",
            ["Account: DE00 1234", "Period: 01.2024", "Booked: 1 Feb; Payee: Ann; Purpose: Loom; Amount: -7"],
        ),
        (
            "Staff of June;;;\n;;;\nName;Room;Door;Key\nAnn;B1;2;3",
            ["Staff of June", "Name: Ann; Room: B1; Door: 2; Key: 3"],
        ),
        ("Mine;2019;2020;2021\nOld Slope;769;991;909", ["Mine: Old Slope; 2019: 769; 2020: 991; 2021: 909"]),
        ("Mine;2021;2020;2019\nOld Slope;2020;991;909", ["Mine: Old Slope; 2021: 2020; 2020: 991; 2019: 909"]),
        ("Mine;2023\nOld Slope;769", ["Mine: Old Slope; 2023: 769"]),
        ("Mine;01.2024;02.2024\nOld Slope;76;99", ["Mine: Old Slope; 01.2024: 76; 02.2024: 99"]),
        ("Ann;2019;2021\nBo;2018;2020", ["Ann; 2019; 2021", "Bo; 2018; 2020"]),
        ("1;2\n3;4", ["1; 2", "3; 4"]),
        ("Name;Role", ["Name; Role"]),
        (
            ";Wheat;;Barley;\nFarm;Area;Tons;Area;Tons\nHaugen;12;40;7;22",
            ["Farm: Haugen; Wheat Area: 12; Wheat Tons: 40; Barley Area: 7; Barley Tons: 22"],
        ),
    ],
)
def test_csv_values_get_the_names_of_their_columns(rows: str, expected: list[str]) -> None:
    assert named(*(line.split(";") for line in rows.split("\n"))) == expected


@given(st.lists(st.lists(st.text(st.sampled_from("ab 12:.;20"), max_size=6), max_size=5), max_size=30))
def test_no_value_of_any_table_is_lost(rows: list[list[str]]) -> None:
    kept = "\n".join(named(*rows)).split()
    for row in rows:
        for value in row:
            assert all(any(word in each for each in kept) for word in value.split())


def test_row_with_years_is_no_header_without_values_or_out_of_order() -> None:
    assert not is_header(["Mine", "2019", "2020"])
    assert not is_header(["Mine", "2020", "2019", "2021"], [["a", "1", "2", "3"]])


def test_separator_line_of_a_csv_file_is_no_row() -> None:
    [document] = parse_data(b"sep=;\r\nArticle;Shelf\r\nHinge, brass;B12\r\n", b"a.csv", "file:///a.csv", SETTINGS)
    assert document.passages[0].text == "Article: Hinge, brass; Shelf: B12"
    assert document.passages[0].location["row"] == 3


def test_inch_marks_do_not_join_rows() -> None:
    rows = 'Article\tShelf\n"Big Ben" clock\tA1\n"19 inch rack\tB2\nLamp\tC3\n24" saw\tE5\n'
    [document] = parse_data(rows.encode(), b"a.tsv", "file:///a.tsv", SETTINGS)
    assert document.passages[0].text.split("\n")[1:] == [
        'Article: "19 inch rack; Shelf: B2',
        "Article: Lamp; Shelf: C3",
        'Article: 24" saw; Shelf: E5',
    ]


def test_excel_header_is_found_below_a_title_row() -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in (["Staff of June"], [], ["Mine", 2019, 2020], ["Old Slope", 769, 991.5]):
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    [document] = parse_data(out.getvalue(), b"a.xlsx", "file:///a.xlsx", SETTINGS)
    assert document.passages[0].text == "Staff of June\nMine: Old Slope; 2019: 769; 2020: 991.5"
