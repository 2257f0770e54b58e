"""CSV and TSV: one block per row, each value with its column's name."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal, NamedTuple

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import decode
from consumers.parsing.limits import Damaged, Limits, TooLarge
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import named_rows
from consumers.splitting import ParsedText

_SAMPLE = 1 << 16
_DELIMITERS = ",;\t|"
_SEPARATOR_LINE = re.compile(r"\"?sep=([^\n\"])\"?[ \t]*\n", re.IGNORECASE)
"""A line above a table with which Excel declares the delimiter. This line is not a row."""


class _Dialect(NamedTuple):
    delimiter: str
    quoting: Literal[0, 3]


def parse_csv(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    text = decode(data)
    stated = _SEPARATOR_LINE.match(text)
    if stated:
        text = text[stated.end() :]
    dialect = _dialect(text[:_SAMPLE], stated[1] if stated else _DELIMITERS)
    csv.field_size_limit(limits.line_chars)
    outline = Outline(limits.text_chars, omissions)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=dialect.delimiter, quoting=dialect.quoting)
    try:
        skipped = bool(stated)
        for (line, number), text in named_rows(_rows(reader, limits, omissions)):
            outline.text(text, "\n", line=line + skipped, row=number + skipped)
    except csv.Error as error:
        raise Damaged(f"not a table that can be read: line {reader.line_num}: {error}; check its quotes") from error
    return ParsedText(outline.done())


def _rows(reader: Any, limits: Limits, omissions: Omissions) -> Iterator[tuple[tuple[int, int], list[str]]]:
    """Yields the rows with line and row number, up to `limits.cells`. Raises NotADocument for a row with too many columns."""
    cells = 0
    for number, row in enumerate(reader, 1):
        if len(row) > limits.columns:
            raise TooLarge(
                f"row {number} has {len(row):,} columns, more than the {limits.columns:,} of a table meant to be read; "
                "exclude it, or keep fewer columns"
            )
        cells += len(row)
        if cells > limits.cells:
            omissions.add(OmissionKind.TOO_LARGE, f"rows after row {number - 1:,}")
            return
        yield (reader.line_num, number), row


def _dialect(sample: str, delimiters: str) -> _Dialect:
    """Returns the delimiter and quoting with which the largest share of the first rows has the same width. If shares are equal,
    the larger width wins.

    `csv.Sniffer` is not used because it can take quadratic time. If quoting would join rows, quotes count as part of the values
    (5" bolts).
    """

    def fit(dialect: _Dialect) -> tuple[float, int, int, int]:
        source = io.StringIO(sample, newline="")
        try:
            rows = list(islice(csv.reader(source, delimiter=dialect.delimiter, quoting=dialect.quoting), 20))
        except csv.Error:
            return 0.0, 0, 0, 0
        widths = Counter(len(row) for row in rows if row)
        usual, seen = widths.most_common(1)[0] if widths else (0, 0)
        quoted = int(dialect.quoting != csv.QUOTE_NONE)
        return (seen / widths.total(), usual, len(rows), quoted) if usual > 1 else (0.0, 0, 0, quoted)

    quotings: tuple[Literal[0, 3], ...] = (csv.QUOTE_MINIMAL, csv.QUOTE_NONE) if '"' in sample else (csv.QUOTE_MINIMAL,)
    return max((_Dialect(mark, quoting) for mark in delimiters for quoting in quotings), key=fit)
