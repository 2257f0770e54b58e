"""Jupyter notebooks: the places are cited by headings of "The Notebook file format" (nbformat 4.5, and 3 for old cells)."""

import json
from typing import Any

from tests.consumers.parsing.conservation.places import FormatTable, Words

CELLS: dict[str, tuple[str, Any]] = {
    "text": ("Markdown cells", {"cell_type": "markdown", "source": ["# Weir\n", "The WORD stands."]}),
    "comment in a text": ("Markdown cells", {"cell_type": "markdown", "source": "<!-- WORD -->"}),
    "attachment": ("Cell attachments", {"cell_type": "markdown", "source": "a", "attachments": {"WORD.png": {}}}),
    "code": ("Code cells", {"cell_type": "code", "source": "WORD = 1", "outputs": []}),
    "comment in code": ("Code cells", {"cell_type": "code", "source": ["a = 1  # WORD"], "outputs": []}),
    "raw": ("Raw NBConvert cells", {"cell_type": "raw", "source": "WORD"}),
    "printed": ("stream output", {"output_type": "stream", "name": "stdout", "text": ["a\n", "the WORD\n"]}),
    "value": ("execute_result", {"output_type": "execute_result", "data": {"text/plain": "'WORD'"}}),
    "page": ("display_data", {"output_type": "display_data", "data": {"text/html": ["<b>WORD</b>"]}}),
    "kind of a picture": ("display_data", {"output_type": "display_data", "data": {"image/WORD": "aWFh"}}),
    "error": ("error", {"output_type": "error", "ename": "E", "evalue": "no WORD", "traceback": []}),
    "traceback": ("error", {"output_type": "error", "ename": "E", "evalue": "", "traceback": ["in WORD"]}),
    "old output": ("nbformat 3", {"output_type": "pyout", "text": ["the WORD"]}),
    "old heading": ("nbformat 3", {"cell_type": "heading", "level": 2, "source": "WORD"}),
    "old code": ("nbformat 3", {"cell_type": "code", "input": "WORD = 1", "outputs": []}),
    "unknown cell": ("Cell types", {"cell_type": "sql", "source": "SELECT WORD"}),
    "name of a cell": ("Cell metadata", {"cell_type": "raw", "source": "a", "metadata": {"name": "the WORD"}}),
    "tag of a cell": ("Cell metadata", {"cell_type": "raw", "source": "a", "metadata": {"tags": ["WORD"]}}),
}  # fmt: skip
OTHERS = {"title": "Metadata", "author": "Metadata", "other property": "Metadata"}


def write(given: Words) -> bytes:
    cells: list[Any] = [{"cell_type": "markdown", "source": "The mill stands."}]
    for place, (_, markup) in CELLS.items():
        if place in given:
            cell = json.loads(json.dumps(markup).replace("WORD", given[place]))
            is_output = "output_type" in cell
            cells.append({"cell_type": "code", "source": "a", "outputs": [cell]} if is_output else cell)
    metadata: dict[str, Any] = {"kernelspec": {"language": "python"}}
    for place, key, value in (
        ("title", "title", "The WORD"),
        ("author", "authors", [{"name": "Ann WORD"}]),
        ("other property", "mill", {"a": "the WORD"}),
    ):  # fmt: skip
        if place in given:
            metadata[key] = json.loads(json.dumps(value).replace("WORD", given[place]))
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4}).encode()


TABLE = FormatTable(
    "book.ipynb", "nbformat 4.5", {place: section for place, (section, _) in CELLS.items()} | OTHERS, write
)
