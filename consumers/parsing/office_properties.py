"""The properties of an Office file, and the check whether its title is meaningful."""

import re
import zipfile
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from lxml import etree

from consumers.parsing.decoding import clean_text
from consumers.parsing.zip_archive import optional_xml

_CORE_PART, _PROGRAM_PART, _CUSTOM_PART = (f"docProps/{name}.xml" for name in ("core", "app", "custom"))
_KEPT = ("creator", "subject", "description", "keywords", "created", "modified", "language")
_UNUSED = frozenset(("revision", "lastPrinted", "version", "identifier"))
_PROGRAM_KEPT = frozenset(("Manager", "Company", "HyperlinkBase"))
_OLE_KEPT = ("subject", "author", "keywords", "comments", "manager", "company")
_OLE_DATES = {"created": "create_time", "modified": "last_saved_time"}
_FIRST_YEAR = 1980
"""Dates before this year come from empty fields."""
# Titles that programs write by default.
_NO_TITLE = re.compile(
    r"untitled.*|(microsoft |word |powerpoint |excel )+.*|(\w+ (de |do )?)?powerpoint([ -]\w+)?|presentation\d*|document\d*|"
    r"slide \d+|"
    r"book\d*|.*\.(docx?|pptx?|xlsx?|pdf|tex|dvi|indd|odt|rtf|txt|tiff?|jpe?g|png|bmp|gif)",
    re.IGNORECASE,
)


def sensible_title(stated: str) -> str:
    """Returns the title with normalised spaces, or "" if a program generated it."""
    title = " ".join(clean_text(stated).split())
    return "" if len(title) > 300 or _NO_TITLE.fullmatch(title) else title


def document_properties(package: zipfile.ZipFile) -> tuple[dict[str, str], str]:
    """Returns (properties, title). The properties include author, dates and custom properties. The title is "" if it is
    not meaningful."""
    core = {name: text for name, text in _values(package, _CORE_PART) if name not in _UNUSED}
    title = core.pop("title", "")
    found = {name: core.pop(name) for name in _KEPT if name in core}
    found |= core
    found |= {name.lower(): text for name, text in _values(package, _PROGRAM_PART) if name in _PROGRAM_KEPT}
    for name, text in _values(package, _CUSTOM_PART):
        found.setdefault(name, text)
    meaningful = sensible_title(title)
    return ({"stated_title": title} if title and not meaningful else {}) | found, meaningful


def ole_properties(file: Any) -> tuple[dict[str, str], str]:
    """Returns (properties, title) from the summary of an OLE file ([MS-OLEPS]), as `document_properties` does."""
    stated = file.get_metadata()
    encoding = f"cp{stated.codepage}" if isinstance(stated.codepage, int) and stated.codepage > 0 else "utf-8"

    def value(name: str) -> str:
        found = getattr(stated, name, None)
        try:
            text = found.decode(encoding, "replace") if isinstance(found, bytes) else ""
        except LookupError:
            text = found.decode("cp1252", "replace") if isinstance(found, bytes) else ""
        return " ".join(clean_text(text.rstrip("\0")).split())[:1000]

    found = {name: text for name in _OLE_KEPT if (text := value(name))}
    for name, attribute in _OLE_DATES.items():
        date = getattr(stated, attribute, None)
        if isinstance(date, datetime) and date.year >= _FIRST_YEAR:
            found[name] = f"{date.isoformat(timespec='seconds')}Z"
    title = value("title")
    meaningful = sensible_title(title)
    return ({"stated_title": title} if title and not meaningful else {}) | found, meaningful


def _values(package: zipfile.ZipFile, part: str) -> Iterator[tuple[str, str]]:
    """Yields (name, value) of each property in a part. A damaged part yields no properties, because the text does not depend on
    them."""
    root = optional_xml(package, part)
    for node in () if root is None else root:
        text = clean_text(" ".join("".join(node.itertext()).split()))[:1000]
        name = clean_text(node.get("name") or "").strip()[:100] or etree.QName(node).localname
        if text:
            yield name, text
