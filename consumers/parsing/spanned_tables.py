"""Turns tables whose cells span rows and columns (HTML, office files) into rows of text. Finds headers and row
names."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.table_rows import Columns, Place, names_columns, row_text

MAX_COLUMNS = 1000
"""Maximum span of a cell, as in HTML. Also the maximum number of cells in a row, which bounds the memory."""
REPEATED_CHARS = 200
"""Maximum length of a cell that is repeated in each row that it spans. A longer text is a paragraph and no row name, so it
stays in the first row."""


@dataclass(slots=True)
class Cell:
    """A cell. It spans `wide` columns and `high` rows."""

    text: str
    wide: int = 1
    high: int = 1
    is_name: bool = False
    """Whether the text names the cell's column or row."""


@dataclass(slots=True)
class _Row:
    place: Any
    cells: list[str]
    headers: int
    """Number of name cells in this row."""
    own: int
    is_header: bool
    """Whether all cells with text are names."""
    spans: bool


def read_rows(rows: Iterable[tuple[Place, Sequence[Cell]]], omissions: Omissions) -> Iterator[tuple[Place, str]]:
    """Yields (place, text) of each row with cells. Every value follows the name of its column or row."""
    grid = [row for row in _lay_out(rows, omissions) if row.own]
    while len(grid) > 1 and grid[0].own == 1 and grid[0].spans:
        # One cell over all columns is the table's title.
        row = grid.pop(0)
        yield row.place, row_text((), row.cells[:1])
    columns = Columns(_take_header(grid))
    for row in grid:
        if not columns.names and row.own == len(row.cells) == 2 and row.headers == 1 and row.cells[1]:
            yield row.place, row_text(row.cells[:1], row.cells[1:])
        elif row.spans and row.own == 1:
            yield row.place, row_text((), row.cells[:1])
        else:
            yield row.place, columns.row(row.cells)
    if names := columns.unused():
        yield grid[-1].place, names


def _take_header(rows: list[_Row]) -> list[str]:
    """Removes the header rows and returns the column names. A name that spans columns is joined with each name below it."""
    if len(rows) < 2 or not (
        rows[0].is_header or (not rows[0].headers and names_columns(rows[0].cells, [row.cells for row in rows[1:24]]))
    ):
        return []
    first = rows.pop(0)
    header, spans = first.cells, first.spans
    while spans and first.headers and len(rows) > 1 and rows[0].is_header:
        row = rows.pop(0)
        width = max(len(header), len(row.cells))
        pairs = zip(_padded(header, width), _padded(row.cells, width), strict=True)
        header, spans = [above if above == below else f"{above} {below}".strip() for above, below in pairs], row.spans
    return header


def _padded(cells: list[str], width: int) -> list[str]:
    return cells + [""] * (width - len(cells))


def _lay_out(rows: Iterable[tuple[Any, Sequence[Cell]]], omissions: Omissions) -> Iterator[_Row]:
    """Yields each row with one text per column. Cells beyond `MAX_COLUMNS` are reported.

    A cell that spans rows is repeated in each row. A cell that spans columns is repeated only if it is a header.
    """
    hanging: dict[int, tuple[int, str]] = {}
    for place, cells in rows:
        names = sum(cell.is_name for cell in cells)
        is_head = names > 0 and all(cell.is_name or not cell.text for cell in cells)
        row = _Row(place, [], names, len(cells), is_head, False)
        waiting = iter(cells)
        while len(row.cells) < MAX_COLUMNS:
            column = len(row.cells)
            if column in hanging:
                left, value = hanging.pop(column)
                row.cells.append(value)
                if left > 1:
                    hanging[column] = (left - 1, value)
                continue
            cell = next(waiting, None)
            if cell is None:
                if any(later > column for later in hanging):
                    row.cells.append("")
                    continue
                break
            row.spans = row.spans or cell.wide > 1 or cell.high > 1
            again = cell.text if len(cell.text) <= REPEATED_CHARS else ""
            for k in range(min(cell.wide, MAX_COLUMNS - column)):
                row.cells.append(cell.text if k == 0 else again if is_head else "")
                if cell.high > 1:
                    hanging[column + k] = (cell.high - 1, again if k == 0 or is_head else "")
        omissions.add(OmissionKind.TOO_LARGE, f"cells beyond {MAX_COLUMNS:,} columns", sum(1 for _ in waiting))
        yield row


def span(stated: str | None) -> int:
    """Parses a rowspan or colspan value. Returns the number of rows or columns; 1 for invalid values."""
    value = (stated or "").strip()
    return min(int(value), MAX_COLUMNS) if value.isascii() and value.isdigit() and len(value) < 6 and int(value) else 1
