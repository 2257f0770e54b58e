"""The words, list labels and rows of OpenDocument's elements (OASIS, version 1.3, part 3)."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.office.numbering import letters, roman
from consumers.parsing.formats.office.package import whole_number
from consumers.parsing.limits import Limits
from consumers.parsing.spanned_tables import MAX_COLUMNS, Cell, span

Element = Any
_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
TEXT, TABLE, OFFICE, DRAW, PRESENTATION, STYLE, FORM, META, SVG = (
    f"{{{_NAMESPACE.format(name)}}}"
    for name in ("text", "table", "office", "drawing", "presentation", "style", "form", "meta", "svg-compatible")
)
DC = "{http://purl.org/dc/elements/1.1/}"
XLINK = "{http://www.w3.org/1999/xlink}"
MATH = "{http://www.w3.org/1998/Math/MathML}"
_BREAKS = {f"{TEXT}s": " ", f"{TEXT}tab": "\t", f"{TEXT}line-break": "\n"}
NO_TEXT = frozenset(
    (
        f"{TEXT}sequence-decls", f"{TEXT}variable-decls", f"{TEXT}user-field-decls", f"{OFFICE}automatic-styles",
        f"{OFFICE}scripts", f"{OFFICE}font-face-decls", f"{TEXT}note-citation", f"{OFFICE}event-listeners",
        f"{TABLE}calculation-settings", f"{TABLE}named-expressions", f"{DRAW}layer-set", f"{OFFICE}settings",
        f"{TABLE}database-ranges",
    )
)  # fmt: skip
_BLOCKS = frozenset((f"{TEXT}p", f"{TEXT}h", f"{TEXT}list", f"{TABLE}table"))
_CAN_BE_HIDDEN = tuple(
    f"{TEXT}{name}" for name in ("p", "h", "span", "section", "hidden-text", "hidden-paragraph", "conditional-text")
)
_CONDITIONAL = ("string-value", "string-value-if-true", "string-value-if-false")
_MAX_STYLE_DEPTH = 20
_MAX_SPACES = 80
_MAX_REPEATED = 1000
"""Maximum number of copies of a filled cell or row."""
_MAX_COLUMNS = 16_384
"""Number of columns of a sheet in LibreOffice."""
_VALUES = ("string-value", "value", "date-value", "time-value", "boolean-value")


def add_words(node: Element, parts: list[str], trailing: list[Element]) -> None:
    """Appends the text of a paragraph to `parts`, and its notes, comments and frames to `trailing`."""
    parts.append(node.text or "")
    for child in node:
        tag = child.tag
        if tag in _BREAKS:
            parts.append(_BREAKS[tag] * min(whole_number(child.get(f"{TEXT}c"), 1), _MAX_SPACES))
        elif tag == f"{TEXT}note":
            trailing += child.iterchildren(f"{TEXT}note-body")
        elif tag == f"{OFFICE}annotation" or tag in _BLOCKS or str(tag).startswith(DRAW):
            if tag == f"{DRAW}a":
                trailing += child
            else:
                trailing.append(child)
        elif tag == f"{TEXT}ruby-text":
            parts.append(f"({child.text})" if child.text else "")
        elif tag == f"{TEXT}a":
            add_words(child, parts, trailing)
            parts.append(f" ({tip})" if (tip := (child.get(f"{OFFICE}title") or "").strip()) else "")
        elif tag not in NO_TEXT and isinstance(tag, str):
            add_words(child, parts, trailing)
        parts.append(child.tail or "")


def report_hidden(root: Element, omissions: Omissions, *others: Element | None) -> None:
    """Removes and reports the text that a document does not show. The styles are in `root` and `others`."""
    hidden = _hiding_styles(root, *others)
    for node in list(root.iter(*_CAN_BE_HIDDEN)):
        values = [value for name in _CONDITIONAL if (value := node.get(f"{TEXT}{name}"))]
        family = "text" if node.tag == f"{TEXT}span" else "paragraph"
        if (
            node.get(f"{TEXT}is-hidden") == "true"
            or node.get(f"{TEXT}display") == "none"
            or (family, node.get(f"{TEXT}style-name")) in hidden
        ):
            node = node.getparent() if node.tag == f"{TEXT}hidden-paragraph" else node
            if any(each is root for each in node.iterancestors()):  # not in a part that was already removed
                omissions.add_words(OmissionKind.HIDDEN, clean_text(" ".join([*node.itertext(), *values])))
                _remove(node)
        elif values:
            node.text = node.text or values[0]
            for other in values:
                omissions.add_words(OmissionKind.HIDDEN, clean_text(other if other != node.text else ""))


def _hiding_styles(*roots: Element | None) -> set[tuple[str | None, str | None]]:
    """Returns (family, name) of the styles that hide their text, or inherit from such a style."""
    found: set[tuple[str | None, str | None]] = set()
    styles = [node for root in roots if root is not None for node in root.iter(f"{STYLE}style")]
    for _ in range(_MAX_STYLE_DEPTH):
        before = len(found)
        for node in styles:
            family = node.get(f"{STYLE}family")
            stated = [each.get(f"{TEXT}display") for each in node.iterchildren(f"{STYLE}text-properties")]
            if "none" in stated or (not any(stated) and (family, node.get(f"{STYLE}parent-style-name")) in found):
                found.add((family, node.get(f"{STYLE}name")))
        if len(found) == before:
            break
    return found


def _remove(node: Element) -> None:
    """Removes an element, but not the text after it."""
    above, before = node.getparent(), node.getprevious()
    if before is None:
        above.text = (above.text or "") + (node.tail or "")
    else:
        before.tail = (before.tail or "") + (node.tail or "")
    node.tail = None
    above.remove(node)


def words_of(node: Element) -> str:
    """Returns the text of a paragraph on one line, including notes, comments and frames anchored in it."""
    parts: list[str] = []
    trailing: list[Element] = []
    add_words(node, parts, trailing)
    for each in trailing:
        parts.append(" " + " ".join(words_of(below) for below in each.iter(f"{TEXT}p", f"{TEXT}h")))
        parts.extend(f" {text}" for text in described_by(each))
    return " ".join(clean_text("".join(parts)).split())


def described_by(node: Element) -> Iterator[str]:
    for tag in (f"{SVG}title", f"{SVG}desc"):
        for child in node.iterchildren(tag):
            if child.text and child.text.strip():
                yield clean_text(child.text.strip())


def formula_words(root: Element) -> Iterator[str]:
    """Yields the symbols of a MathML formula, without the annotation that contains its source in another language."""
    for node in root.iter():
        if isinstance(node.tag, str) and not node.tag.startswith(f"{MATH}annotation") and node.text:
            yield node.text.strip()


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


class TableRows:
    """Reads the rows of all tables of a document."""

    def __init__(self, limits: Limits, omissions: Omissions) -> None:
        self._limits = limits
        self._omissions = omissions
        self._cells = 0

    def of_text(self, table: Element) -> Iterator[list[Cell]]:
        """Yields the rows of a table in a text or on a slide."""
        for row in _table_rows(table):
            cells: list[Cell] = []
            for cell in row.iterchildren(f"{TABLE}table-cell"):
                cells += [_text_cell(cell)] * min(_repeated(cell, "columns"), MAX_COLUMNS - len(cells))
            copies = min(_repeated(row, "rows"), _MAX_REPEATED) if any(cell.text for cell in cells) else 1
            self._count(len(cells) * copies)
            yield from [cells] * copies

    def of_sheet(self, table: Element) -> Iterator[tuple[int, list[str]]]:
        """Yields (number, texts) of each row that is not empty."""
        number = 0
        for row in _table_rows(table):
            cells = self._cells_of(row)
            repeated = _repeated(row, "rows")
            copies = min(repeated, _MAX_REPEATED) if cells else 0
            self._count(sum(map(bool, cells)) * copies)
            for copy in range(copies):
                yield number + copy + 1, cells
            if cells:
                self._omissions.add(OmissionKind.TOO_LARGE, " ".join(filter(None, cells)), repeated - copies)
            number += repeated

    def _cells_of(self, row: Element) -> list[str]:
        """Returns the texts of a row's cells up to the last filled one."""
        cells: list[str] = []
        empty = 0  # a row's remaining empty cells are stored as one repeated cell
        for cell in row:
            if cell.tag in (f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
                text, repeated = self._value(cell), _repeated(cell, "columns")
                if not text:
                    empty += repeated
                    continue
                copies = min(repeated, _MAX_REPEATED)
                self._omissions.add(OmissionKind.TOO_LARGE, text, repeated - copies)
                cells += [""] * min(empty, _MAX_COLUMNS - len(cells)) + [text] * copies
                empty = repeated - copies
        return cells

    def _value(self, cell: Element) -> str:
        """Returns the text of a cell; its formula if the file stores no result."""
        words = (words_of(each) for each in cell.iterchildren(f"{TEXT}p", f"{TEXT}h"))
        text = " ".join(filter(None, words))
        if not text:
            text = next((each for name in _VALUES if (each := cell.get(f"{OFFICE}{name}"))), "")
        formula = (cell.get(f"{TABLE}formula") or "").removeprefix("of:").removeprefix("oooc:")
        if not text and formula:
            self._omissions.add(OmissionKind.FORMULA, formula)
            return clean_text(formula)
        return clean_text(text)

    def _count(self, cells: int) -> None:
        self._cells += cells or 1
        self._limits.check_cells(self._cells)


def _text_cell(cell: Element) -> Cell:
    wide, high = (span(cell.get(f"{TABLE}number-{what}-spanned")) for what in ("columns", "rows"))
    texts = [words_of(each) for each in cell.iter(f"{TEXT}p", f"{TEXT}h") if not _anchored(each, cell)]
    return Cell(" ".join(filter(None, texts)), wide, high)


def _table_rows(table: Element) -> Iterator[Element]:
    """Yields the rows of a table, except rows of tables in its cells."""
    for child in table:
        if child.tag == f"{TABLE}table-row":
            yield child
        elif isinstance(child.tag, str) and child.tag.startswith(TABLE) and child.tag != f"{TABLE}table":
            yield from _table_rows(child)


def _anchored(paragraph: Element, cell: Element) -> bool:
    """Whether a paragraph of a cell is inside another paragraph of the cell, whose text then includes it."""
    above = takewhile(lambda each: each is not cell, paragraph.iterancestors())
    return any(each.tag in (f"{TEXT}p", f"{TEXT}h") for each in above)


def _repeated(node: Element, what: str) -> int:
    return whole_number(node.get(f"{TABLE}number-{what}-repeated"), 1)
