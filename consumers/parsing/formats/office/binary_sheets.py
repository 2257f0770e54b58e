"""Binary Excel files, .xls ([MS-XLS]) and .xlsb ([MS-XLSB]). python-calamine reads the cells; other texts are read from the
records.

python-calamine allocates a sheet's whole rectangle, so its size is first computed from the records and checked. For .xlsx,
python-calamine is not used: it returns neither errors in cells nor formulas without a stored result.
"""

import io
import re
import struct
from collections.abc import Callable, Iterator

import olefile
import python_calamine
from openpyxl.utils import get_column_letter

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.office.package import OfficePackage
from consumers.parsing.formats.office.sheets import (
    add_sheet_pictures,
    cell_comment,
    cell_text,
    drawing_texts,
    margin_text,
)
from consumers.parsing.formats.office.tables import fill_sheet
from consumers.parsing.limits import Damaged, Limits, NotADocument
from consumers.parsing.office_properties import document_properties, ole_properties
from consumers.parsing.outline import Outline
from consumers.parsing.zip_archive import check_members, open_package
from consumers.splitting import ParsedText

_BOF, _EOF, _SHEET, _CONTINUE, _PASSWORD = 0x809, 0x0A, 0x85, 0x3C, 0x2F
_FORMAT, _CELL_FORMAT = 0x41E, 0xE0
_FORMULA, _NUMBER, _SHORT_NUMBER, _SHORT_NUMBERS = 0x06, 0x203, 0x27E, 0xBD
_MARGINS, _OBJECT, _OBJECT_TEXT, _NOTE, _CHART_TEXT, _VALIDATION = (0x14, 0x15), 0x5D, 0x1B6, 0x1C, 0x100D, 0x1BE
"""Types of records in .xls ([MS-XLS] 2.3)."""
_PICTURE = 8
"""Type of an object on a sheet that is a picture ([MS-XLS] 2.5.143)."""
_XLSB_SHEET, _XLSB_AUTHOR, _XLSB_COMMENT, _XLSB_COMMENT_TEXT, _XLSB_MARGINS = 156, 632, 635, 637, 479
"""Types of records in .xlsb ([MS-XLSB] 2.3)."""
_CELLS = frozenset((0x06, 0x7E, 0xBD, 0xBE, 0xD6, 0xFD, 0x201, 0x203, 0x204, 0x205, 0x27E))
_XLSB_ROW, _XLSB_LAST_CELL = 0, 11
_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
"""Numbers of the predefined date and time formats; a file may redefine them ([MS-XLS] 2.5.165)."""
_NO_DATE_LETTER = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|[_*].')
"""Parts of a number format that are no format codes: quoted text, escaped letters, colours and conditions, padding."""

Record = tuple[int, bytes]
SheetTexts = dict[str, list[str]]
"""The texts outside the cells, by sheet."""
SheetNumbers = dict[str, dict[tuple[int, int], float]]
"""The numbers that python-calamine takes for dates, by sheet and (row, column) from 0."""


