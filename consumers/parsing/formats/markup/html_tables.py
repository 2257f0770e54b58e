"""HTML tables: cells that span rows and columns, headers, and rows that are a name and a value."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from consumers.parsing.table_rows import is_header, row_text, unused_names

MAX_COLUMNS = 1000
"""Maximum span of one cell in HTML; here it also limits the cells of a row, which bounds the memory."""
REPEATED_CHARS = 200
"""The text of a longer cell that spans rows occurs only in the first row: a paragraph is not the name of a row."""
Element = Any


@dataclass(slots=True)
class _Row:
    line: int | None
    cells: list[str]
    headers: int
    """How many of its own cells are `th`."""
    own: int
    is_header: bool
    """Whether all cells are `th`, except empty ones in the corner."""
    spans: bool


def read_rows(
    rows: Sequence[tuple[int | None, list[Element]]],
    text: Callable[[Element], str],
    report: Callable[[int], None],
) -> Iterator[tuple[int | None, str]]:
    """Yield the line and text of each row with cells; every value has its column's or row's name.

    `report` is called with the number of a row's cells beyond `MAX_COLUMNS`.
    """
    laid = [row for row in _lay_out(rows, text, report) if row.own]
    while len(laid) > 1 and laid[0].own == 1 and laid[0].spans:
        # One cell over all columns is the table's title.
        row = laid.pop(0)
        yield row.line, row_text((), row.cells[:1])
    header = _take_header(laid)
    unused = set(range(len(header)))
    for row in laid:
        unused.difference_update(index for index, value in enumerate(row.cells) if value)
        if not header and row.own == len(row.cells) == 2 and row.headers == 1 and row.cells[1]:
            yield row.line, row_text(row.cells[:1], row.cells[1:])
        elif row.spans and row.own == 1:
            yield row.line, row_text((), row.cells[:1])
        else:
            yield row.line, row_text(header, row.cells)
    if names := unused_names(header, unused):
        yield laid[-1].line, names


def _take_header(rows: list[_Row]) -> list[str]:
    """Remove the header rows and return the column names; a name that spans columns is joined with each name below it."""
    if len(rows) < 2 or not (
        rows[0].is_header or (not rows[0].headers and is_header(rows[0].cells, [row.cells for row in rows[1:24]]))
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


def _lay_out(
    rows: Sequence[tuple[int | None, list[Element]]], text: Callable[[Element], str], report: Callable[[int], None]
) -> Iterator[_Row]:
    """Yield each row with one text per column.

    A cell that spans rows is repeated in each row. A cell that spans columns is repeated only if it is a header.
    """
    hanging: dict[int, tuple[int, str]] = {}
    for line, elements in rows:
        names = sum(cell.tag == "th" for cell in elements)
        texts = list(map(text, elements))
        is_head = names > 0 and all(cell.tag == "th" or not said for cell, said in zip(elements, texts, strict=True))
        row = _Row(line, [], names, len(elements), is_head, False)
        waiting = iter(zip(elements, texts, strict=True))
        while len(row.cells) < MAX_COLUMNS:
            column = len(row.cells)
            if column in hanging:
                left, value = hanging.pop(column)
                row.cells.append(value)
                if left > 1:
                    hanging[column] = (left - 1, value)
                continue
            cell, value = next(waiting, (None, ""))
            if cell is None:
                if any(later > column for later in hanging):
                    row.cells.append("")
                    continue
                break
            wide, high = _span(cell, "colspan"), _span(cell, "rowspan")
            row.spans = row.spans or wide > 1 or high > 1
            again = value if len(value) <= REPEATED_CHARS else ""
            for k in range(min(wide, MAX_COLUMNS - column)):
                row.cells.append(value if k == 0 else again if is_head else "")
                if high > 1:
                    hanging[column + k] = (high - 1, again if k == 0 or is_head else "")
        report(sum(1 for _ in waiting))
        yield row


def _span(cell: Element, name: str) -> int:
    value = (cell.get(name) or "").strip()
    return min(int(value), MAX_COLUMNS) if value.isascii() and value.isdigit() and len(value) < 6 and int(value) else 1
