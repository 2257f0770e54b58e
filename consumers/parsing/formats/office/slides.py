"""PowerPoint files (PresentationML, ECMA-376 part 1, 19), parsed from their parts by lxml.

python-pptx is not used: it refuses strict files and omits diagrams, alternative content, comments and the text of
masters.
"""

from collections.abc import Iterator
from typing import Any

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.office.drawing import (
    A,
    add_pictures,
    all_words,
    alternative_texts,
    linked_texts,
    paragraphs,
)
from consumers.parsing.formats.office.package import ALTERNATE, OfficePackage, chosen, relation_id
from consumers.parsing.formats.office.tables import fill_table
from consumers.parsing.limits import Limits
from consumers.parsing.office_properties import document_properties
from consumers.parsing.outline import Outline, comment_text
from consumers.parsing.spanned_tables import Cell, span
from consumers.parsing.zip_archive import check_members, open_package
from consumers.splitting import ParsedText

Element = Any
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_SECTIONS = "{http://schemas.microsoft.com/office/powerpoint/2010/main}"
_SHAPES = frozenset(f"{P}{name}" for name in ("sp", "pic", "graphicFrame", "cxnSp", "contentPart"))
_TITLES = frozenset(("title", "ctrTitle"))
_MARGINS = frozenset(("ftr", "hdr", "dt"))
_COMMENTS = ("comments", "comment")


