"""Jupyter notebooks: their Markdown and their code. What the code printed is left out: it is data, pictures and logs."""

import json
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.omissions import Omissions
from consumers.parsing.decoding import clean_text, decode
from consumers.parsing.formats.markup.markdown import read_markdown
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText


def parse_notebook(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    try:
        book = json.loads(decode(data))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not a notebook: it is not JSON ({error}); save it again", FailureCode.DAMAGED) from error
    cells = _cells(book)
    if cells is None:
        raise NotADocument("not a Jupyter notebook: it has no cells; exclude it", FailureCode.NOT_A_DOCUMENT)
    outline = Outline(limits.text_chars, omissions)
    for cell in cells:
        if not isinstance(cell, dict):
            continue
        text = _source(cell.get("source", cell.get("input")))
        match cell.get("cell_type"):
            case "markdown":
                read_markdown(text, outline, lines=False)
            case "heading":  # of notebooks before format 4
                level = cell.get("level")
                outline.heading(level if isinstance(level, int) else 1, text)
            case "code" | "raw":
                outline.text(text)
    metadata = book.get("metadata")
    return ParsedText(outline.done(), outline.first_heading, _language(metadata if isinstance(metadata, dict) else {}))


def _cells(book: Any) -> list[Any] | None:
    """The cells; None where there is no list of them. Before format 4 they stood in sheets."""
    if not isinstance(book, dict):
        return None
    cells = book.get("cells")
    if isinstance(cells, list):
        return cells
    sheets = book.get("worksheets")
    if not isinstance(sheets, list):
        return None
    found: list[Any] = []
    for sheet in sheets:
        if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list):
            found += sheet["cells"]
    return found


def _source(value: Any) -> str:
    """A cell's text: a string, or a list of its lines."""
    if isinstance(value, list):
        value = "".join(line for line in value if isinstance(line, str))
    return clean_text(value) if isinstance(value, str) else ""


def _language(metadata: dict[str, Any]) -> dict[str, str]:
    for key in ("kernelspec", "language_info"):
        stated = metadata.get(key)
        name = stated.get("language") or stated.get("name") if isinstance(stated, dict) else None
        if isinstance(name, str):
            return {"language": clean_text(name)[:40]}
    return {}
