"""Exports of MediaWiki (XML dumps): each page is a document with the text of its newest revision."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from lxml import etree

from consumers.omissions import Omission, OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.markup.wiki import after_redirect
from consumers.parsing.xml_limits import XML_OPTIONS

Element = Any
_KEYS = (
    ("date", "{*}timestamp"),
    ("author", "{*}contributor/{*}username"),
    ("author", "{*}contributor/{*}ip"),
    ("comment", "{*}comment"),
)
"""(metadata key, path of the element with its value). If a key occurs twice, the first element that has text counts."""
_ENDINGS = {"css": "css", "sanitized-css": "css", "javascript": "js", "Scribunto": "lua", "json": "txt", "text": "txt"}
"""Ending of the file name by content model, for pages that are not wikitext."""


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page of an export. `content` is parsed under the file name `name`."""

    title: str
    name: bytes
    content: bytes
    metadata: Mapping[str, Any]
    left_out: tuple[Omission, ...]


def split_export(data: bytes) -> Iterator[WikiPage]:
    """Yields the pages of an export. A redirect to a page in the export becomes an alias of that page.

    A page's account of omissions contains its older revisions, and the text of its redirects except the link.
    """
    redirects = _redirects(data)
    site = ""
    for node in _elements(data, "{*}page", "{*}sitename"):
        if etree.QName(node).localname == "sitename":
            site = _text(node)
            continue
        title = _text(node.find("{*}title"))
        if node.find("{*}redirect") is not None and any(title in found for found in redirects.values()):
            continue
        yield _page(node, title, site, redirects.get(title, {}))


def _redirects(data: bytes) -> dict[str, dict[str, str]]:
    """Returns the redirects to each page in the export: {title of the page: {title of the redirect: text after its
    link}}."""
    if b"<redirect" not in data:
        return {}
    pages: set[str] = set()
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for node in _elements(data, "{*}page"):
        title, redirect = _text(node.find("{*}title")), node.find("{*}redirect")
        if redirect is None:
            pages.add(title)
        else:
            text = _revisions(node)[-1].findtext("{*}text") or ""
            found[_named(redirect.get("title") or "")][title] = after_redirect(clean_text(text))
    return {title: redirects for title, redirects in found.items() if title in pages}


def _page(node: Element, title: str, site: str, redirects: Mapping[str, str]) -> WikiPage:
    *older, newest = _revisions(node)
    omissions = Omissions()
    for revision in older:
        parts = (*_stated(revision).values(), clean_text(revision.findtext("{*}text") or ""))
        omissions.add(OmissionKind.ALTERNATIVE, " ".join(parts))
    for text in redirects.values():
        omissions.add_words(OmissionKind.METADATA, text)
    for upload in node.iterfind("{*}upload"):
        omissions.add_words(OmissionKind.METADATA, " ".join(_text(upload).split()))
    model = newest.findtext("{*}model") or ""
    ending = _ENDINGS.get(model, "wiki")
    heading = f"= {title} =\n" if title and ending == "wiki" else ""
    content = f"{heading}{newest.findtext('{*}text') or ''}".encode("utf-8", "replace")
    metadata: dict[str, Any] = {**_stated(newest), **({"site": site} if site else {})}
    if redirects:
        metadata["aliases"] = list(redirects)
    return WikiPage(title, f"page.{ending}".encode(), content, metadata, omissions.done())


def _revisions(page: Element) -> list[Element]:
    """Returns a page's revisions, oldest first; a page without revisions counts as its own revision."""
    return sorted(page.iterfind("{*}revision"), key=lambda each: each.findtext("{*}timestamp") or "") or [page]


def _stated(revision: Element) -> dict[str, str]:
    stated: dict[str, str] = {}
    for key, path in _KEYS:
        if key not in stated and (value := clean_text(revision.findtext(path) or "").strip()):
            stated[key] = value[:1000]
    return stated


def _named(target: str) -> str:
    """Returns the title of the page to which a redirect leads."""
    return " ".join(clean_text(target).partition("#")[0].replace("_", " ").split())


def _elements(data: bytes, *tags: str) -> Iterator[Element]:
    """Yields each element with one of the tags, and then frees its content."""
    for _, node in etree.iterparse(BytesIO(data), events=("end",), tag=tags, recover=True, **XML_OPTIONS):
        yield node
        node.clear()


def _text(node: Element | None) -> str:
    return "" if node is None else " ".join(clean_text(" ".join(node.itertext())).split())
