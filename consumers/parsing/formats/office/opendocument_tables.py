"""The rows of OpenDocument's tables and sheets (OASIS, version 1.3, part 3, 9), within the limit of cells."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.office.opendocument_text import OFFICE, TABLE, TEXT, words_of
from consumers.parsing.formats.office.package import whole_number
from consumers.parsing.limits import Limits
from consumers.parsing.spanned_tables import Cell, span

Element = Any
_MAX_REPEATED = 1000
"""Maximum number of copies of a filled cell or row."""
_MAX_COLUMNS = 16_384
"""Number of columns of a sheet in LibreOffice."""
_VALUES = ("string-value", "value", "date-value", "time-value", "boolean-value")


class TableRows:
    """Reads the rows of all tables of a document."""

    def __init__(self, limits: Limits, omissions: Omissions) -> None:
        self._limits = limits
        self._omissions = omissions
        self._cells = 0

    def of_text(self, table: Element) -> Iterator[list[Cell]]:
        """Yields the rows of a table in a text or on a slide."""
        for row in _table_rows(table):
            cells = [_text_cell(cell) for cell in row if cell.tag == f"{TABLE}table-cell"]
            self._count(len(cells))
            yield cells

    def of_sheet(self, table: Element) -> Iterator[tuple[int, list[str]]]:
        """Yields (number, texts) of each row that is not empty."""
        number = 0
        for row in _table_rows(table):
            cells = self._cells_of(row)
            repeated = _repeated(row, "rows")
            copies = min(repeated, _MAX_REPEATED) if cells else 0
            self._count(sum(map(bool, cells)) * copies)
            for copy in range(copies):
                yield number + copy + 1, cells
            if cells:
                self._omissions.add(OmissionKind.TOO_LARGE, " ".join(filter(None, cells)), repeated - copies)
            number += repeated

    def _cells_of(self, row: Element) -> list[str]:
        """Returns the texts of a row's cells up to the last filled one."""
        cells: list[str] = []
        empty = 0  # the empty rest of a row is stored as one cell that is repeated
        for cell in row:
            if cell.tag in (f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
                text, repeated = self._value(cell), _repeated(cell, "columns")
                if not text:
                    empty += repeated
                    continue
                copies = min(repeated, _MAX_REPEATED)
                cells += [""] * min(empty, _MAX_COLUMNS - len(cells)) + [text] * copies
                empty = repeated - copies
        return cells

    def _value(self, cell: Element) -> str:
        """Returns the text of a cell; its formula if the file stores no result."""
        words = (words_of(each) for each in cell.iterchildren(f"{TEXT}p", f"{TEXT}h"))
        text = " ".join(filter(None, words))
        if not text:
            text = next((each for name in _VALUES if (each := cell.get(f"{OFFICE}{name}"))), "")
        formula = (cell.get(f"{TABLE}formula") or "").removeprefix("of:").removeprefix("oooc:")
        if not text and formula:
            self._omissions.add(OmissionKind.FORMULA, formula)
            return clean_text(formula)
        return clean_text(text)

    def _count(self, cells: int) -> None:
        self._cells += cells or 1
        self._limits.check_cells(self._cells)


def _text_cell(cell: Element) -> Cell:
    wide, high = (span(cell.get(f"{TABLE}number-{what}-spanned")) for what in ("columns", "rows"))
    texts = [words_of(each) for each in cell.iter(f"{TEXT}p", f"{TEXT}h") if not _anchored(each, cell)]
    return Cell(" ".join(filter(None, texts)), wide, high)


def _table_rows(table: Element) -> Iterator[Element]:
    """Yields the rows of a table, except rows of tables in its cells."""
    for child in table:
        if child.tag == f"{TABLE}table-row":
            yield child
        elif isinstance(child.tag, str) and child.tag.startswith(TABLE) and child.tag != f"{TABLE}table":
            yield from _table_rows(child)


def _anchored(paragraph: Element, cell: Element) -> bool:
    """Whether a paragraph of a cell is inside another paragraph of the cell, whose text then includes it."""
    above = takewhile(lambda each: each is not cell, paragraph.iterancestors())
    return any(each.tag in (f"{TEXT}p", f"{TEXT}h") for each in above)


def _repeated(node: Element, what: str) -> int:
    return whole_number(node.get(f"{TABLE}number-{what}-repeated"), 1)
