"""From the bytes of an HTML page to its tree, by lxml."""

import re
from typing import Any

from lxml import etree, html

from consumers.failure_codes import FailureCode
from consumers.parsing.decoding import clean_text, decode
from consumers.parsing.limits import NotADocument, Unreadable

Element = Any
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_UNCLOSED = re.compile(r"<(embed|source|track|wbr)(\s[^<>]*)?>", re.IGNORECASE)
"""Elements without content (HTML, 13.1.2) that libxml2 does not know as such: it takes all that follows for their content."""
_DECLARED_WITHIN = 1024
"""A page declares its encoding in its first kilobyte (HTML, 4.2.5.4)."""


def tree(data: bytes, charset: str = "") -> Element | None:
    """The document's root; None when there is nothing in it. The encoding is the one that fits the bytes: a page's own
    declaration, or the `charset` of its envelope, only decides between several that do."""
    declared = _DECLARED.search(data[:_DECLARED_WITHIN])
    try:
        text = decode(data, charset or (declared[1].decode("ascii") if declared else ""))
    except NotADocument:
        text = clean_text(data.decode("utf-8", "replace"))
    text = _UNCLOSED.sub(r"<\1\2></\1>", text)
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
    try:
        return html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError) as error:
        if "empty" in str(error).lower():
            return None
        if "unknown error" in str(
            error
        ):  # all that libxml2 says when it gets no memory; it has a name for anything else
            raise MemoryError from error
        raise Unreadable(f"not HTML that can be read: {error}; save it again", FailureCode.DAMAGED) from error
