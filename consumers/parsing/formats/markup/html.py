"""HTML by lxml: the text of a page's content, without navigation, contents tables and permalinks."""

from typing import Any

from lxml import etree, html

from consumers.failure_codes import FailureCode
from consumers.parsing.decoding import clean_text, refuse_binary
from consumers.parsing.formats.markup.boilerplate import find_content
from consumers.parsing.formats.markup.html_text import visible_text, walk
from consumers.parsing.limits import Limits, Unreadable
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText

_TITLE_ENDS = (" - ", " – ", " — ", " | ", " :: ", " · ", " » ")
_DATE_NAMES = {
    **dict.fromkeys(("article:published_time", "datepublished", "pubdate", "publish-date", "publish_date"), "date"),
    **dict.fromkeys(("dc.date", "dc.date.issued", "dcterms.date", "dcterms.issued", "dcterms.created"), "date"),
    **dict.fromkeys(("citation_publication_date", "citation_date"), "date"),
    **dict.fromkeys(("article:modified_time", "dcterms.modified", "last-modified"), "modified"),
}
"""What pages call the date they bear."""
Element = Any


def parse_html(data: bytes, limits: Limits) -> ParsedText:
    refuse_binary(data)
    outline = Outline(limits.text_chars)
    root = tree(data)
    if root is None:
        return ParsedText(())
    content = find_content(root)
    walk(content.root, outline, left_out=content.left_out)
    blocks = outline.done()
    return ParsedText(blocks, _title(root, outline), _metadata(root))


def tree(data: bytes) -> Element | None:
    """The document's root; None when there is nothing in it. Encoding by mark, then by what the file says, then UTF-8."""
    if data[:3] == b"\xef\xbb\xbf" or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = None
    else:
        try:
            data.decode("utf-8")
            encoding = "utf-8"
        except UnicodeDecodeError:
            encoding = None
    parser = html.HTMLParser(encoding=encoding, remove_comments=True, remove_pis=True, no_network=True)
    try:
        return html.document_fromstring(data, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError) as error:
        if "empty" in str(error).lower():
            return None
        if "unknown error" in str(
            error
        ):  # all that libxml2 says when it gets no memory; it has a name for anything else
            raise MemoryError from error
        raise Unreadable(f"not HTML that can be read: {error}; save it again", FailureCode.DAMAGED) from error


def _title(root: Element, outline: Outline) -> str:
    node = root.find(".//title")
    title = " ".join(clean_text(visible_text(node)).split()) if node is not None else ""
    heading = outline.first_heading
    # "Zeppelin - An Encyclopedia" over a page whose heading is "Zeppelin": the site's name is no part of the subject.
    if heading and (not title or any(title.startswith(heading + end) for end in _TITLE_ENDS)):
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