def parse_pptx(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    with open_package(data, limits) as archive:
        check_members(archive)
        package = OfficePackage(archive)
        metadata, title = document_properties(archive)
        reader = _SlideReader(package, limits, omissions)
        reader.read()
        package.report_unread(omissions)
    return ParsedText(reader.outline.done(), title or reader.title, metadata, pictures=tuple(reader.outline.pictures))


class _SlideReader:
    """Adds each slide under its title: shapes in file order, then notes and comments. Masters and layouts come last."""

    def __init__(self, package: OfficePackage, limits: Limits, omissions: Omissions) -> None:
        self.package = package
        self.limits = limits
        self.omissions = omissions
        self.outline = Outline(limits.text_chars, omissions)
        self.page: int | None = None
        self.title = ""
        """The first slide title of the file."""

    def read(self) -> None:
        main = self.package.main_part()
        root = self.package.tree(main)
        if root is None:
            return
        relations = self.package.relations(main)
        listed = [(node.get("id") or "", relations.get(relation_id(node))) for node in root.iter(f"{P}sldId")]
        slides = [(key, relation.target) for key, relation in listed if relation and not relation.external]
        self.limits.check_pages(len(slides), "slides")
        sections = dict(_sections(root))
        patterns: dict[str, None] = {}
        for number, (key, part) in enumerate(slides, 1):
            self.page = number
            self._slide(part, sections.get(key, ""))
            for layout in self.package.related(part, "slideLayout"):
                patterns[layout] = None
                patterns.update(dict.fromkeys(self.package.related(layout, "slideMaster")))
        self.page = None
        for part in patterns:
            self._pattern(part)
        masters = list(self.package.related(main, "slideMaster", "notesMaster", "handoutMaster"))
        layouts = [layout for master in masters for layout in self.package.related(master, "slideLayout")]
        for part in dict.fromkeys((*masters, *layouts)):
            if part not in patterns:
                self._unused_pattern(part)

    def _slide(self, part: str, section: str) -> None:
        root = self.package.tree(part)
        if root is None:
            return
        shapes = list(_shapes(root))
        title = next((shape for shape in shapes if _placeholder(shape) in _TITLES), None)
        heading = "" if title is None else " ".join(" ".join(paragraphs(title)).split())
        self.title = self.title or heading
        self.outline.heading(1, heading or f"Slide {self.page}", page=self.page)
        self.outline.text(section, page=self.page)
        for shape in shapes:
            self._shape(shape, part, is_heading=shape is title and bool(heading))
        for notes in self.package.related(part, "notesSlide"):
            self._notes(notes)
        for comments in self.package.related(part, *_COMMENTS):
            self._comments(comments)

    def _shape(self, shape: Element, part: str, is_heading: bool = False) -> None:
        described = list(alternative_texts(shape))
        for text in described:
            self.outline.text(text, "\n", page=self.page)
        if is_heading:
            return
        if shape.tag == f"{P}pic":
            add_pictures(shape, part, self.package, self.outline, described=bool(described), page=self.page)
        lines = list(paragraphs(shape))
        if _placeholder(shape) in _MARGINS:
            for text in lines:
                self.outline.running_text(text, page=self.page)
            return
        tables = list(shape.iter(f"{A}tbl"))
        for table in tables:
            self._table(table)
        for index, text in enumerate(lines if not tables else ()):
            self.outline.text(text, "\n\n" if index == 0 else "\n", page=self.page)
        for index, text in enumerate(linked_texts(shape, part, self.package)):
            self.outline.text(text, "\n\n" if index == 0 else "\n", page=self.page)

    def _table(self, table: Element) -> None:
        rows = [
            [
                Cell(text, span(cell.get("gridSpan")), span(cell.get("rowSpan")))
                for cell in row.iterchildren(f"{A}tc")
                if (text := " ".join(paragraphs(cell))) or not (cell.get("hMerge") or cell.get("vMerge"))
            ]
            for row in table.iterchildren(f"{A}tr")
        ]
        fill_table(self.outline, rows, self.page)

    def _notes(self, part: str) -> None:
        root = self.package.tree(part)
        for shape in () if root is None else _shapes(root):
            if _placeholder(shape) not in ("sldImg", "sldNum"):
                self._shape(shape, part)

    def _comments(self, part: str) -> None:
        """Adds legacy comments (a text, 19.4) and modern comments (a text body with replies, [MS-PPTX] 2.16)."""
        root = self.package.tree(part)
        for node in () if root is None else root.iter(f"{P}text", "{*}txBody"):
            text = " ".join(paragraphs(node)) or clean_text(node.text or "").strip()
            self.outline.text(comment_text(text), page=self.page)

    def _pattern(self, part: str) -> None:
        """Adds the texts that a layout or master shows on its slides. Reports the prompts in its placeholders."""
        root = self.package.tree(part)
        for shape in () if root is None else _shapes(root):
            kind = _placeholder(shape)
            if kind is None:
                self._shape(shape, part)
            elif (
                kind != "sldNum"
                and (prompt := " ".join(paragraphs(shape)))
                and prompt not in self.outline.running_texts
            ):
                self.omissions.add(OmissionKind.HIDDEN, prompt)

    def _unused_pattern(self, part: str) -> None:
        """Reports the texts and footers, but not the prompts, of a layout or master that no slide uses."""
        root = self.package.tree(part)
        for shape in () if root is None else _shapes(root):
            if _placeholder(shape) in (None, "ftr", "hdr"):
                for text in (*alternative_texts(shape), *paragraphs(shape)):
                    self.omissions.add(OmissionKind.HIDDEN, text)


def _sections(root: Element) -> Iterator[tuple[str, str]]:
    """Yields (id of the first slide, name) of each section."""
    for section in root.iter(f"{_SECTIONS}section"):
        first = next(section.iter(f"{_SECTIONS}sldId"), None)
        if first is not None and (name := (section.get("name") or "").strip()):
            yield first.get("id") or "", clean_text(name)


def _shapes(node: Element) -> Iterator[Element]:
    """Yields all shapes in file order, including shapes in groups."""
    for child in node:
        if child.tag in _SHAPES:
            yield child
        elif child.tag == ALTERNATE:
            for each in chosen(child, all_words):
                yield from _shapes(each)
        elif isinstance(child.tag, str):
            if child.tag == f"{P}nvGrpSpPr" and any(alternative_texts(child)):
                yield child
            yield from _shapes(child)


def _placeholder(shape: Element) -> str | None:
    """Returns the type of the placeholder that a shape fills; None if the shape is no placeholder."""
    node = next(shape.iter(f"{P}ph"), None)
    return None if node is None else (node.get("type") or "obj")
