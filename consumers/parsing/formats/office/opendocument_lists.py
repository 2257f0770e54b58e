"""The labels of OpenDocument's list items (OASIS, version 1.3, part 3, 5.3)."""

from typing import Any

from consumers.parsing.formats.office.numbering import letters, roman
from consumers.parsing.formats.office.opendocument_text import STYLE, TEXT
from consumers.parsing.formats.office.package import whole_number

Element = Any


class ListLabels:
    """Counts the items of lists, in document order. `styles` are the list styles by name."""

    def __init__(self, styles: dict[str, Element]) -> None:
        self._styles = styles
        self._counters: dict[tuple[str, int], int] = {}

    def begin(self, node: Element, style: str, level: int) -> None:
        """Begins a list. The list continues the numbers of an earlier list only if it declares so."""
        if node.get(f"{TEXT}continue-numbering") != "true" and node.get(f"{TEXT}continue-list") is None:
            self._counters.pop((style, level), None)

    def next(self, item: Element, style: str, level: int) -> str:
        """Returns the label of an item, followed by a space; "" for a list without labels."""
        key = (style, level)
        if (stated := whole_number(item.get(f"{TEXT}start-value"), -1)) >= 0:
            self._counters[key] = stated - 1
        rules = self._styles.get(style)
        at = {} if rules is None else {each.get(f"{TEXT}level"): each for each in rules}
        rule = at.get(str(level))
        if rule is None or rule.tag != f"{TEXT}list-level-style-number":
            return "- "
        start = whole_number(rule.get(f"{TEXT}start-value"), 1)
        self._counters[key] = self._counters[key] + 1 if key in self._counters else start
        first = level - whole_number(rule.get(f"{TEXT}display-levels"), 1) + 1
        numbers = []
        for each in range(max(first, 1), level + 1):
            above = at.get(str(each))
            if above is not None and above.tag == rule.tag:
                numbers.append(_formatted(above.get(f"{STYLE}num-format") or "", self._counters.get((style, each), 1)))
        number = ".".join(filter(None, numbers))
        label = f"{rule.get(f'{STYLE}num-prefix') or ''}{number}{rule.get(f'{STYLE}num-suffix') or ''}".strip()
        return f"{label} " if label else ""


def list_styles(*roots: Element | None) -> dict[str, Element]:
    return {
        node.get(f"{STYLE}name") or "": node
        for root in roots
        if root is not None
        for node in root.iter(f"{TEXT}list-style")
    }


def _formatted(name: str, number: int) -> str:
    shown = {"": "", "a": letters(number), "i": roman(number)}.get(name.lower(), str(number))
    return shown.upper() if name.isupper() else shown
