"""Classifies the lines of a passage: prose, headings, or records of named values."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from memory.openie.rules.code_lines import is_code

_BULLET = re.compile(r"(?:[-*+•‣▪◦–—]|\(?\d{1,3}[.)]|\[[ xX]\])\s+")
_HEADING = re.compile(r"#{1,6}\s+")
_RULE = re.compile(r"[-=_*|:+ ]{3,}$")
_MARKS = re.compile(r"\*\*|__|`(?!`)|~~|<[^<>\n]{1,200}>")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,200})\]\([^()\n]{0,500}\)")
_LABEL = re.compile(r"\s*(?:[A-Z][A-Z_0-9]{2,30}(?: {2,}|\t\s*)(?=[A-Za-z])|E[A-Z0-9]{3,10} (?=[A-Za-z]))")
"""The label before the text of a definition: "EPERM    The file is closed"."""
_PREPOSITIONS = frozenset({"in", "on", "at", "for", "with", "from", "under", "after", "before", "to", "if", "when"})
_NO_COLUMN = '.,;"“<>→›'
"""Characters that no column's name contains."""
_NO_KEY = f"{_NO_COLUMN}()"
_SHORT = 60
"""A line with fewer characters and no punctuation at its end was not wrapped."""
_LONG_LINE = 20_000
"""Longer lines are prose."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of text that no sentence crosses. Kinds: "prose" and "heading" (with `text`); "record", "row" and "table row"
    (with `fields`).

    A record consists of consecutive "key: value" lines. A row consists of the fields of one line; its first field names the
    subject. A field is (name, value); the name is "" if the table has none.
    """

    kind: str
    text: str = ""
    fields: tuple[tuple[str, str], ...] = ()


def line_blocks(text: str) -> list[Block]:
    found: list[Block] = []
    prose: list[str] = []
    pairs: list[tuple[str, str]] = []
    header: tuple[str, ...] = ()

    def flush() -> None:
        nonlocal header
        if pairs:
            found.append(Block("record", fields=tuple(pairs)))
            pairs.clear()
        if prose:
            found.append(Block("prose", " ".join(prose).replace("\u2010 ", "").replace("\xad ", "")))
            prose.clear()
        header = ()

    for whole in text.splitlines():
        label = _LABEL.match(whole)
        raw = whole[label.end() :] if label else whole
        line = _plain(raw.strip())
        if not line:
            flush()
        elif len(line) > _LONG_LINE:
            flush()
            found.append(Block("prose", line))
        elif _RULE.match(line):
            continue
        elif heading := _HEADING.match(line):
            flush()
            found.append(Block("heading", line[heading.end() :].strip("# ")))
        elif line[0] == "|" and line.count("|") > 1:
            cells = tuple(cell.strip() for cell in line[1:].removesuffix("|").split("|"))
            if not header:
                flush()
                # A line of a drawing has no letters: "|^2...|".
                header = cells if any(map(str.isalpha, line)) else ()
            elif fields := tuple((k, v) for k, v in zip(header, cells, strict=False) if v):
                found.append(Block("table row", fields=fields))
        elif row := _row(line):
            flush()
            found.append(Block("row", fields=row))
        elif is_code(raw.strip(), bool(prose)):
            flush()
        else:
            _take(line, prose, pairs, flush)
    flush()
    return found


def _take(line: str, prose: list[str], pairs: list[tuple[str, str]], flush: Callable[[], None]) -> None:
    """Adds a line to the current record or prose."""
    bullet = _BULLET.match(line)
    item = line[bullet.end() :] if bullet else line
    pair = _pair(item)
    if pair:
        if prose or (bullet and not pairs):
            flush()
        pairs.append(pair)
        return
    wrapped = prose and not (len(prose[-1]) < _SHORT and prose[-1][-1].isalnum() and item[:1].isupper())
    if bullet or pairs or not wrapped:
        flush()
    if item:
        prose.append(item)


def _plain(line: str) -> str:
    """Returns the line without Markdown's marks for emphasis, code, links and quotations, and without HTML tags."""
    line = line.lstrip("> ") if line.startswith(">") else line
    if len(line) > _LONG_LINE:
        return line
    if "](" in line:
        line = _LINK.sub(r"\1", line)
    if "*" in line or "_" in line or "`" in line or "~" in line or "<" in line:
        line = _MARKS.sub("", line)
    return line.strip()


def _row(line: str) -> tuple[tuple[str, str], ...]:
    """Returns the fields of "column: value; column: value"; none for any other line."""
    if ": " not in line or "; " not in line:
        return ()
    parts = line.split("; ")
    pairs = [_pair(part, _NO_COLUMN) for part in parts]
    named = [pair for pair in pairs if pair]
    if len(named) < 2 or len(named) * 2 < len(parts):
        return ()
    return tuple(pair or ("", part.strip()) for pair, part in zip(pairs, parts, strict=True) if pair or part.strip())


def _pair(line: str, barred: str = _NO_KEY) -> tuple[str, str] | None:
    """Returns key and value of "key: value" if the key is a name and not a clause. A key has no character of `barred`."""
    key, colon, _ = line[:64].partition(": ")
    if not colon:
        return None
    value = line[len(key) + 2 :].strip()
    words = key.split()
    if len(words) > 1 and words[0].lower() in _PREPOSITIONS:
        return None  # "On a phone: go to Help"
    if not value or not words or len(words) > 4 or any(mark in key for mark in barred) or not words[0][0].isalnum():
        return None
    if (value[-1] in ".!?" and value.count(" ") > 5) or value[0] in '"“«' or (value[0] == "'" and value.endswith("',")):
        # 'Ann Lee said: "We sold it."'
        return None
    if value.count(": ") > 1:
        return None  # keys of a screen: "q: Quit  u: Update  g: Install"
    return key.strip(), value
