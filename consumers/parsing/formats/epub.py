"""EPUB: the parts of its spine in reading order, each one XHTML."""

import posixpath
import zipfile
from urllib.parse import unquote

from lxml import etree

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.markup.boilerplate import find_content
from consumers.parsing.formats.markup.html_elements import content_of, report
from consumers.parsing.formats.markup.html_text import walk
from consumers.parsing.formats.markup.html_tree import tree
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.outline import Outline
from consumers.parsing.zip_archive import open_package, read_member
from consumers.splitting import ParsedText

_DESCRIPTION_WORDS = "title creator contributor language date publisher identifier subject description rights"
_DESCRIPTION = tuple(_DESCRIPTION_WORDS.split())
_PAGES = frozenset(("application/xhtml+xml", "text/html", "text/x-oeb1-document"))


def parse_epub(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    with open_package(data, limits) as package:
        if "META-INF/encryption.xml" in package.namelist() and "META-INF/rights.xml" in package.namelist():
            raise NotADocument("protected by digital rights management; add a copy without it", FailureCode.PROTECTED)
        root_path = _root_path(package)
        book = _xml(read_member(package, root_path), root_path)
        title, metadata = _description(book)
        outline = Outline(limits.text_chars, omissions)
        names = set(package.namelist())
        spine, others = _parts(book, root_path)
        for number, name in enumerate(spine, 1):
            if number > limits.pages:
                raise NotADocument(f"more than {limits.pages:,} parts; split it up", FailureCode.TOO_LARGE)
            if name in names:
                root = tree(read_member(package, name))
                if root is not None:
                    content = find_content(root, omissions)
                    walk(content.root, outline, left_out=content.left_out, lines=False, page=number)
            else:
                omissions.add(OmissionKind.OTHER, f"the part {name}, which is missing")
        for name in others:
            root = tree(read_member(package, name)) if name in names else None
            if root is not None:
                report(OmissionKind.HIDDEN, content_of(root), omissions)
    blocks = outline.done()
    return ParsedText(blocks, title or outline.first_heading, metadata)


def _root_path(package: zipfile.ZipFile) -> str:
    container = _xml(read_member(package, "META-INF/container.xml"), "META-INF/container.xml")
    node = container.find(".//{*}rootfile")
    path = None if node is None else node.get("full-path")
    if not path:
        raise Unreadable("damaged: META-INF/container.xml names no root file; make the book anew", FailureCode.DAMAGED)
    return str(path)


def _xml(data: bytes, name: str) -> etree._Element:
    try:
        return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise Unreadable(
            f"damaged: its part {name!r} is not XML ({error}); make the book anew", FailureCode.DAMAGED
        ) from error


def _parts(book: etree._Element, root_path: str) -> tuple[list[str], list[str]]:
    """The names of the pages in reading order (EPUB 3.3, 5.7), and of the other pages, such as the contents (5.4.1)."""
    folder = posixpath.dirname(root_path)
    items = {
        item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or "")))
        for item in book.iterfind(".//{*}manifest/{*}item")
        if item.get("media-type") in _PAGES
    }
    listed = book.iterfind(".//{*}manifest/{*}item[@properties]")
    contents = {item.get("id") for item in listed if "nav" in str(item.get("properties")).split()}
    order = [item.get("idref") for item in book.iterfind(".//{*}spine/{*}itemref")]
    spine = [name for name in order if name in items and name not in contents]
    return [items[name] for name in spine], [path for name, path in items.items() if name not in spine]


def _description(book: etree._Element) -> tuple[str, dict[str, str]]:
    found: dict[str, str] = {}
    for name in _DESCRIPTION:
        nodes = book.iterfind(f".//{{http://purl.org/dc/elements/1.1/}}{name}")
        values = [" ".join(clean_text(node.text).split()) for node in nodes if node.text and node.text.strip()]
        if name == "title" and values:
            found[name], *values = values
            name = "subtitle"
        if values:
            found[name] = "; ".join(values)[:1000]
    return found.pop("title", ""), found
