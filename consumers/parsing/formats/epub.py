"""EPUB: the parts of its spine in reading order, each one XHTML."""

import posixpath
import zipfile
from urllib.parse import unquote

from lxml import etree

from consumers.failure_codes import FailureCode
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.markup.boilerplate import find_content
from consumers.parsing.formats.markup.html import tree
from consumers.parsing.formats.markup.html_text import walk
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.outline import Outline
from consumers.parsing.zip_archive import open_package, read_member
from consumers.splitting import ParsedText

_PAGES = frozenset(("application/xhtml+xml", "text/html", "text/x-oeb1-document"))


def parse_epub(data: bytes, limits: Limits) -> ParsedText:
    with open_package(data, limits) as package:
        if "META-INF/encryption.xml" in package.namelist() and "META-INF/rights.xml" in package.namelist():
            raise NotADocument("protected by digital rights management; add a copy without it", FailureCode.PROTECTED)
        root_path = _root_path(package)
        book = _xml(read_member(package, root_path), root_path)
        title, metadata = _description(book)
        outline = Outline(limits.text_chars)
        names = set(package.namelist())
        for number, name in enumerate(_spine(book, root_path), 1):
            if number > limits.pages:
                raise NotADocument(f"more than {limits.pages:,} parts; split it up", FailureCode.TOO_LARGE)
            if name in names:
                root = tree(read_member(package, name))
                if root is not None:
                    content = find_content(root)
                    walk(content.root, outline, left_out=content.left_out, lines=False, page=number)
    blocks = outline.done()
    return ParsedText(blocks, title or outline.first_heading, metadata)


def _root_path(package: zipfile.ZipFile) -> str:
    container = _xml(read_member(package, "META-INF/container.xml"), "META-INF/container.xml")
    node = container.find(".//{*}rootfile")
    path = None if node is None else node.get("full-path")
    if not path:
        raise Unreadable(
            "damaged: META-INF/container.xml names no root file; create the book again", FailureCode.DAMAGED
        )
    return str(path)


def _xml(data: bytes, name: str) -> etree._Element:
    try:
        return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise Unreadable(
            f"damaged: its part {name!r} is not XML ({error}); create the book again", FailureCode.DAMAGED
        ) from error


def _spine(book: etree._Element, root_path: str) -> list[str]:
    folder = posixpath.dirname(root_path)
    items = {
        item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or "")))
        for item in book.iterfind(".//{*}manifest/{*}item")
        if item.get("media-type") in _PAGES and "nav" not in (item.get("properties") or "").split()
    }
    order = [item.get("idref") for item in book.iterfind(".//{*}spine/{*}itemref")]
    return [items[name] for name in order if name in items]


def _description(book: etree._Element) -> tuple[str, dict[str, str]]:
    found: dict[str, str] = {}
    for name in ("title", "creator", "language", "date", "publisher", "identifier"):
        node = book.find(f".//{{http://purl.org/dc/elements/1.1/}}{name}")
        if node is not None and node.text and node.text.strip():
            found[name] = " ".join(clean_text(node.text).split())[:1000]
    return found.pop("title", ""), found
