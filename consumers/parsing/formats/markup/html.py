"""HTML by lxml: the text of a page's content, without navigation, contents tables and permalinks."""

from typing import Any

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text, refuse_binary
from consumers.parsing.embedded_data import embedded_picture
from consumers.parsing.formats.markup.boilerplate import find_content
from consumers.parsing.formats.markup.html_elements import report
from consumers.parsing.formats.markup.html_text import HtmlWalk, Pictures
from consumers.parsing.formats.markup.html_tree import tree
from consumers.parsing.limits import Limits
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText

_TITLE_ENDS = (" - ", " – ", " — ", " | ", " :: ", " · ", " » ")
_DATE_NAMES = {
    **dict.fromkeys(("article:published_time", "datepublished", "pubdate", "publish-date", "publish_date"), "date"),
    **dict.fromkeys(("dc.date", "dc.date.issued", "dcterms.date", "dcterms.issued", "dcterms.created"), "date"),
    **dict.fromkeys(("citation_publication_date", "citation_date"), "date"),
    **dict.fromkeys(("article:modified_time", "dcterms.modified", "last-modified"), "modified"),
}
"""Metadata keys for `meta` elements that contain the page's date."""
Element = Any


def parse_html(data: bytes, limits: Limits, omissions: Omissions, pictures: Pictures = embedded_picture) -> ParsedText:
    """Parses a page. `pictures` finds the pictures that the file contains."""
    refuse_binary(data)
    outline = Outline(limits.text_chars, omissions)
    root = tree(data, omissions)
    if root is None:
        return ParsedText(())
    content = find_content(root, omissions)
    HtmlWalk(outline, content.left_out, pictures=pictures).run(content.root)
    blocks = outline.done()
    title = _title(root, outline, omissions)
    return ParsedText(blocks, title, _metadata(root), pictures=tuple(outline.pictures))


def _title(root: Element, outline: Outline, omissions: Omissions) -> str:
    nodes = [node for node in root.iter("title") if next(node.iterancestors("svg"), None) is None]
    title, *others = [" ".join(clean_text("".join(node.itertext())).split()) for node in nodes] or [""]
    for other in others:
        report(OmissionKind.METADATA, other, omissions)
    heading = outline.first_heading
    # In the title "Zeppelin - An Encyclopedia" of a page with the heading "Zeppelin", the site's name is not part of the
    # subject.
    if heading and (not title or any(title.startswith(heading + end) for end in _TITLE_ENDS)):
        if title:
            omissions.add(OmissionKind.METADATA, title)
        return heading
    return title


def _metadata(root: Element) -> dict[str, str]:
    found = {}
    for node in root.iterfind(".//meta"):
        name, content = (node.get("name") or node.get("property") or "").lower(), node.get("content")
        name = _DATE_NAMES.get(name, name)
        if name in ("author", "description", "keywords", "date", "modified") and content:
            found[name] = clean_text(content)[:1000]
    for node in root.iterfind(".//link"):
        if (node.get("rel") or "").lower() == "canonical" and (address := node.get("href")):
            found["canonical"] = clean_text(address)[:1000]
    if language := root.get("lang"):
        found["language"] = clean_text(language)[:40]
    return found
