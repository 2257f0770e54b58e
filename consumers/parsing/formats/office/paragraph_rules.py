"""The style, heading level and label of Word's paragraphs, and whether their text is hidden (ECMA-376 part 1, 17.3.2.41, 17.7
and 17.9)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from consumers.parsing.formats.office.numbering import Numbering, W, value_of
from consumers.parsing.formats.office.package import whole_number

Element = Any
_MAX_STYLE_DEPTH = 20


@dataclass(slots=True)
class _Style:
    name: str = ""
    based_on: str = ""
    level: int | None = None
    numbering: tuple[str | None, int | None] = (None, None)
    hidden: bool | None = None


class ParagraphRules:
    """Applies the definitions of styles and lists to the paragraphs of a document, which must be given in document
    order."""

    def __init__(self, styles: Element | None, numbering: Element | None) -> None:
        self._styles = dict(_styles(styles))
        self._numbering = Numbering(numbering)

    def of(self, node: Element) -> tuple[str, int | None, str]:
        """Returns (style name, heading level or None, label or "") of a paragraph."""
        properties = node.find(f"{W}pPr")
        chain = list(self._style_chain(value_of(properties, "pStyle")))
        name = chain[0][1].name if chain else ""
        level = _level_of(properties)
        list_id, depth = _numbering_of(properties)
        for key, style in chain:
            level = style.level if level is None else level
            if list_id is None and style.numbering[0] is not None:
                linked = self._numbering.of_style(key)
                list_id = style.numbering[0]
                depth = linked[1] if linked and depth is None and linked[0] == list_id else depth
            depth = style.numbering[1] if depth is None else depth
        label = "" if list_id in (None, "0") else self._numbering.label(str(list_id), depth or 0)
        return name, level, label

    def hides(self, run: Element) -> bool:
        """Whether the text of a run is hidden: by the run itself, or else by the style of the run or of the paragraph."""
        properties = run.find(f"{W}rPr")
        if (stated := _hidden(properties)) is not None:
            return stated
        paragraph = next(run.iterancestors(f"{W}p"), None)
        styles = (
            value_of(properties, "rStyle"),
            value_of(None if paragraph is None else paragraph.find(f"{W}pPr"), "pStyle"),
        )
        run_hidden, paragraph_hidden = (
            next((style.hidden for _, style in self._style_chain(key) if style.hidden is not None), False)
            for key in styles
        )
        return run_hidden != paragraph_hidden  # two styles that hide cancel each other (17.7.3)

    def _style_chain(self, key: str) -> Iterator[tuple[str, _Style]]:
        for _ in range(_MAX_STYLE_DEPTH):
            style = self._styles.get(key)
            if style is None:
                return
            yield key, style
            key = style.based_on


def _styles(root: Element | None) -> Iterator[tuple[str, _Style]]:
    for node in () if root is None else root.iterchildren(f"{W}style"):
        properties = node.find(f"{W}pPr")
        name = value_of(node, "name").lower()
        level = _level_of(properties)
        if name == "title":
            level = 0
        elif name.startswith("heading ") and name[8:].isdigit():
            level = whole_number(name[8:]) or None
        style = _Style(name, value_of(node, "basedOn"), level, _numbering_of(properties), _hidden(node.find(f"{W}rPr")))
        yield node.get(f"{W}styleId") or "", style


def _level_of(properties: Element | None) -> int | None:
    """Returns the outline level of a paragraph or style, from 1; None for body text, which has level 9 in the file
    (17.3.1.20)."""
    stated = value_of(properties, "outlineLvl")
    return whole_number(stated) + 1 if stated and whole_number(stated) < 9 else None


def _hidden(properties: Element | None) -> bool | None:
    """Whether properties hide their text; None if the properties do not say."""
    node = None if properties is None else properties.find(f"{W}vanish")
    return None if node is None else node.get(f"{W}val") not in ("0", "false", "off")


def _numbering_of(properties: Element | None) -> tuple[str | None, int | None]:
    node = None if properties is None else properties.find(f"{W}numPr")
    if node is None:
        return None, None
    level = value_of(node, "ilvl")
    return value_of(node, "numId") or None, whole_number(level) if level else None