class _Extent:
    """The smallest rectangle that contains all cells of a sheet. Raises TooLarge if the rectangle has too many
    cells."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.first_row = self.first_column = 1 << 32
        self.last_row = self.last_column = -1

    def add(self, row: int, column: int) -> None:
        self.first_row, self.last_row = min(row, self.first_row), max(row, self.last_row)
        self.first_column, self.last_column = min(column, self.first_column), max(column, self.last_column)
        self.limits.check_cells((self.last_row - self.first_row + 1) * (self.last_column - self.first_column + 1))


def parse_binary_sheets(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    try:
        if data.startswith(b"PK"):
            with open_package(data, limits) as archive:
                check_members(archive)
                package = OfficePackage(archive)
                metadata, title = document_properties(archive)
                outline = Outline(limits.text_chars, omissions)
                parts = _xlsb_parts(package)
                texts = {
                    name: list(_xlsb_sheet_texts(package, part, limits, omissions)) for name, part in parts.items()
                }

                def add_pictures(name: str) -> None:
                    if name in parts:
                        add_sheet_pictures(parts[name], package, outline, name)

                fill_sheets(outline, data, texts, limits, add_pictures)
                package.report_unread(omissions)
        else:
            with olefile.OleFileIO(io.BytesIO(data)) as file:
                metadata, title = ole_properties(file)
                texts, numbers = SheetTexts(), SheetNumbers()
                if file.exists("Workbook"):
                    texts, numbers = _xls_texts(file.openstream("Workbook").read(), limits, omissions)
                else:
                    _check_excel_95(file.openstream("Book").read(), limits, omissions)
            outline = Outline(limits.text_chars, omissions)
            fill_sheets(outline, data, texts, limits, numbers=numbers)
        return ParsedText(outline.done(), title, metadata, pictures=tuple(outline.pictures))
    except python_calamine.PasswordError as error:
        raise _protected() from error
    except (struct.error, OSError) as error:
        raise Damaged(f"damaged: {error}; open it in Excel and save it again") from error


def fill_sheets(
    outline: Outline,
    data: bytes,
    texts: SheetTexts,
    limits: Limits,
    add_pictures: Callable[[str], None] = lambda _: None,
    numbers: SheetNumbers | None = None,
) -> None:
    """Adds the sheets to the outline. `add_pictures(name)` adds the pictures of a sheet."""
    numbers = numbers or {}
    cells = 0
    with python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(data)) as book:
        for name in book.sheet_names:
            sheet = book.get_sheet_by_name(name)
            cells += sheet.total_height * sheet.total_width
            limits.check_cells(cells)
            known = numbers.get(name, {})
            first = 0 if sheet.start is None else sheet.start[1]  # rows begin at the first column that the sheet uses
            rows = (
                [clean_text(cell_text(known.get((at, column), value))) for column, value in enumerate(row, first)]
                for at, row in enumerate(sheet.iter_rows())
            )
            fill_sheet(outline, name, enumerate(rows, 1), texts.get(name, ()), is_only=len(book.sheet_names) == 1)
            add_pictures(name)


def _protected() -> NotADocument:
    return NotADocument("protected by a password; save it without one", FailureCode.PROTECTED)


def _xls_texts(stream: bytes, limits: Limits, omissions: Omissions) -> tuple[SheetTexts, SheetNumbers]:
    texts, numbers = SheetTexts(), SheetNumbers()
    formats: dict[int, str] = {}
    cell_formats: list[int] = []
    for kind, data in _xls_records(stream, 0):
        if kind == _PASSWORD:
            raise _protected()
        if kind == _FORMAT:
            formats[struct.unpack_from("<H", data)[0]] = _string(data, 2)[0]
        elif kind == _CELL_FORMAT:
            cell_formats.append(struct.unpack_from("<H", data, 2)[0])
        elif kind == _SHEET:
            name, _ = _short_string(data, 6)
            at = struct.unpack_from("<I", data)[0]
            texts[name] = list(_sheet_texts(stream, at, limits, omissions))
            redefined = {key for key in _DATE_FORMATS & formats.keys() if not _is_date(formats[key])}
            plain = {index for index, key in enumerate(cell_formats) if key in redefined}
            numbers[name] = dict(_numbers(stream, at, plain)) if plain else {}
    return texts, numbers


def _is_date(number_format: str) -> bool:
    return re.search("[dmyhs]", _NO_DATE_LETTER.sub("", number_format), re.IGNORECASE) is not None


def _numbers(stream: bytes, at: int, cell_formats: set[int]) -> Iterator[tuple[tuple[int, int], float]]:
    """Yields ((row, column), number) of each numeric cell with one of the formats. The sheet is at `at`."""
    for kind, data in _xls_records(stream, at):
        if kind not in (_FORMULA, _NUMBER, _SHORT_NUMBER, _SHORT_NUMBERS):
            continue
        row, column, cell_format = struct.unpack_from("<HHH", data)
        if kind == _SHORT_NUMBERS:
            for index in range((len(data) - 6) // 6):
                cell_format, short = struct.unpack_from("<HI", data, 4 + 6 * index)
                if cell_format in cell_formats:
                    yield (row, column + index), _short_number(short)
        elif cell_format not in cell_formats:
            continue
        elif kind == _SHORT_NUMBER:
            yield (row, column), _short_number(struct.unpack_from("<I", data, 6)[0])
        elif kind == _NUMBER or data[12:14] != b"\xff\xff":  # otherwise the formula's result is not a number
            yield (row, column), struct.unpack_from("<d", data, 6)[0]


def _short_number(value: int) -> float:
    """Decodes a 32-bit number ([MS-XLS] 2.5.217). Bits 2 to 31 are an integer (bit 1 set) or the upper half of a float; bit 0
    divides by 100."""
    if value & 2:
        number = float((value - (1 << 32) if value & 0x80000000 else value) >> 2)
    else:
        number = struct.unpack("<d", struct.pack("<Q", (value & 0xFFFFFFFC) << 32))[0]
    return number / 100 if value & 1 else number


def _check_excel_95(stream: bytes, limits: Limits, omissions: Omissions) -> None:
    """Checks the number of cells in a file of Excel 5 or 95, and reports the number of texts outside its cells."""
    others = 0
    for kind, data in _xls_records(stream, 0):
        if kind == _SHEET:
            extent = _Extent(limits)
            for inner, cell in _xls_records(stream, struct.unpack_from("<I", data)[0]):
                if inner in _CELLS:
                    extent.add(*struct.unpack_from("<HH", cell))
                others += inner in (*_MARGINS, _OBJECT, _NOTE, _CHART_TEXT) and bool(cell)
    omissions.add(OmissionKind.OTHER, "headers, comments, shapes and charts in the form of Excel 95", others)


def _xls_records(stream: bytes, at: int) -> Iterator[Record]:
    """Yields the records of the substream at `at` and of the charts in it."""
    depth = 0
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        yield kind, stream[at + 4 : at + 4 + size]
        at += 4 + size
        depth += (kind == _BOF) - (kind == _EOF)
        if depth <= 0:
            return


def _sheet_texts(stream: bytes, at: int, limits: Limits, omissions: Omissions) -> Iterator[str]:
    """Yields the headers, footers, comments, text boxes, chart names and prompts of the sheet at `at`."""
    boxes: dict[int, str] = {}
    extent = _Extent(limits)
    number, left = 0, 0
    for kind, data in _xls_records(stream, at):
        if kind in _CELLS:
            extent.add(*struct.unpack_from("<HH", data))
        elif kind in _MARGINS and data:
            yield from margin_text(_string(data, 0)[0], omissions)
        elif kind == _OBJECT and len(data) >= 8:
            kind_of_object, number = struct.unpack_from("<HH", data, 4)
            omissions.add(OmissionKind.PICTURE, count=int(kind_of_object == _PICTURE))
        elif kind == _OBJECT_TEXT:
            boxes[number], left = "", struct.unpack_from("<H", data, 10)[0]
        elif kind == _CONTINUE and left and data:
            text = _characters(data[0], data[1:], left)
            boxes[number] += text
            left -= len(text)
        elif kind == _CHART_TEXT:
            yield _short_string(data, 2)[0]
        elif kind == _VALIDATION:
            place = 4
            for _ in range(4):
                text, place = _string(data, place)
                yield text.strip("\0")
        elif kind == _NOTE:
            row, column, _, box = struct.unpack_from("<HHHH", data)
            yield cell_comment(_cell_name(row, column), _string(data, 8)[0], boxes.pop(box, ""))
    yield from boxes.values()


def _string(data: bytes, at: int) -> tuple[str, int]:
    """Returns the string with a 16-bit length at `at`, and the position after it."""
    count, flags = struct.unpack_from("<HB", data, at)
    return _characters(flags, data[at + 3 :], count), at + 3 + count * (1 + (flags & 1))


def _short_string(data: bytes, at: int) -> tuple[str, int]:
    """Returns the string with an 8-bit length at `at`, and the position after it."""
    count, flags = struct.unpack_from("<BB", data, at)
    return _characters(flags, data[at + 2 :], count), at + 2 + count * (1 + (flags & 1))


def _characters(flags: int, data: bytes, count: int) -> str:
    return data[: 2 * count].decode("utf-16-le", "replace") if flags & 1 else data[:count].decode("latin-1")


def _xlsb_parts(package: OfficePackage) -> dict[str, str]:
    """Maps the names of the sheets to the names of their parts."""
    parts: dict[str, str] = {}
    main = package.main_part()
    for kind, data in _xlsb_records(package.data(main) or b""):
        if kind == _XLSB_SHEET:
            relation_id, at = _wide_string(data, 8)
            name, _ = _wide_string(data, at)
            relation = package.relations(main).get(relation_id)
            if relation is not None and not relation.external:
                parts[name] = relation.target
    return parts


def _xlsb_sheet_texts(package: OfficePackage, part: str, limits: Limits, omissions: Omissions) -> Iterator[str]:
    extent, row = _Extent(limits), 0
    for kind, data in _xlsb_records(package.data(part) or b""):
        if kind == _XLSB_ROW:
            row = struct.unpack_from("<I", data)[0]
        elif kind <= _XLSB_LAST_CELL:
            extent.add(row, struct.unpack_from("<I", data)[0])
        elif kind == _XLSB_MARGINS:
            at = 2
            for _ in range(6):
                text, at = _wide_string(data, at)
                yield from margin_text(text, omissions)
    for comments in package.related(part, "comments"):
        authors: list[str] = []
        place, author = "", 0
        for kind, data in _xlsb_records(package.data(comments) or b""):
            if kind == _XLSB_AUTHOR:
                authors.append(_wide_string(data, 0)[0])
            elif kind == _XLSB_COMMENT:
                author, row, _, column = struct.unpack_from("<IIII", data)
                place = _cell_name(row, column)
            elif kind == _XLSB_COMMENT_TEXT:
                name = authors[author] if author < len(authors) else ""
                yield cell_comment(place, name, _wide_string(data, 1)[0])
    yield from drawing_texts(part, package)


def _xlsb_records(data: bytes) -> Iterator[Record]:
    at = 0
    while at < len(data):
        kind, at = _variable_number(data, at, 2)
        size, at = _variable_number(data, at, 4)
        yield kind, data[at : at + size]
        at += size


def _variable_number(data: bytes, at: int, max_bytes: int) -> tuple[int, int]:
    """Decodes the number at `at`, which has 7 bits per byte. Returns the number and the position after it."""
    number = 0
    for place in range(max_bytes):
        byte = data[at + place] if at + place < len(data) else 0
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return number, at + place + 1
    return number, at + max_bytes


def _wide_string(data: bytes, at: int) -> tuple[str, int]:
    (count,) = struct.unpack_from("<I", data, at)
    if count == 0xFFFFFFFF:
        return "", at + 4
    return data[at + 4 : at + 4 + 2 * count].decode("utf-16-le", "replace"), at + 4 + 2 * count


def _cell_name(row: int, column: int) -> str:
    return f"{get_column_letter(column + 1)}{row + 1}"
