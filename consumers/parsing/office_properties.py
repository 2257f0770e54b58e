"""The core properties of an Office file, and which stated titles are worth believing."""

import re
import zipfile

from lxml import etree

from consumers.parsing.decoding import clean_text
from consumers.parsing.zip_archive import read_member

_PART = "docProps/core.xml"
_KEPT = ("creator", "subject", "description", "keywords", "created", "modified", "language")
# What programs write when nobody gave a title.
_NO_TITLE = re.compile(
    r"untitled.*|(microsoft |word |powerpoint |excel )+.*|powerpoint presentation|presentation\d*|document\d*|slide \d+|"
    r"book\d*|.*\.(docx?|pptx?|xlsx?|pdf|tex|dvi|indd|odt|rtf|txt)",
    re.IGNORECASE,
)


def sensible_title(stated: str) -> str:
    """The title, or "" where it is one that a program made up."""
    title = " ".join(clean_text(stated).split())
    return "" if len(title) > 300 or _NO_TITLE.fullmatch(title) else title


def document_properties(package: zipfile.ZipFile) -> tuple[dict[str, str], str]:
    """Author, dates and the like, and the title where it is worth believing."""
    if _PART not in package.namelist():
        return {}, ""
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        root = etree.fromstring(read_member(package, _PART), parser)
    except etree.XMLSyntaxError:
        return {}, ""  # the text does not depend on it
    found = {}
    for node in root:
        name = etree.QName(node).localname if isinstance(node.tag, str) else ""
        if node.text and node.text.strip():
            found[name] = clean_text(node.text.strip())[:1000]
    return {name: found[name] for name in _KEPT if name in found}, sensible_title(found.get("title", ""))
