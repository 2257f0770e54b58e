"""Turns table rows into self-contained text: every value follows the name of its column."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import TypeVar

from consumers.parsing.outline import Outline

_HEADER_ROWS = 24
"""Number of rows at the beginning of a table that are searched for its header."""
_MAX_NAME_CHARS = 60
_PERIOD = re.compile(
    r"(?:19|20|21)\d\d(?:[/-]\d\d){0,2}|\d\d?[./](?:19|20|21)\d\d|\d\d?[./]\d\d?[./](?:19|20|21)\d\d|(?:19|20)\d\d/(?:19|20)\d\d"
)
"""A year, month or day as a column name: 2024, 2024-01, 2023/24, 01.2024, 31.12.2024."""
_LONG_NAME = 4
"""A cell with at least this many words is more often a text than a column's name."""
_CLOSING = frozenset(")]")
_CODE_MARKS = frozenset("0_.:/\\@$%")
"""Characters in a cell's form (`_form`) that indicate a code; "0" stands for a digit."""
Place = TypeVar("Place")
Row = Sequence[str]


def row_text(header: Row, row: Row) -> str:
    """Returns `column: value; column: value` without empty cells. In a row without column names, a cell that ends in ":" names
    the next cell."""
    parts: list[str] = []
    for index, value in enumerate(row):
        value = " ".join(value.split())
        if value:
            name = " ".join(header[index].split()) if index < len(header) else ""
            if not header and parts and parts[-1].endswith(":"):
                parts[-1] += f" {value}"
            else:
                parts.append(f"{name}: {value}" if name and name != value else value)
    return "; ".join(parts)


class Columns:
    """The names of a table's columns. Records which columns have had no value so far."""

    def __init__(self, names: Row = ()) -> None:
        self.names = names
        self._unused = set(range(len(names)))

    def row(self, cells: Row) -> str:
        """Returns the text of a row with the names of its columns."""
        self._unused.difference_update(index for index, value in enumerate(cells) if value.strip())
        return row_text(self.names, cells)

    def unused(self) -> str:
        """Returns the names of columns without values, which occur in no row's text."""
        names = (" ".join(self.names[index].split()) for index in sorted(self._unused))
        return "; ".join(filter(None, names))


def named_rows(rows: Iterable[tuple[Place, Row]]) -> Iterator[tuple[Place, str]]:
    """Yields (place, text) of each row: first the title rows above the header, then each row with its column names.

    The names of columns without values are yielded as one more row.
    """
    filled = ((place, row) for place, row in rows if any(cell.strip() for cell in row))
    first = list(islice(filled, _HEADER_ROWS))
    titles, names = _find_header([row for _, row in first])
    for place, row in first[:titles]:
        yield place, _title_text(row)
    columns = Columns(_joined([row for _, row in first[titles : titles + names]]))
    for place, row in chain(first[titles + names :], filled):
        yield place, columns.row(row)
    if text := columns.unused():
        yield first[titles][0], text


def fill_rows(outline: Outline, rows: Sequence[Row], header: Row | None = None, line: int | None = None) -> None:
    """Adds the rows of a table, and the names of columns without values.

    `header` contains the column names. If `header` is None, the first row is used as header if it looks like one.
    """
    if header is None:
        header = rows[0] if len(rows) > 1 and names_columns(rows[0], rows[1:_HEADER_ROWS]) else ()
        rows = rows[1:] if header else rows
    columns = Columns(header)
    for number, row in enumerate(rows, 1):
        outline.text(columns.row(row), "\n\n" if number == 1 else "\n", line=line, row=number)
    outline.text(columns.unused(), "\n", line=line)


def is_header(row: Row, below: Sequence[Row] = ()) -> bool:
    """Whether a row is the header of the rows below: at least two cells, all short, distinct and not numbers.

    Years, months and days are allowed if the rows below have other values in these columns.
    """
    filled = [cell.strip() for cell in row if cell.strip()]
    if len(filled) < 2 or len(set(filled)) < len(filled) or any(len(cell) > _MAX_NAME_CHARS for cell in filled):
        return False
    numbers = [index for index, cell in enumerate(row) if cell.strip() and _is_number(cell)]
    return not numbers or _name_periods(row, numbers, below)


def names_columns(row: Row, below: Sequence[Row]) -> bool:
    """Whether the first row of a table in a text is its header although no markup says so: the row looks like a header, and
    none of its cells looks like the cells below it.

    Tables in texts often have no header: "F1, zoom in" above "F2, zoom out". Files of tables nearly always have one.
    """
    if not is_header(row, below):
        return False
    first = row[0].strip()
    for index, cell in enumerate(cell.strip() for cell in row):
        column = [value for each in below if index < len(each) and (value := each[index].strip())]
        if cell and column and (_is_alike(cell, column) or (index and _explains(cell, first))):
            return False
    cases = [_case(row[:2]), *(_case(each[:2]) for each in below)]
    return not (cases[0] == "aA" and cases.count("aA") * 4 >= len(cases) * 3)


