"""XML by its text: records as `name: value`, everything else as paragraphs, titles as headings where they are called so."""

from typing import Any

from lxml import etree

from consumers.failure_codes import FailureCode
from consumers.omissions import Omissions
from consumers.parsing.decoding import clean_text, refuse_binary
from consumers.parsing.formats.markup.html import parse_html
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import row_text
from consumers.splitting import ParsedText

Element = Any
_TITLES = frozenset(("title", "head", "heading", "titel", "titre"))
_VERBATIM = frozenset(("programlisting", "screen", "literallayout", "code", "pre", "poem"))
_LEFT_OUT = frozenset(("binary", "script", "style", "indexterm"))
_LONGEST_TITLE = 300
_LONGEST_VALUE = 500
_DRAWINGS = frozenset(("svg", "mxfile"))


def parse_xml(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    refuse_binary(data)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True, recover=True
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise Unreadable(f"not XML that can be read: {error}; save it again", FailureCode.DAMAGED) from error
    if root is None:
        raise Unreadable("not XML that can be read: it has no element; save it again", FailureCode.DAMAGED)
    name = _name(root)
    if name == "html":
        return parse_html(data, limits, omissions)
    if name in _DRAWINGS:
        raise NotADocument("a drawing, which contains no text for readers; exclude it", FailureCode.NOT_A_DOCUMENT)
    outline = Outline(limits.text_chars, omissions)
    _fill(root, outline)
    return ParsedText(outline.done(), outline.first_heading, {"root": name[:100]})


def _fill(root: Element, outline: Outline) -> None:
    """One pass: an element with text of its own is a block, one of single values a record, any other is gone through."""
    depth = 0
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, node in walk:
        depth += 1 if event == "start" else -1
        if event == "end":
            continue
        name = _name(node)
        if not name or name in _LEFT_OUT:
            walk.skip_subtree()
        elif name in _TITLES and 0 < len(text := _text(node)) <= _LONGEST_TITLE:
            outline.heading(depth, text, line=node.sourceline)
            walk.skip_subtree()
        elif name in _VERBATIM:
            outline.text(clean_text("".join(node.itertext())), line=node.sourceline)
            walk.skip_subtree()
        elif (node.text or "").strip() or any((child.tail or "").strip() for child in node):
            outline.text(_text(node), line=node.sourceline)
            walk.skip_subtree()
        elif (values := _record(node)) is not None:
            names, cells = zip(*values, strict=True)
            outline.text(row_text(names, cells), "\n", line=node.sourceline)
            walk.skip_subtree()


def _record(node: Element) -> list[tuple[str, str]] | None:
    """Names and values of an element of which every part is a short value under a name of its own; None for others."""
    if len(node) < 2:
        return None
    found: dict[str, str] = {}
    for child in node:
        name = _name(child)
        if len(child) or not name or name in found or name in _TITLES or len(child.text or "") > _LONGEST_VALUE:
            return None
        found[name] = clean_text(child.text or "")
    return list(found.items())


def _name(node: Element) -> str:
    """An element's name without its namespace, in lower case; "" for what is no element."""
    return node.tag.rpartition("}")[2].lower() if isinstance(node.tag, str) else ""


def _text(node: Element) -> str:
    parts = []
    for event, below in etree.iterwalk(node, events=("start", "end")):
        if event == "start":
            parts.append((below.text or "") if _name(below) not in _LEFT_OUT else "")
        elif below is not node:
            parts.append(below.tail or "")
    return " ".join(clean_text("".join(parts)).split())
