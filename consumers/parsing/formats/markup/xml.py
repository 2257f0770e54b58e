"""XML: records become `name: value`, title elements headings, all other text paragraphs.

Attributes with words are part of the text; other attributes and comments are reported. Entities that the file declares are
resolved.
"""

import re
from html.entities import html5
from typing import Any

from lxml import etree

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text, refuse_binary
from consumers.parsing.embedded_data import is_base64
from consumers.parsing.formats.markup.html import parse_html
from consumers.parsing.limits import Damaged, Limits, WrongKind
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import row_text
from consumers.parsing.xml_limits import XML_OPTIONS, report_limit
from consumers.splitting import ParsedText

Element = Any
_TITLES = frozenset(("title", "head", "heading", "titel", "titre"))
_BLOCKS = frozenset(
    "p para simpara td th tr row entry cell li item listitem title subtitle section table list br lb v stanza".split()
)
"""Elements that separate words. The texts before and after any other element may be parts of one word."""
_VERBATIM = frozenset(("programlisting", "screen", "literallayout", "code", "pre", "poem"))
_LEFT_OUT = {"binary": OmissionKind.EMBEDDED, "indexterm": OmissionKind.METADATA}
_READ_ATTRIBUTES = frozenset(
    "name title alt label caption desc description summary tooltip text value term abbrev xreflabel annotation note".split()
)
_PROGRAM_ATTRIBUTES = frozenset(("class", "style", "id", "href", "src", "d", "points", "transform", "schemalocation"))
_PAGE = re.compile(
    r"(?:\s|<\?xml[^>]*\?>|<!DOCTYPE[^>]*>)*<(?:en-note|html|body|div|p|span|a|b|i|em|strong|ul|ol|table|h[1-6]|img|br|blockquote|pre)"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_ENTITY = re.compile(rb"&([A-Za-z][A-Za-z0-9]{0,60});")
_UNDECLARED = (etree.ErrorTypes.ERR_UNDECLARED_ENTITY, etree.ErrorTypes.WAR_UNDECLARED_ENTITY)
_OWN_ENTITIES = frozenset(("amp", "lt", "gt", "quot", "apos"))
_WORD = re.compile(r"[^\W\d_]{3,}")
_MAX_TITLE_CHARS = 300
_MAX_VALUE_CHARS = 500
_DRAWINGS = frozenset(("svg", "mxfile"))


def parse_xml(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    refuse_binary(data)
    try:
        root, log = _root(data)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise Damaged(f"not XML that can be read: {error}; save it again") from error
    if root is None:
        raise Damaged("not XML that can be read: it has no element; save it again")
    report_limit(log, omissions)
    name = _name(root)
    if name == "html":
        return parse_html(data, limits, omissions)
    if name in _DRAWINGS:
        raise WrongKind("a drawing, which contains no text for readers; exclude it")
    for comment in (*root.itersiblings(preceding=True), *root.iter(etree.Comment), *root.itersiblings()):
        omissions.add(OmissionKind.COMMENT, clean_text(comment.text or ""))
    etree.strip_tags(root, etree.Comment)
    report_limit(log, omissions)
    outline = Outline(limits.text_chars, omissions)
    _fill(root, outline, limits)
    return outline.document(metadata={"root": name[:100]})


def _root(data: bytes) -> tuple[Element | None, Any]:
    """Returns the root element and the parser's log.

    HTML entities are resolved even if the file does not declare them; many feeds do not. Unknown and external entities stay as
    written.
    """
    root, log = _parsed(data)
    if root is None or not any(error.type in _UNDECLARED for error in log):
        return root, log
    types = root.getroottree().docinfo.internalDTD
    declared = types.iterentities() if types is not None else ()
    known = _OWN_ENTITIES | {entity.name for entity in declared if entity.content is not None}

    def character(entity: re.Match[bytes]) -> bytes:
        name = entity[1].decode("ascii")
        if name in known:
            return entity[0]
        return "".join(f"&#{ord(char)};" for char in html5.get(f"{name};", f"&{name};")).encode("ascii")

    return _parsed(_ENTITY.sub(character, data))


def _parsed(data: bytes) -> tuple[Element | None, Any]:
    wide = b"\0" in data[:4]  # UTF-16 or UTF-32
    has_entities = b"<!ENTITY" in (data.replace(b"\0", b"") if wide else data)
    options = {"resolve_entities": "internal", "no_network": True} if has_entities else XML_OPTIONS
    parser = etree.XMLParser(remove_comments=False, remove_pis=True, recover=True, **options)
    return etree.fromstring(data, parser), parser.error_log


def _fill(root: Element, outline: Outline, limits: Limits) -> None:
    """Adds blocks in one pass. An element with its own text is a block. An element that contains only single values is
    a record.

    All other elements are containers. Text that is HTML, as in feeds and exports of notes, is parsed as HTML.
    """
    depth = 0
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, node in walk:
        depth += 1 if event == "start" else -1
        if event == "end":
            continue
        name = _name(node)
        if not name:
            walk.skip_subtree()
            continue
        if name in _LEFT_OUT:
            _report(node, outline.omissions)
            walk.skip_subtree()
            continue
        outline.text(_attributes(node, outline.omissions), "\n", line=node.sourceline)
        if name in _TITLES and 0 < len(text := _text(node, outline.omissions)) <= _MAX_TITLE_CHARS:
            outline.heading(depth, text, line=node.sourceline)
            walk.skip_subtree()
        elif name in _VERBATIM:
            outline.text(clean_text("".join(node.itertext())), line=node.sourceline)
            walk.skip_subtree()
        elif not len(node) and _PAGE.match(node.text or ""):
            page = parse_html(node.text.encode("utf-8", "replace"), limits, outline.omissions)
            outline.include(page, depth + 1)
        elif not len(node) and is_base64(node.text or ""):
            outline.omissions.add(OmissionKind.EMBEDDED, f"{len(node.text):,} characters of base64")
        elif (node.text or "").strip() or any((child.tail or "").strip() for child in node):
            outline.text(_text(node, outline.omissions), line=node.sourceline)
            walk.skip_subtree()
        elif (values := _record(node)) is not None:
            names, cells = zip(*values, strict=True)
            for child in node:
                outline.text(_attributes(child, outline.omissions), "\n", line=node.sourceline)
            outline.text(row_text(names, cells), "\n", line=node.sourceline)
            walk.skip_subtree()


def _report(node: Element, omissions: Omissions) -> None:
    """Reports an element that is left out: for embedded data its attributes, else its text."""
    kind = _LEFT_OUT[_name(node)]
    text = " ".join(node.attrib.values() if kind is OmissionKind.EMBEDDED else node.itertext())
    omissions.add(kind, clean_text(text))


def _attributes(node: Element, omissions: Omissions) -> str:
    """Returns the names and values of an element's attributes whose values are text for readers. Other attributes with words
    are reported.

    All attributes of an empty element form a record.
    """
    given = [(_local(name), clean_text(value)) for name, value in node.attrib.items() if _WORD.search(value)]
    read = [
        pair for pair in given if pair[0] in _READ_ATTRIBUTES or (" " in pair[1] and pair[0] not in _PROGRAM_ATTRIBUTES)
    ]
    if read and not len(node) and not (node.text or "").strip():
        read = [(_local(name), clean_text(value)) for name, value in node.attrib.items()]
    for pair in given:
        if pair not in read and "://" not in pair[1]:
            omissions.add(OmissionKind.METADATA, pair[1])
    return row_text([name for name, _ in read], [value for _, value in read])


def _record(node: Element) -> list[tuple[str, str]] | None:
    """Returns the names and values in a record: an element whose children are short values with distinct names. None for other
    elements."""
    if len(node) < 2:
        return None
    found: dict[str, str] = {}
    for child in node:
        name = _name(child)
        if (
            len(child)
            or not name
            or name in found
            or name in _TITLES
            or name in _LEFT_OUT
            or len(child.text or "") > _MAX_VALUE_CHARS
        ):
            return None
        if _PAGE.match(child.text or "") or is_base64(child.text or ""):
            return None
        found[name] = clean_text(child.text or "")
    return list(found.items())


def _name(node: Element) -> str:
    """Returns an element's name without namespace, in lower case; "" for comments and other nodes without a name."""
    return _local(node.tag) if isinstance(node.tag, str) else ""


def _local(name: str) -> str:
    return name.rpartition("}")[2].lower()


def _text(node: Element, omissions: Omissions) -> str:
    """Returns the text of an element and its descendants; attributes follow in brackets."""
    parts = []
    walk = etree.iterwalk(node, events=("start", "end"))
    for event, below in walk:
        space = " " if _name(below) in _BLOCKS else ""
        if event == "end":
            parts.append(f"{space}{below.tail or ''}" if below is not node else "")
        elif _name(below) in _LEFT_OUT:
            _report(below, omissions)
            walk.skip_subtree()
        else:
            attributes = _attributes(below, omissions) if below is not node else ""
            parts += [f" ({attributes}) " if attributes else space, below.text or ""]
    return " ".join(clean_text("".join(parts)).split())
