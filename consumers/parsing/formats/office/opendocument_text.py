"""The words of OpenDocument's elements (OASIS, version 1.3, part 3)."""

from collections.abc import Iterator
from typing import Any

from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.office.package import whole_number

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
_MAX_SPACES = 80


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
        elif tag in (f"{TEXT}hidden-text", f"{TEXT}conditional-text"):
            stated = (child.get(f"{TEXT}{name}") for name in ("string-value", "string-value-if-true"))
            parts.append(child.text or "")
            parts.extend(f" {text} " for text in stated if text and text != child.text)
            other = child.get(f"{TEXT}string-value-if-false")
            parts.append(f" {other} " if other and other != child.text else "")
        elif tag == f"{TEXT}ruby-text":
            parts.append(f"({child.text})" if child.text else "")
        elif tag == f"{TEXT}a":
            add_words(child, parts, trailing)
            parts.append(f" ({tip})" if (tip := (child.get(f"{OFFICE}title") or "").strip()) else "")
        elif tag not in NO_TEXT and isinstance(tag, str):
            add_words(child, parts, trailing)
        parts.append(child.tail or "")


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
