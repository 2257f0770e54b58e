"""Tables of office documents, and names that office programs generate for them."""

import re
from collections.abc import Iterable, Sequence

from consumers.omissions import Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.outline import Outline
from consumers.parsing.spanned_tables import Cell, read_rows
from consumers.parsing.table_rows import named_rows

_MADE_UP = re.compile(
    r"(?:sheet|tab(?:le|elle|el|ella|la|leau)|feuille|hoja|foglio|blad|ark|arkusz|planilha|лист|таблица|工作表|シート)\W?\d*",
    re.IGNORECASE,
)


def is_generated_name(name: str) -> bool:
    """Whether a program generated the name of a sheet or table, such as "Sheet 1"."""
    return _MADE_UP.fullmatch(name.strip()) is not None


def row_texts(rows: Iterable[Sequence[Cell]], omissions: Omissions) -> list[str]:
    return [text for _, text in read_rows(((None, row) for row in rows), omissions)]


def fill_sheet(
    outline: Outline, name: str, rows: Iterable[tuple[int, Sequence[str]]], texts: Iterable[str] = (), *, is_only: bool
) -> None:
    """Adds the rows of a sheet, then its texts outside the cells. The sheet's name is a heading, unless it is the only sheet
    and a program generated the name."""
    if not is_only or not is_generated_name(name):
        outline.heading(1, clean_text(name), sheet=name)
    for number, text in named_rows(rows):
        outline.text(text, "\n", sheet=name, row=number)
    for text in texts:
        outline.text(clean_text(text), "\n", sheet=name)


def fill_table(outline: Outline, rows: Iterable[Sequence[Cell]], page: int | None = None) -> None:
    for number, text in enumerate(row_texts(rows, outline.omissions), 1):
        outline.text(text, "\n\n" if number == 1 else "\n", page=page, row=number)
