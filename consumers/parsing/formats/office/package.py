"""The parts of an Office Open XML file (ECMA-376 part 2) and the relations between them.

Strict files (ISO/IEC 29500-1) differ from transitional files in the names of namespaces. This module translates the names, so
that parsers and libraries need to support only transitional files.
"""

import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.limits import Damaged
from consumers.parsing.zip_archive import parse_xml, read_again, read_member

Element = Any
_STRICT = b"http://purl.oclc.org/ooxml/"
_STRICT_NAME = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_TRANSITIONAL_NAME = rb"http://schemas.openxmlformats.org/\1/2006/"
_HYPHENATED = tuple(
    (b"/2006/" + infix + strict, b"/2006/" + infix + transitional)
    for infix in (b"", b"relationships/")
    for strict, transitional in (
        (b"extendedProperties", b"extended-properties"),
        (b"customProperties", b"custom-properties"),
    )
)
_RELATIONS = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_OFFICE_RELATIONS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"

_GLOSSARY = re.compile(r"/glossary/(?:document|header|footer|footnotes|endnotes|comments)\d*\.xml\Z")
"""Parts with the text of building blocks, which occur in templates."""

CHOICE, FALLBACK, ALTERNATE = (
    f"{{http://schemas.openxmlformats.org/markup-compatibility/2006}}{name}"
    for name in ("Choice", "Fallback", "AlternateContent")
)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation from one part to another."""

    kind: str
    """Last part of the relation's type: `header`, `chart`, `notesSlide`."""
    target: str
    """Name of the other part, or an address outside the file."""
    external: bool


class OfficePackage:
    """The parts of a file by name.

    A missing part is None, even if a relation refers to it, so that a file whose picture is missing is parsed.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._file = archive.fp
        self._names = {name.lower(): name for name in archive.namelist()}
        self._relations: dict[str, dict[str, Relation]] = {}

    def data(self, part: str) -> bytes | None:
        """Returns a part's content with transitional namespaces; None if the part is missing."""
        name = self._names.get(part.lower())
        return None if name is None else transitional(read_member(self._archive, name))

    def picture(self, part: str) -> Callable[[], bytes] | None:
        """Returns a function that reads a picture, even after the archive was closed; None if the part is missing."""
        name = self._names.get(part.lower())
        return None if name is None or self._file is None else partial(read_again, self._file, name)

    def tree(self, part: str) -> Element | None:
        data = self.data(part)
        return None if data is None else parse_xml(data, part)

    def main_part(self) -> str:
        """Returns the name of the part that contains the document itself."""
        for relation in self.relations("").values():
            if relation.kind == "officeDocument" and not relation.external:
                return relation.target
        raise Damaged("damaged: it names no part as the document; save it again")

    def relations(self, part: str) -> dict[str, Relation]:
        """Returns the relations of a part by id; of the file itself if `part` is ""."""
        if part not in self._relations:
            folder, name = posixpath.split(part)
            root = self.tree(posixpath.join(folder, "_rels", f"{name}.rels"))
            found = {}
            for node in () if root is None else root.iter(_RELATIONS):
                external = node.get("TargetMode") == "External"
                target = node.get("Target") or ""
                if not external:
                    target = posixpath.normpath(posixpath.join("/", folder, unquote(target))).lstrip("/")
                kind = (node.get("Type") or "").rpartition("/")[2]
                found[node.get("Id") or ""] = Relation(kind, target, external)
            self._relations[part] = found
        return self._relations[part]

    def related(self, part: str, *kinds: str) -> Iterator[str]:
        """Yields the names of the parts to which `part` has a relation of one of `kinds`. Omits external relations."""
        for relation in self.relations(part).values():
            if relation.kind in kinds and not relation.external:
                yield relation.target

    def report_unread(self, omissions: Omissions) -> None:
        """Reports content that no parser uses: embedded files, caches of other files, building blocks and bound
        data."""
        for name in sorted(self._names.values()):
            folder, _, base = name.rpartition("/")
            if folder.endswith(("/embeddings", "/externalLinks")) or "/pivotCache/pivotCacheDefinition" in name:
                omissions.add(OmissionKind.EMBEDDED, base)
            elif _GLOSSARY.search(name) or (folder == "customXml" and base.startswith("item")):
                root = None if "Props" in base else self.tree(name)
                words = "" if root is None else " ".join(" ".join(root.itertext()).split())
                if words:
                    omissions.add(OmissionKind.OTHER if folder == "customXml" else OmissionKind.HIDDEN, words)


def transitional(data: bytes) -> bytes:
    """Replaces the strict namespaces in XML by transitional ones."""
    if _STRICT not in data:
        return data
    data = _STRICT_NAME.sub(_TRANSITIONAL_NAME, data)
    for strict, hyphenated in _HYPHENATED:
        data = data.replace(strict, hyphenated)
    return data


def transitional_file(archive: zipfile.ZipFile, data: bytes) -> bytes:
    """Returns the file as a transitional file, for libraries that support no strict files."""
    parts = {member.filename: read_member(archive, member.filename) for member in archive.infolist()}
    if not any(_STRICT in part for part in parts.values()):
        return data
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as translated:
        for name, part in parts.items():
            translated.writestr(name, transitional(part) if name.endswith((".xml", ".rels", ".vml")) else part)
    return out.getvalue()


def whole_number(text: str | None, default: int = 0) -> int:
    """Returns the integer in an attribute; `default` if it is missing, invalid or implausibly large."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 8 else default


def relation_id(node: Element, attribute: str = "id") -> str:
    """Returns the id of the relation that an element refers to."""
    return node.get(f"{_OFFICE_RELATIONS}{attribute}") or ""


def chosen(alternate: Element, words: Callable[[Element], str]) -> Iterator[Element]:
    """Yields the alternatives of an element to parse (ECMA-376 part 3, 7.6): the first choice, and the fallback if it adds
    words."""
    choice = next(alternate.iterchildren(CHOICE), None)
    fallback = next(alternate.iterchildren(FALLBACK), None)
    known = set() if choice is None else set(words(choice).split())
    if choice is not None:
        yield choice
    if fallback is not None and not set(words(fallback).split()) <= known:
        yield fallback