def _is_alike(cell: str, column: Sequence[str]) -> bool:
    """Whether a cell also occurs below, or has the form of at least half of the cells below it: as many words (at least four),
    the same mark at its beginning or end, or letters, digits and marks in the same order."""
    words = sorted(value.count(" ") for value in column)[len(column) // 2]
    if _LONG_NAME <= cell.count(" ") + 1 <= 2 * (words + 1):
        return True
    form = _form(cell)
    of_code = not _CODE_MARKS.isdisjoint(form) and "a" in form
    start, end = (cell[place] if not cell[place].isalnum() and cell[place] not in _CLOSING else "" for place in (0, -1))
    alike = sum(
        value.endswith(cell)
        or (start and value.startswith(start))
        or (end and value.endswith(end))
        or (of_code and _form(value) == form)
        for value in column
    )
    return cell in column or 2 * alike >= len(column) or (of_code and alike > 1)


def _explains(cell: str, first: str) -> bool:
    """Whether a cell explains the row's first cell ("fax number of the user" after "Fax") or is equal to it."""
    name = first.rstrip("*: ").casefold()
    return cell.casefold() == name or (
        len(name) > 2 and name in cell.casefold() and cell.count(" ") - name.count(" ") >= 2
    )


def _form(cell: str) -> str:
    """Returns a cell with "a" for letters and "0" for digits: "a0" for "F12"."""
    return re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", "a", cell))


def _case(cells: Row) -> str:
    return "".join("A" if cell[:1].isupper() else "a" if cell[:1].islower() else " " for cell in map(str.strip, cells))


def _find_header(rows: Sequence[Row]) -> tuple[int, int]:
    """Returns (number of rows before the header, number of header rows from 0 to 2)."""
    widths = Counter(_filled(row) for row in rows[-(2 * len(rows) // 3) :])
    width = max(widths, key=lambda each: (widths[each], each), default=0)
    titles = 0
    while titles < len(rows) - 1 and _is_title(rows[titles], width):
        if _groups_columns(*rows[titles : titles + 3]):
            return titles, 2
        titles += 1
    below = rows[titles + 1 :]
    if not below and titles:
        return titles, 0
    if _groups_columns(*rows[titles : titles + 3]):
        return titles, 2
    return titles, int(bool(rows) and is_header(rows[titles], below))


def _is_title(row: Row, width: int) -> bool:
    """Whether a row has far fewer cells than the table: it is a title, or a name with its value."""
    filled = _filled(row)
    named = filled == 2 and next(cell for cell in row if cell.strip()).strip().endswith(":")
    return 2 * filled <= width or (named and filled < width)


def _title_text(row: Row) -> str:
    cells = [" ".join(cell.split()) for cell in row if cell.strip()]
    return " ".join(cells) if len(cells) == 2 and cells[0].endswith(":") else "; ".join(cells)


def _groups_columns(groups: Row = (), names: Row = (), below: Row = ()) -> bool:
    """Whether `groups` names groups of columns and `names` repeats the columns of each group: "Wheat, , Barley," above "Area,
    Tons, Area, Tons"."""
    filled = [cell.strip() for cell in names if cell.strip()]
    gaps = any(left.strip() and not right.strip() for left, right in pairwise(groups))
    return (
        gaps
        and _filled(groups) < len(filled)
        and len(set(filled)) < len(filled)
        and not any(_is_number(cell) or len(cell) > _MAX_NAME_CHARS for cell in filled)
        and any(cell.strip() and _is_number(cell) for cell in below)
    )


def _joined(rows: Sequence[Row]) -> list[str]:
    """Returns one name for each column. If there are groups, each name begins with the name of its group."""
    if len(rows) < 2:
        return [*rows[0]] if rows else []
    groups, names = rows
    group, joined = "", []
    for index, name in enumerate(names):
        group = (groups[index].strip() if index < len(groups) else "") or group
        joined.append(f"{group} {name}".strip())
    return joined


def _name_periods(row: Row, numbers: Sequence[int], below: Sequence[Row]) -> bool:
    names = [row[index].strip() for index in numbers]
    if not all(_PERIOD.fullmatch(name) for name in names):
        return False
    keys = [tuple(int(part) for part in _in_order(name)) for name in names]
    rising = all(a < b for a, b in pairwise(keys)) or all(a > b for a, b in pairwise(keys))
    values = [each[index].strip() for each in below for index in numbers if index < len(each) and each[index].strip()]
    return rising and any(not _PERIOD.fullmatch(value) for value in values)


def _in_order(name: str) -> list[str]:
    """Returns the parts of a date in the order year, month, day."""
    parts = re.split(r"[./-]", name)
    return parts if len(parts[0]) == 4 else parts[::-1]


def _filled(row: Row) -> int:
    return sum(bool(cell.strip()) for cell in row)


def _is_number(cell: str) -> bool:
    return not any(char.isalpha() for char in cell)
