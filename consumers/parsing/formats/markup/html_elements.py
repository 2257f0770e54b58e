"""Decides which elements of an HTML page are text, and reports the other elements as omissions."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from lxml import etree

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.office.numbering import letters, roman

Element = Any
LeftOut = Mapping[Element, OmissionKind]
"""Maps elements that are not the page's content to their kind of omission."""

_SILENT = frozenset(("script", "style", "head", "title", "annotation", "annotation-xml"))
"""Elements that have no text for readers or whose text is extracted elsewhere."""
_UNREAD = {
    **dict.fromkeys(("template", "noscript", "dialog"), OmissionKind.HIDDEN),
    **dict.fromkeys(("select", "input", "textarea", "datalist", "button"), OmissionKind.CONTROL),
    **dict.fromkeys(("iframe", "object", "embed", "audio", "video", "canvas"), OmissionKind.EMBEDDED),
    "svg": OmissionKind.PICTURE,
    "nav": OmissionKind.NAVIGATION,
}
_PICTURES = frozenset(("img", "image"))
_ADDRESSES = ("src", "xlink:href", "href")
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt"))
_LABEL_WORDS = 3
"""A button with at least this many words is text, such as a question that unfolds its answer. A shorter text ("Copy") is a
control."""
_WORDLESS_INPUTS = frozenset(("hidden", "password", "checkbox", "radio", "file", "color", "range"))
_ABBREVIATIONS = frozenset(("abbr", "acronym", "dfn"))
_COMPARED_TEXTS = 50
_TOOLTIPS = ("title", "aria-label", "aria-description")
LISTS = frozenset(("ul", "ol", "dl"))
_NUMBER = re.compile(r"\s*([+-]?\d{1,9})")
_NO_MARKS = re.compile(r"list-style(?:-type)?\s*:[^;]*\bnone\b", re.IGNORECASE)


@dataclass(slots=True)
class OpenLists:
    """The open lists, and the number of the next item in each (HTML, 4.4.5): None in lists without numbers."""

    _next: list[int | None] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._next)

    def begin(self, node: Element) -> None:
        """Opens a list; ignores other elements."""
        if node.tag in LISTS:
            count = sum(child.tag == "li" for child in node) if node.get("reversed") is not None else 1
            shown = node.tag == "ol" and not _NO_MARKS.search(node.get("style") or "")
            self._next.append(_number(node.get("start"), count) if shown else None)

    def end(self, node: Element) -> None:
        if node.tag in LISTS:
            self._next.pop()

    def number(self, item: Element) -> str:
        """Returns the number of an item, such as "3. " or "c. "; "" in a list without numbers."""
        if item.tag != "li" or not self._next or self._next[-1] is None:
            return ""
        above = item.getparent()
        number = _number(item.get("value"), self._next[-1])
        self._next[-1] = number - 1 if above.get("reversed") is not None else number + 1
        kind = item.get("type") or above.get("type") or ""
        shown = {"a": letters(number), "i": roman(number)}.get(kind.lower(), str(number))
        return f"{shown.upper() if kind.isupper() else shown}. "


def _number(stated: str | None, default: int) -> int:
    found = _NUMBER.match(stated or "")
    return int(found[1]) if found else default


def is_unread(node: Element, left_out: LeftOut, omissions: Omissions) -> bool:
    """Whether an element is not part of the page's text. Text that a reader could miss is reported."""
    tag = node.tag
    if not isinstance(tag, str) or tag in _SILENT:
        return True
    kind = _kind_of_omission(node, left_out)
    if kind is None:
        return False
    report(kind, content_of(node), omissions)
    return True


def _kind_of_omission(node: Element, left_out: LeftOut) -> OmissionKind | None:
    tag = node.tag
    kind = left_out.get(node)
    if kind is None and node.get("hidden", "until-found") != "until-found":
        kind = OmissionKind.HIDDEN
    if kind is None and tag in _UNREAD and not _is_shown(node, tag):
        kind = _UNREAD[tag]
    return kind


def pictures_below(node: Element, left_out: LeftOut) -> Iterator[tuple[str, bool]]:
    """Yields (address, whether it has a description) of each picture in an element."""
    walk = etree.iterwalk(node, events=("start",))
    for _, each in walk:
        if each.tag in _PICTURES:
            address = next((value for name in _ADDRESSES if (value := each.get(name))), "")
            yield address, bool((each.get("alt") or "").strip())
        elif each is not node and each.tag != "svg" and _kind_of_omission(each, left_out) is not None:
            walk.skip_subtree()


def report(kind: OmissionKind, text: str, omissions: Omissions) -> None:
    """Reports a text if it contains a letter or a digit."""
    omissions.add_words(kind, clean_text(text))


def description(node: Element, omissions: Omissions) -> str:
    """Returns the text in an element's attributes, which precedes the element's content.

    Tooltips and descriptions of one word, which icons have, are not returned but reported.
    """
    tooltips = [value for name in _TOOLTIPS if (value := node.get(name)) and node.tag not in _ABBREVIATIONS]
    if tooltips:
        shown = "".join(islice(node.itertext(), _COMPARED_TEXTS)).casefold()
        for value in tooltips:
            if value.casefold() not in shown:
                report(OmissionKind.TOOLTIP, value, omissions)
    if node.tag not in ("img", "area"):
        return ""
    alternative = " ".join((node.get("alt") or "").split())
    if " " in alternative:
        return f" {alternative} "
    report(OmissionKind.PICTURE, alternative, omissions)
    return ""


def expansion(node: Element) -> str:
    """Returns the expansion to add after an abbreviation; "" for other elements."""
    title = node.get("title") if node.tag in _ABBREVIATIONS else None
    return f" ({title})" if title else ""


def content_of(node: Element, without: Element | None = None) -> str:
    """Returns the text and text attributes of an element and all elements below it, including hidden ones.

    Scripts, styles and the element `without` are excluded.
    """
    parts: list[str] = []
    walk = etree.iterwalk(node, events=("start", "end"))
    for event, below in walk:
        if event == "end":
            parts.append((below.tail or "") if below is not node else "")
        elif not isinstance(below.tag, str) or below.tag in ("script", "style", "head") or below is without:
            walk.skip_subtree()
        else:
            parts += [*(below.get(name) or "" for name in _TOOLTIPS), _other_attributes(below), below.text or ""]
    return " ".join(" ".join(parts).split())


def _other_attributes(node: Element) -> str:
    match node.tag:
        case "input":
            kind = (node.get("type") or "text").lower()
            return "" if kind in _WORDLESS_INPUTS else f"{node.get('value') or ''} {node.get('placeholder') or ''}"
        case "textarea":
            return node.get("placeholder") or ""
        case "optgroup" | "option" | "track":
            return node.get("label") or ""
        case "img" | "area":
            return node.get("alt") or ""
        case "iframe" | "object" | "embed" | "audio" | "video":
            addresses = ((node.get(name) or "").partition(";base64,")[0] for name in ("src", "data"))
            return " ".join((node.get("srcdoc") or "", *addresses))
    return ""


def _is_shown(node: Element, tag: str) -> bool:
    """Whether an element is text although its tag is in `_UNREAD`."""
    if tag == "template":
        return node.get("shadowrootmode") is not None or node.get("shadowroot") is not None
    if tag == "dialog":
        return node.get("open") is not None
    if tag == "button":
        above = node.getparent()
        return (
            len(" ".join(node.itertext()).split()) >= _LABEL_WORDS
            or node.get("aria-expanded") is not None
            or (above is not None and above.tag in _HEADINGS)
        )
    return False
