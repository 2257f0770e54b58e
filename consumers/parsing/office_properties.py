"""The core properties of an Office file, and which stated titles are worth believing."""

import re
import zipfile
from collections.abc import Iterator

from lxml import etree

from consumers.parsing.decoding import clean_text
from consumers.parsing.zip_archive import read_member

_CORE_PART, _PROGRAM_PART, _CUSTOM_PART = (f"docProps/{name}.xml" for name in ("core", "app", "custom"))
_KEPT = ("creator", "subject", "description", "keywords", "created", "modified", "language")
_UNUSED = frozenset(("revision", "lastPrinted", "version", "identifier"))
_PROGRAM_KEPT = frozenset(("Manager", "Company", "HyperlinkBase"))
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
    """Author, dates and the like, those that the author named, and the title where it is worth believing."""
    core = {name: text for name, text in _values(package, _CORE_PART) if name not in _UNUSED}
    title = core.pop("title", "")
    found = {name: core.pop(name) for name in _KEPT if name in core}
    found |= core
    found |= {name.lower(): text for name, text in _values(package, _PROGRAM_PART) if name in _PROGRAM_KEPT}
    for name, text in _values(package, _CUSTOM_PART):
        found.setdefault(name, text)
    believed = sensible_title(title)
    return ({"stated_title": title} if title and not believed else {}) | found, believed


def _values(package: zipfile.ZipFile, part: str) -> Iterator[tuple[str, str]]:
    """The properties that a part states; the text does not depend on them, so that damage is no error."""
    if part not in package.namelist():
        return
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(read_member(package, part), parser)
    except etree.XMLSyntaxError:
        return
    for node in root:
        text = clean_text(" ".join("".join(node.itertext()).split()))[:1000]
        name = clean_text(node.get("name") or "").strip()[:100] or etree.QName(node).localname
        if text:
            yield name, text
