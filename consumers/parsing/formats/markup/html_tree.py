"""Parses the bytes of an HTML page with lxml."""

import re
from typing import Any

from lxml import etree, html

from consumers.omissions import Omissions
from consumers.parsing.decoding import clean_text, decode
from consumers.parsing.limits import Damaged, NotADocument
from consumers.parsing.xml_limits import report_limit

Element = Any
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_UNCLOSED = re.compile(r"<(embed|source|track|wbr)(\s[^<>]*)?>", re.IGNORECASE)
"""Void elements (HTML, 13.1.2) unknown to libxml2, which takes everything after such an element for its content."""
_DECLARED_WITHIN = 1024
"""Bytes at the beginning of a page in which its encoding must be declared (HTML, 4.2.5.4)."""


def tree(data: bytes, omissions: Omissions, charset: str = "") -> Element | None:
    """Returns the document's root element, or None if the document is empty.

    The encoding must fit the bytes. If several encodings fit, `charset` decides, else the page's declaration. `charset` is
    stated outside the page, as in a mail header.
    """
    declared = _DECLARED.search(data[:_DECLARED_WITHIN])
    try:
        text = decode(data, charset or (declared[1].decode("ascii") if declared else ""))
    except NotADocument:
        text = clean_text(data.decode("utf-8", "replace"))
    text = _UNCLOSED.sub(r"<\1\2></\1>", text)
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True)
    try:
        root = html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError) as error:
        if "empty" in str(error).lower():
            return None
        if "unknown error" in str(error):  # libxml2's error when it runs out of memory; other errors have names
            raise MemoryError from error
        raise Damaged(f"not HTML that can be read: {error}; save it again") from error
    report_limit(parser.error_log, omissions)
    return root
