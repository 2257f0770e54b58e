"""RTF by striprtf: its text; control words are not kept."""

import re

from striprtf.striprtf import rtf_to_text

from consumers.failure_codes import FailureCode
from consumers.omissions import Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.limits import Limits, NotADocument
from consumers.parsing.office_properties import sensible_title
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import is_header, row_text
from consumers.splitting import ParsedText, paragraphs

_INFO = re.compile(r"\{\\(title|author|subject|keywords) ((?:[^{}\\]|\\'..|\\u-?\d+ ?\??)*)\}")
_INFO_WITHIN = 1 << 16
_BINARY = re.compile(r"\\bin(\d{1,9}) ?")
_HEX = re.compile(r"[0-9a-fA-F\s]{400,}")
"""Pictures."""
_ROW = re.compile(r"[^\n|]*\|[^\n]*\|[ \t]*\Z")


def parse_rtf(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    source = _without_binary(data.decode("latin-1"))
    if len(source) > 8 * limits.text_chars:
        raise NotADocument(
            f"{len(source):,} characters of RTF, more than {8 * limits.text_chars:,}; split it up",
            FailureCode.TOO_LARGE,
        )
    found = {name: _plain(f"{{\\rtf1 {value}}}") for name, value in _INFO.findall(source[:_INFO_WITHIN])}
    outline = Outline(limits.text_chars, omissions)
    for block in paragraphs(_plain(source)):
        _fill(outline, block.text)
    title = sensible_title(found.pop("title", ""))
    return ParsedText(outline.done(), title, {name: value[:1000] for name, value in found.items() if value})


def _plain(source: str) -> str:
    return clean_text(rtf_to_text(source, encoding="cp1252", errors="replace")).strip()


def _without_binary(source: str) -> str:
    """Without what `\\bin` announces as raw bytes, in which no control word is meant."""
    parts = []
    start = 0
    while (match := _BINARY.search(source, start)) is not None:
        parts.append(source[start : match.start()])
        start = match.end() + int(match[1])
    parts.append(source[start:])
    return _HEX.sub(" ", "".join(parts))


def _fill(outline: Outline, text: str) -> None:
    """A block's lines; those that striprtf wrote with bars between their cells are a table's rows."""
    header: list[str] = []
    row = 0
    held: list[str] = []
    for line in text.split("\n"):
        if not _ROW.fullmatch(line):
            held.append(line)
            row, header = 0, []
            continue
        outline.text("\n".join(held))
        held = []
        cells = [cell.strip() for cell in line.strip().removesuffix("|").split("|")]
        if row == 0 and is_header(cells):
            header, row = cells, 1
            continue
        row += 1
        outline.text(row_text(header, cells), "\n\n" if row <= 2 else "\n", row=row)
    if row == 1 and header:
        outline.text("; ".join(header))
    outline.text("\n".join(held))
