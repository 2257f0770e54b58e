"""Tables of text documents. Cells can span rows and columns, as in HTML."""

import re
from collections.abc import Sequence
from typing import Any

from lxml import etree

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.formats.markup.html_tables import MAX_COLUMNS, read_rows
from consumers.parsing.outline import Outline

Element = Any
_MADE_UP = re.compile(
    r"(?:sheet|tab(?:le|elle|el|ella|la|leau)|feuille|hoja|foglio|blad|ark|arkusz|planilha|лист|таблица|工作表|シート)\W?\d*",
    re.IGNORECASE,
)


def is_made_up(name: str) -> bool:
    """Whether a program generated the name of a sheet or table, such as "Sheet 1"."""
    return _MADE_UP.fullmatch(name.strip()) is not None


def table_cell(text: str, *, wide: int | str = 1, high: int | str = 1, names: bool = False) -> Element:
    """Return a cell as an HTML element; `names` marks it as a column's name."""
    cell = etree.Element("th" if names else "td", colspan=str(wide), rowspan=str(high))
    cell.text = text
    return cell


def row_texts(rows: Sequence[list[Element]], omissions: Omissions) -> list[str]:
    def report(count: int) -> None:
        omissions.add(OmissionKind.TOO_LARGE, f"cells beyond {MAX_COLUMNS:,} columns", count)

    return [text for _, text in read_rows([(None, row) for row in rows], lambda cell: cell.text or "", report)]


def fill_table(outline: Outline, rows: Sequence[list[Element]], page: int | None = None) -> None:
    for number, text in enumerate(row_texts(rows, outline.omissions), 1):
        outline.text(text, "\n\n" if number == 1 else "\n", page=page, row=number)
