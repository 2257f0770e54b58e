"""Jupyter notebooks: Markdown and code. Printed outputs (data, pictures and logs) are left out."""

import json
import re
from collections.abc import Iterator
from typing import Any

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text, decode
from consumers.parsing.formats.markup.markdown import read_markdown
from consumers.parsing.limits import Damaged, Limits, WrongKind
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText

_READ_PROPERTIES = frozenset(("kernelspec", "language_info", "title", "authors"))
_TAG = re.compile(r"<[^<>]*>|\x1b\[[\d;]*m")
_MAX_DEPTH = 8


def parse_notebook(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    try:
        book = json.loads(decode(data))
    except (ValueError, RecursionError) as error:
        raise Damaged(f"not a notebook: it is not JSON ({error}); save it again") from error
    cells = _cells(book)
    if cells is None:
        raise WrongKind("not a Jupyter notebook: it has no cells; exclude it")
    outline = Outline(limits.text_chars, omissions)
    for cell in cells:
        if not isinstance(cell, dict):
            continue
        text = _source(cell.get("source", cell.get("input")))
        match cell.get("cell_type"):
            case "markdown":
                read_markdown(text, outline, lines=False)
            case "heading":  # in notebooks before format 4
                level = cell.get("level")
                outline.heading(level if isinstance(level, int) else 1, text)
            case _:
                outline.text(text)
        _report_cell(cell, omissions)
    stated = book.get("metadata")
    stated = stated if isinstance(stated, dict) else {}
    title = " ".join(_source(stated.get("title")).split())
    metadata = _language(stated)
    if authors := "; ".join(_strings(stated.get("authors"))):
        metadata["author"] = authors[:1000]
    for text in _strings([value for key, value in stated.items() if key not in _READ_PROPERTIES]):
        omissions.add(OmissionKind.METADATA, text)
    return outline.document(title, metadata)


def _report_cell(cell: dict[str, Any], omissions: Omissions) -> None:
    outputs, attachments = cell.get("outputs"), cell.get("attachments")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, dict):
            omissions.add(OmissionKind.OUTPUT, _output(output))
    for name in attachments if isinstance(attachments, dict) else ():
        omissions.add(OmissionKind.PICTURE, clean_text(name))
    for text in _strings(cell.get("metadata")):
        omissions.add(OmissionKind.METADATA, text)


def _output(output: dict[str, Any]) -> str:
    """Returns the printed text, as plain text if there are several versions; for a picture, its MIME type."""
    stated = output.get("data")
    data: dict[str, Any] = stated if isinstance(stated, dict) else {}
    texts = sorted(kind for kind in data if kind.startswith("text/"))
    printed = data[texts[-1]] if texts else " ".join(data)
    parts = (output.get("text"), printed, output.get("ename"), output.get("evalue"), output.get("traceback"))
    return _TAG.sub(" ", " ".join(map(_source, parts)))


def _cells(book: Any) -> list[Any] | None:
    """Returns the list of cells, or None. Formats before 4 keep the cells in worksheets."""
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
    """Returns a cell's text, which is a string or a list of lines."""
    if isinstance(value, list):
        value = "".join(line for line in value if isinstance(line, str))
    return clean_text(value) if isinstance(value, str) else ""


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    """Yields the strings in a value, including nested lists and objects."""
    if isinstance(value, str):
        yield clean_text(value)
    elif isinstance(value, list | dict) and depth < _MAX_DEPTH:
        for each in value if isinstance(value, list) else value.values():
            yield from _strings(each, depth + 1)


def _language(metadata: dict[str, Any]) -> dict[str, str]:
    for key in ("kernelspec", "language_info"):
        stated = metadata.get(key)
        name = stated.get("language") or stated.get("name") if isinstance(stated, dict) else None
        if isinstance(name, str):
            return {"language": clean_text(name)[:40]}
    return {}
