"""Every value of a table in HTML stands with the name of its own column or row."""

import pytest

from consumers.parsing import parse_data
from consumers.splitting import SplitSettings


def rows(table: str) -> list[str]:
    content = f"<!doctype html><html><body><table>{table}</table></body></html>".encode()
    (document,) = parse_data(content, b"a.html", "file:///a.html", SplitSettings(max_tokens=400, min_tokens=0))
    return "\n".join(passage.text for passage in document.passages).splitlines()


@pytest.mark.parametrize(
    ("table", "read"),
    [
        (
            "<tr><th>Year<th>Who<tr><td rowspan=2>1902<td>Strand<tr><td>Lind<tr><td>1903<td>Voss",
            ["Year: 1902; Who: Strand", "Year: 1902; Who: Lind", "Year: 1903; Who: Voss"],
        ),
        (
            "<tr><th>Year<th>Place<th>Who<tr><td>1902<td rowspan=2>Kessel<td>Strand<tr><td>1903<td>Lind",
            ["Year: 1902; Place: Kessel; Who: Strand", "Year: 1903; Place: Kessel; Who: Lind"],
        ),
        ("<tr><th>A<th>B<th>C<tr><td colspan=2>1<td>2", ["A: 1; C: 2", "B"]),
        (
            "<tr><th rowspan=2>Town<th colspan=2>People<tr><th>1900<th>1950<tr><td>Kessel<td>12<td>15",
            ["Town: Kessel; People 1900: 12; People 1950: 15"],
        ),
        ("<tr><td><th>1902<th>1950<tr><th>Cost<td>4<td>5", ["Cost; 1902: 4; 1950: 5"]),
        ("<tr><th>Name<th>Role<tr><td colspan=2>North<tr><td>Ann<td>Chair", ["North", "Name: Ann; Role: Chair"]),
        ("<tr><th>Owner: Ann<th>State<tr><td colspan=2>The goal", ["The goal", "Owner: Ann; State"]),
        (
            "<tr><td>Name<td>Town<tr><td>Ann<td>Oslo<tr><td>Bo<td>Rome",
            ["Name: Ann; Town: Oslo", "Name: Bo; Town: Rome"],
        ),
        (
            "<tr><td>Fax*<td>Fax number of the user<tr><td>Town<td>The town where the user lives",
            ["Fax*; Fax number of the user", "Town; The town where the user lives"],
        ),
        (
            "<tr><td>F1<td>Zoom in<tr><td>F2<td>Zoom out<tr><td>F3<td>Redraw",
            ["F1; Zoom in", "F2; Zoom out", "F3; Redraw"],
        ),
        ("<tr><td>Fax:<td>+49 2933<tr><td>Post:<td>Sundern", ["Fax: +49 2933", "Post: Sundern"]),
        (
            "<tr><td>asc<td>ASCII<tr><td>htag<td>HP-Helptag<tr><td>dos<td>DOS",
            ["asc; ASCII", "htag; HP-Helptag", "dos; DOS"],
        ),
        ("<tr><td>BeOS<td>beos<tr><td>Netware<td>mpm_netware", ["BeOS; beos", "Netware; mpm_netware"]),
        ("<tr><td>LP_PACK<td>確認<tr><td>LP_PERRORP<td>エラー信号", ["LP_PACK; 確認", "LP_PERRORP; エラー信号"]),
        (
            "<tr><td>滚轮<td>在当前光标位置放大<tr><td>Ctrl +滚轮<td>左右平移",
            ["滚轮; 在当前光标位置放大", "Ctrl +滚轮; 左右平移"],
        ),
        ("<tr><td>[in]<td>dialog<tr><td>[in]<td>ciphered", ["[in]; dialog", "[in]; ciphered"]),
        (
            "<tr><td>New Plot<td>Create a new tab.<tr><td>Tune<td>Start the tuner.",
            ["New Plot; Create a new tab.", "Tune; Start the tuner."],
        ),
        (
            "<thead><tr><td>Key that is pressed<td>Action<tbody><tr><td>The key for a new page<td>Add",
            ["Key that is pressed: The key for a new page; Action: Add"],
        ),
    ],
    ids=[
        "rowspan",
        "rowspan within",
        "colspan",
        "two headers",
        "corner",
        "section",
        "sections only",
        "plain",
        "explanations",
        "keys",
        "colons",
        "codes",
        "equal",
        "constants",
        "endings",
        "repeated",
        "sentences",
        "thead",
    ],
)
def test_table_values_get_the_names_of_their_columns(table: str, read: list[str]) -> None:
    assert rows(table) == read


def test_infobox_rows_give_name_and_value() -> None:
    box = "<tr><th colspan=2>Old Mill<tr><th>Founder<td>Henriette Voss<tr><th>Place<td>Kessel"
    assert rows(box) == ["Old Mill", "Founder: Henriette Voss", "Place: Kessel"]
    assert rows(box.removeprefix("<tr><th colspan=2>Old Mill")) == ["Founder: Henriette Voss", "Place: Kessel"]


@pytest.mark.parametrize("span", ["x", "-1", "0", "", "1e9", "²", "99999", "9" * 50])
def test_invalid_rowspan_or_colspan_loses_no_value(span: str) -> None:
    table = f"<tr><th rowspan='{span}'>A<th colspan='{span}'>B<tr><td rowspan='{span}'>1<td colspan='{span}'>2<tr><td>3<td>4"
    read = rows(table)
    assert all(any(value in row for row in read) for value in "1234")
    assert sum(map(len, read)) < 20_000


def test_large_rowspans_do_not_multiply_the_text() -> None:
    tall = "<tr><th>A<th>B<tr>" + f"<td rowspan=65534>{'word ' * 200}" + "<td>x<tr><td>y" * 2_000
    assert sum(map(len, rows(tall))) < 100_000


@pytest.mark.parametrize("element", ["<table><tr><td>a<td>{}<tr><td>b<td>c</table>", "<h2>{}</h2><p>c", "<p>{}"])
def test_an_omission_in_a_link_is_counted_once(element: str) -> None:
    link = "<a href='x.html' title='Open the page'>name</a>"
    (document,) = parse_data(element.format(link).encode(), b"a.html", "file:///a.html", SplitSettings())
    assert [omission.count for omission in document.left_out] == [1]
