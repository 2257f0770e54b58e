"""OpenDocument sheets: the places are cited by sections of part 3 of version 1.3."""

from tests.consumers.parsing.conservation.opendocument_markup import frame, opendocument, row
from tests.consumers.parsing.conservation.places import FormatTable, Words

CELLS = {
    "text of a cell": ("9.1.4", "<table:table-cell><text:p>{}</text:p></table:table-cell>"),
    "second paragraph of a cell": (
        "9.1.4",
        "<table:table-cell><text:p>a</text:p><text:p>{}</text:p></table:table-cell>",
    ),
    "value without text": ("19.380", "<table:table-cell office:value-type='string' office:string-value='{}'/>"),
    "formula without a result": ("19.642", "<table:table-cell table:formula='of:={}([.A1])'/>"),
    "covered cell": (
        "9.1.5",
        "<table:table-cell/><table:covered-table-cell><text:p>{}</text:p></table:covered-table-cell>",
    ),
    "comment": (
        "14.1",
        "<table:table-cell><office:annotation><text:p>{}</text:p></office:annotation></table:table-cell>",
    ),
    "text box on a cell": (
        "10.4.3",
        f"<table:table-cell>{frame('<draw:text-box><text:p>{}</text:p></draw:text-box>')}</table:table-cell>",
    ),
}


def image(name: str) -> str:
    return frame(f"<draw:image xlink:href='{name}.png'/>")


AROUND = {
    "picture": ("10.4.4", f"<table:shapes>{image('{}')}</table:shapes>"),
    "text box on the sheet": (
        "9.2.8",
        f"<table:shapes>{frame('<draw:text-box><text:p>{}</text:p></draw:text-box>')}</table:shapes>",
    ),
    "row in a group": ("9.1.9", "<table:table-row-group><table:table-row><table:table-cell><text:p>{}</text:p>"
                                "</table:table-cell>"
                                "</table:table-row></table:table-row-group>"),
}  # fmt: skip
BEFORE = {
    "message of a rule": (
        "9.4.7",
        "<table:content-validations><table:content-validation><table:help-message table:title='a'><text:p>{}</text:p>"
        "</table:help-message></table:content-validation></table:content-validations>",
    ),
    "deleted content": (
        "9.9.8",
        "<table:tracked-changes><table:cell-content-change><table:previous><table:change-track-table-cell><text:p>{}</text:p>"
        "</table:change-track-table-cell></table:previous></table:cell-content-change></table:tracked-changes>",
    ),
}
OTHERS = {"name of a sheet": "9.1.2", "name of a column": "9.1.3", "header": "16.10", "picture in the header": "10.4.4"}


def write(given: Words) -> bytes:
    before = "".join(markup.format(given[place]) for place, (_, markup) in BEFORE.items() if place in given)
    rows = row(given.get("name of a column", "Name"), "Area") + row("Tarn", "12")
    for place, (_, markup) in CELLS.items():
        if place in given:
            rows += f"<table:table-row>{markup.format(given[place])}</table:table-row>"
    rows += "".join(markup.format(given[place]) for place, (_, markup) in AROUND.items() if place in given)
    name = given.get("name of a sheet", "Stock")
    sheets = f"<table:table table:name='{name}'>{rows}</table:table><table:table table:name='b'>{row('c', 'd')}</table:table>"
    header = f"<style:header><text:p>{given['header']}</text:p></style:header>" if "header" in given else ""
    if "picture in the header" in given:
        header += f"<style:footer><text:p>{image(given['picture in the header'])}</text:p></style:footer>"
    pictures = {f"{given[place]}.png": b"a" for place in ("picture", "picture in the header") if place in given}
    return opendocument("spreadsheet", before + sheets, margins=header, pictures=pictures)


TABLE = FormatTable(
    "stock.ods",
    "OpenDocument 1.3, part 3",
    {place: section for table in (CELLS, AROUND, BEFORE) for place, (section, _) in table.items()} | OTHERS,
    write,
)
