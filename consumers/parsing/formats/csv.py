"""CSV and TSV: one row a block, each value named by its column."""

import csv
import io
from collections import Counter
from itertools import islice

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import decode
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import is_header, row_text
from consumers.splitting import ParsedText, TextBlock

_SAMPLE = 1 << 16
_DELIMITERS = ",;\t|"


def parse_csv(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    text = decode(data)
    delimiter = _delimiter(text[:_SAMPLE])
    csv.field_size_limit(limits.line_chars)
    outline = Outline(limits.text_chars, omissions)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    header: list[str] | None = None
    cells = 0
    try:
        for number, row in enumerate(reader, 1):
            if len(row) > limits.columns:
                raise NotADocument(
                    f"row {number} has {len(row):,} columns, more than the {limits.columns:,} of a table meant to be read; "
                    "exclude it, or keep fewer columns",
                    FailureCode.TOO_LARGE,
                )
            cells += len(row)
            if cells > limits.cells:
                omissions.add(OmissionKind.TOO_LARGE, f"rows after row {number - 1:,}")
                break
            if header is None and any(cell.strip() for cell in row):
                header = row if is_header(row) else []
                if header:
                    continue
            outline.text(row_text(header or [], row), "\n", line=reader.line_num, row=number)
    except csv.Error as error:
        raise Unreadable(
            f"not a table that can be read: line {reader.line_num}: {error}; check its quotes", FailureCode.DAMAGED
        ) from error
    return ParsedText(outline.done() or _lone_header(header, limits, omissions))


def _lone_header(header: list[str] | None, limits: Limits, omissions: Omissions) -> tuple[TextBlock, ...]:
    outline = Outline(limits.text_chars, omissions)
    outline.text("; ".join(header or []), row=1, line=1)
    return outline.done()


def _delimiter(sample: str) -> str:
    """The one that makes the first rows equally wide, and widest. `csv.Sniffer` can take quadratic time."""

    def width(mark: str) -> tuple[float, int]:
        try:
            rows = list(islice(csv.reader(io.StringIO(sample, newline=""), delimiter=mark), 20))
        except csv.Error:
            return 0.0, 0
        widths = Counter(len(row) for row in rows if row)
        usual, seen = widths.most_common(1)[0] if widths else (0, 0)
        return (seen / widths.total(), usual) if usual > 1 else (0.0, 0)

    return max(_DELIMITERS, key=width)
