"""EPUB: the XHTML parts of its spine in reading order."""

import posixpath
import zipfile
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import unquote

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.embedded_data import embedded_picture
from consumers.parsing.formats.markup.boilerplate import find_content
from consumers.parsing.formats.markup.html_text import HtmlWalk
from consumers.parsing.formats.markup.html_tree import tree
from consumers.parsing.limits import Damaged, Limits, NotADocument
from consumers.parsing.outline import Outline
from consumers.parsing.zip_archive import open_package, parse_xml, read_again, read_member
from consumers.splitting import ParsedText

_PROPERTIES = (
    "title", "creator", "contributor", "language", "date", "publisher", "identifier", "subject", "description", "rights",
    "source", "coverage", "relation", "type",
)  # fmt: skip
"""The Dublin Core elements that a book may have (EPUB 3.3, 5.5)."""
_PAGES = frozenset(("application/xhtml+xml", "text/html", "text/x-oeb1-document"))


def parse_epub(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    with open_package(data, limits) as package:
        if "META-INF/encryption.xml" in package.namelist() and "META-INF/rights.xml" in package.namelist():
            raise NotADocument("protected by digital rights management; add a copy without it", FailureCode.PROTECTED)
        root_path = _root_path(package)
        book = parse_xml(read_member(package, root_path), root_path)
        title, metadata = _description(book)
        outline = Outline(limits.text_chars, omissions)
        names = set(package.namelist())
        spine, others = _pages(book, root_path)
        limits.check_pages(len(spine), "parts")
        for number, name in enumerate(spine, 1):
            if name in names:
                root = tree(read_member(package, name), omissions)
                if root is not None:
                    content = find_content(root, omissions)
                    pictures = partial(_picture, package, names, posixpath.dirname(name))
                    HtmlWalk(outline, content.left_out, False, number, pictures).run(content.root)
            else:
                omissions.add(OmissionKind.UNREADABLE_PAGE, f"{name} is missing")
        for name, is_contents in others:
            kind = OmissionKind.CONTENTS_TABLE if is_contents else OmissionKind.EMBEDDED
            root = tree(read_member(package, name), omissions) if name in names else None
            words = "" if root is None else " ".join(root.text_content().split())
            omissions.add(kind, f"{'' if is_contents else f'{name}: '}{words}", int(bool(words)))
    return outline.document(title, metadata)


def _picture(package: zipfile.ZipFile, names: set[str], folder: str, address: str) -> Callable[[], bytes] | None:
    """Returns a function that reads the picture at `address`, relative to `folder`, or None if the book does not contain it."""
    name = posixpath.normpath(posixpath.join(folder, unquote(address)))
    if name in names and package.fp is not None:
        return partial(read_again, package.fp, name)
    return embedded_picture(address)


def _root_path(package: zipfile.ZipFile) -> str:
    container = parse_xml(read_member(package, "META-INF/container.xml"), "META-INF/container.xml")
    node = container.find(".//{*}rootfile")
    path = None if node is None else node.get("full-path")
    if not path:
        raise Damaged("damaged: META-INF/container.xml names no root file; create the book again")
    return str(path)


def _pages(book: Any, root_path: str) -> tuple[list[str], list[tuple[str, bool]]]:
    """Returns the parts in reading order (EPUB 3.3, 5.7), and the other parts as (name, whether it is a table of contents)."""
    folder = posixpath.dirname(root_path)
    items = {}
    for item in book.iterfind(".//{*}manifest/{*}item"):
        if item.get("media-type") in _PAGES:
            name = posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or "")))
            items[item.get("id")] = name, "nav" in (item.get("properties") or "").split()
    order = [node.get("idref") for node in book.iterfind(".//{*}spine/{*}itemref")]
    spine = [items[key][0] for key in order if key in items and not items[key][1]]
    return spine, [item for item in items.values() if item[0] not in spine]


def _description(book: Any) -> tuple[str, dict[str, str]]:
    found: dict[str, str] = {}
    for name in _PROPERTIES:
        nodes = book.iter(f"{{http://purl.org/dc/elements/1.1/}}{name}")
        stated = dict.fromkeys(" ".join(clean_text(node.text or "").split()) for node in nodes)
        if values := [value for value in stated if value]:
            found[name] = "; ".join(values[:1] if name == "title" else values)[:1000]
            if name == "title" and len(values) > 1:
                found["subtitle"] = "; ".join(values[1:])[:1000]
    return found.pop("title", ""), found
