"""Computes the labels of Word's numbered paragraphs ("2.1", "a)", "IV."). A file stores only the rules (ECMA-376 part 1,
17.9)."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from consumers.parsing.formats.office.package import whole_number

Element = Any
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PLACE = re.compile(r"%([1-9])")
_LEVELS = 9
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
          (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
BULLET = "- "


@dataclass(slots=True)
class _Level:
    format: str = "decimal"
    text: str = ""
    start: int = 1
    legal: bool = False
    restart: int | None = None
    """The counter restarts after a paragraph of this level (from 1) or a higher one; 0: never; None: after any higher level."""


@dataclass(slots=True)
class _List:
    """One list of the document. `abstract` is its abstract definition. Lists with the same definition share its counters."""

    abstract: str
    levels: dict[int, _Level]
    restarts: dict[int, int] = field(default_factory=dict)


class Numbering:
    """Counts the numbered paragraphs of a document, in document order."""

    def __init__(self, root: Element | None) -> None:
        self._lists: dict[str, _List] = {}
        self._styles: dict[str, tuple[str, int]] = {}
        self._counters: dict[str, list[int | None]] = {}
        if root is not None:
            self._read(root)

    def label(self, list_id: str, level: int) -> str:
        """Returns the label of the next paragraph of a list, followed by a space; "" for a list without labels."""
        found = self._lists.get(list_id)
        if found is None or not 0 <= level < _LEVELS:
            return ""
        rules = found.levels.get(level, _Level())
        counters = self._counters.setdefault(found.abstract, [None] * _LEVELS)
        for restarted, start in list(found.restarts.items()):
            if restarted <= level:
                counters[restarted] = start - 1
                del found.restarts[restarted]
        counter = counters[level]
        counters[level] = rules.start if counter is None else counter + 1
        for below in range(level + 1, _LEVELS):
            restart = found.levels[below].restart if below in found.levels else None
            if restart is None or (restart > 0 and level < restart):
                counters[below] = None
        if rules.format == "bullet":
            return BULLET
        if rules.format == "none" and not rules.text.strip():
            return ""

        def counted(place: re.Match[str]) -> str:
            at = int(place[1]) - 1
            each = found.levels.get(at, _Level())
            count = counters[at]
            return _FORMATS.get("decimal" if rules.legal else each.format, str)(each.start if count is None else count)

        label = _PLACE.sub(counted, rules.text).strip()
        return f"{label} " if label else ""

    def of_style(self, style: str) -> tuple[str, int] | None:
        """Returns (list, level) that a list definition links to a paragraph style, or None."""
        return self._styles.get(style)

    def _read(self, root: Element) -> None:
        abstract = {node.get(f"{W}abstractNumId") or "": node for node in root.iterchildren(f"{W}abstractNum")}
        by_link = {value_of(node, "styleLink"): key for key, node in abstract.items() if value_of(node, "styleLink")}
        for node in root.iterchildren(f"{W}num"):
            list_id, key = node.get(f"{W}numId") or "", value_of(node, "abstractNumId")
            definition = abstract.get(key)
            if definition is not None and (link := value_of(definition, "numStyleLink")) in by_link:
                key = by_link[link]
                definition = abstract[key]
            found = _List(key, {} if definition is None else dict(_levels(definition)))
            for override in node.iterchildren(f"{W}lvlOverride"):
                level = whole_number(override.get(f"{W}ilvl"), 0)
                found.levels.update(_levels(override))
                if start := value_of(override, "startOverride"):
                    found.restarts[level] = whole_number(start, 1)
            self._lists[list_id] = found
            if definition is not None:
                for level_node in definition.iterchildren(f"{W}lvl"):
                    if style := value_of(level_node, "pStyle"):
                        self._styles.setdefault(style, (list_id, whole_number(level_node.get(f"{W}ilvl"), 0)))


def _levels(node: Element) -> Iterator[tuple[int, _Level]]:
    for each in node.iterchildren(f"{W}lvl"):
        legal = each.find(f"{W}isLgl")
        restart = value_of(each, "lvlRestart")
        yield (
            whole_number(each.get(f"{W}ilvl")),
            _Level(
                value_of(each, "numFmt") or "decimal",
                value_of(each, "lvlText"),
                whole_number(value_of(each, "start")),
                legal is not None and legal.get(f"{W}val") not in ("0", "false"),
                whole_number(restart) if restart else None,
            ),
        )


def value_of(node: Element | None, name: str) -> str:
    """Returns the value of a property below an element, or ""."""
    child = None if node is None else node.find(f"{W}{name}")
    return "" if child is None else (child.get(f"{W}val") or "")


def letters(number: int) -> str:
    """Returns the number as letters: a … z, aa … zz, aaa …; the letter is repeated."""
    if not 0 < number < 1000:
        return str(number)
    return chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)


def roman(number: int) -> str:
    if not 0 < number < 4000:
        return str(number)
    text = ""
    for value, sign in _ROMAN:
        text += sign * (number // value)
        number %= value
    return text


_FORMATS: dict[str, Callable[[int], str]] = {
    "lowerLetter": letters,
    "upperLetter": lambda number: letters(number).upper(),
    "lowerRoman": roman,
    "upperRoman": lambda number: roman(number).upper(),
    "decimalZero": lambda number: f"{number:02}",
    "none": lambda _: "",
}
