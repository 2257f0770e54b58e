"""Converts an HTML tree to blocks in reading order, under their headings.

Text that a page does not show (menus, controls, hidden parts, frames) is reported to the outline's omissions.
"""

import posixpath
from collections.abc import Callable, Iterator
from itertools import islice

from lxml import etree

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.embedded_data import embedded_picture
from consumers.parsing.formats.markup.html_elements import (
    NOTHING,
    Element,
    LeftOut,
    description,
    expansion,
    is_unread,
    pictures_below,
)
from consumers.parsing.formats.markup.html_tables import MAX_COLUMNS, read_rows
from consumers.parsing.formats.markup.html_tree import tree
from consumers.parsing.formats.markup.link_targets import link_to, place_links
from consumers.parsing.outline import Outline
from consumers.types import Link

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LAYOUT_MARKS = tuple(_HEADINGS)
_BLOCKS_WORDS = """
    p div section article main header footer aside blockquote pre ul ol dl dt dd li figure figcaption table caption
    address fieldset form hr details summary body html center tr td th thead tbody tfoot
"""
_BLOCKS = frozenset(_BLOCKS_WORDS.split())
_TABLE_PARTS = frozenset(("thead", "tbody", "tfoot", "tr", "td", "th", "caption", "colgroup", "col", "script", "style"))
_DEEPEST_FRAME = 3
Pictures = Callable[[str], Callable[[], bytes] | None]
"""Returns a function that reads the picture at an address, or None if the file does not contain the picture."""


def walk(
    root: Element,
    outline: Outline,
    *,
    left_out: LeftOut = NOTHING,
    lines: bool = True,
    page: int | None = None,
    level: int = 0,
    pictures: Pictures = embedded_picture,
) -> None:
    """Add everything visible below `root` to the outline. The elements in `left_out` are reported with their kinds instead.

    `level` is added to the level of each heading. `pictures` finds pictures that are in the file.
    """
    _HtmlWalk(outline, left_out, lines, page, level, pictures).run(root)


class _HtmlWalk:
    """Walks the tree with lxml's iterator. Nothing recurses, so the depth of the tree is not limited."""

    def __init__(
        self,
        outline: Outline,
        left_out: LeftOut,
        lines: bool,
        page: int | None,
        level: int,
        pictures: Pictures,
        frames: int = 0,
    ) -> None:
        """`frames` is the number of frames around this text."""
        self.frames = frames
        self.outline = outline
        self.left_out = left_out
        self.lines = lines
        self.page = page
        self.level = level
        self.pictures = pictures
        self.parts: list[str] = []
        self.line: int | None = None
        self.item = ""
        self.joint = "\n\n"
        self.lists = 0
        self.pre_depth = 0
        self.links: list[Link] = []
        """Links of the current block."""
        self.block_pictures: list[tuple[Callable[[], bytes], str, bool]] = []
        """Pictures in the current block, their names, and whether each has a description."""
        self.anchor: tuple[str, int] | None = None
        """Target of the open link, and the number of parts before it."""

    def run(self, root: Element) -> None:
        skip: Element | None = None
        for event, node in etree.iterwalk(root, events=("start", "end")):
            tag = node.tag if isinstance(node.tag, str) else ""
            if skip is not None:
                if event == "end" and node is skip:
                    skip = None
                    self._words(node.tail)
                continue
            if event == "start":
                if tag == "iframe" and node.get("srcdoc") and self.frames < _DEEPEST_FRAME:
                    self._frame(node)
                    skip = node
                elif is_unread(node, self.left_out, self.outline.omissions):
                    if tag == "svg" and node not in self.left_out:
                        self._pictures(node)
                    skip = node
                elif tag in _HEADINGS or (tag == "table" and not self._is_layout(node)):
                    self._whole(node, tag)
                    self._pictures(node)
                    skip = node
                else:
                    self._open(node, tag)
            else:
                self._close(node, tag, node is root)
        self._flush()

    def _open(self, node: Element, tag: str) -> None:
        if tag in _BLOCKS:
            self._flush()
            self.lists += tag in ("ul", "ol", "dl")
            self.pre_depth += tag == "pre"
            if tag in ("li", "dt", "dd"):
                self.item, self.joint = ("- " if tag == "li" else ""), "\n"
        elif tag == "br":
            self.parts.append("\n")
        elif tag == "a" and node.get("href"):
            self.anchor = (node.get("href"), len(self.parts))
        elif tag == "img":
            self._pictures(node)
        if self.line is None:
            self.line = node.sourceline
        self._words(description(node, self.outline.omissions))
        self._words(node.text)

    def _close(self, node: Element, tag: str, is_root: bool) -> None:
        self._words(expansion(node))
        if tag in _BLOCKS:
            self._flush()
            self.lists -= tag in ("ul", "ol", "dl")
            self.pre_depth -= tag == "pre"
        elif tag == "a":
            self._end_link()
            self.anchor = None
        if not is_root:
            self._words(node.tail)

    def _pictures(self, node: Element) -> None:
        """Add the pictures in an element, if they are in the file, behind the current block."""
        for address, described in pictures_below(node, self.left_out):
            image = self.pictures(address)
            if image is not None:
                name = address.partition(",")[0] if address.startswith("data:") else posixpath.basename(address)
                self.block_pictures.append((image, name, described))

    def _words(self, text: str | None) -> None:
        if text:
            self.parts.append(text if self.pre_depth else _collapsed(text))

    def _end_link(self) -> None:
        """Add the link with its words to the block. A link around several blocks belongs to the first one with words."""
        if self.anchor is not None:
            target, first = self.anchor
            words = "".join(self.parts[first:])
            if words.strip() and (link := link_to(target, clean_text(words))):
                self.links.append(link)
            self.anchor = None if words.strip() else (target, 0)

    def _flush(self) -> None:
        self._end_link()
        text = clean_text("".join(self.parts)).strip()
        if text:
            if not self.pre_depth:
                text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
            joint = self.joint if self.item or self.lists else "\n\n"
            text = self.item + text
            line = self.line if self.lines else None
            self.outline.text(text, joint, line=line, page=self.page, links=place_links(self.links, text))
            self.item, self.joint, self.links = "", "\n", []
        if not self.lists:
            self.joint = "\n\n"
        self.parts, self.line = [], None
        for image, name, described in self.block_pictures:
            self.outline.picture(image, name, described=described, page=self.page)
        self.block_pictures = []

    def _whole(self, node: Element, tag: str) -> None:
        self._flush()
        line = node.sourceline if self.lines else None
        if tag in _HEADINGS:
            text = clean_text(self._visible(node))
            links = self._links_below(node)
            self.outline.heading(self.level + _HEADINGS[tag], text, line=line, page=self.page, links=links)
            return
        self._table(node)

    def _visible(self, node: Element) -> str:
        return visible_text(node, self.left_out, self.outline.omissions)

    def _frame(self, node: Element) -> None:
        """Add the page in an iframe's `srcdoc` attribute (HTML, 4.8.5)."""
        self._flush()
        page = tree(node.get("srcdoc").encode("utf-8", "replace"))
        if page is not None:
            _HtmlWalk(self.outline, NOTHING, False, self.page, self.level, self.pictures, self.frames + 1).run(page)

    def _is_layout(self, table: Element) -> bool:
        """Whether a table only arranges blocks (page columns, code next to its line numbers) and has no rows of values."""
        if table.get("role") in ("presentation", "none") or next(table.iter(*_LAYOUT_MARKS), None) is not None:
            return True
        if next(table.iterdescendants("table"), None) is not None or _has_stray_content(table):
            return True
        cells = [cell for row in islice(_rows(table), 2) if row not in self.left_out for cell in row]
        return sum(cell.tag in ("td", "th") and cell not in self.left_out for cell in cells) == 1

    def _cells(self, row: Element) -> list[Element]:
        omissions = self.outline.omissions
        return [cell for cell in row if cell.tag in ("td", "th") and not is_unread(cell, self.left_out, omissions)]

    def _table(self, table: Element) -> None:
        for caption in table.iterchildren("caption"):
            self.outline.text(self._cell_text(caption), line=caption.sourceline if self.lines else None, page=self.page)
        shown = [row for row in _rows(table) if not is_unread(row, self.left_out, self.outline.omissions)]
        read = read_rows([(row.sourceline, self._cells(row)) for row in shown], self._cell_text, self._report_columns)
        rows, links = list(read), self._links_below(table)
        for number, (line, text) in enumerate(rows, 1):
            where = line if self.lines else None
            here = links if number == len(rows) else [link for link in links if link.text in text]
            links = [link for link in links if link not in here]
            placed = place_links(here, text)
            self.outline.text(
                text, "\n\n" if number == 1 else "\n", line=where, row=number, page=self.page, links=placed
            )

    def _links_below(self, node: Element) -> list[Link]:
        found = ((each.get("href"), self._visible(each)) for each in node.iter("a") if each not in self.left_out)
        links = (link_to(target, clean_text(text)) for target, text in found if target and text)
        return [link for link in links if link is not None]

    def _report_columns(self, count: int) -> None:
        self.outline.omissions.add(OmissionKind.TOO_LARGE, f"cells beyond {MAX_COLUMNS:,} columns", count)

    def _cell_text(self, cell: Element) -> str:
        return clean_text(self._visible(cell))


def _rows(table: Element) -> Iterator[Element]:
    """Yield a table's own rows. Rows of a table inside a cell belong to the text of that cell."""
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child if row.tag == "tr")


def _has_stray_content(table: Element) -> bool:
    """Whether a table has text outside its cells, which browsers show before the table (HTML, 13.2.6.1)."""
    for node in table.iter("table", "thead", "tbody", "tfoot", "tr"):
        texts = [node.text, *(child.tail for child in node)]
        if any(text and text.strip() for text in texts) or any(child.tag not in _TABLE_PARTS for child in node):
            return True
    return False


def visible_text(node: Element, left_out: LeftOut, omissions: Omissions) -> str:
    """Return the visible text of one element on one line."""
    parts = [description(node, omissions), node.text or ""]
    skip: Element | None = None
    for event, below in etree.iterwalk(node, events=("start", "end")):
        if below is node:
            continue
        if skip is None and event == "start":
            if is_unread(below, left_out, omissions):
                skip = below
            else:
                parts.append(" " if below.tag in _BLOCKS or below.tag in ("br", "td", "th", "tr") else "")
                parts.append(description(below, omissions))
                parts.append(below.text or "")
        elif event == "end" and (skip is None or skip is below):
            parts.append(expansion(below) if skip is None else "")
            skip = None
            parts.append(" " if below.tag in _BLOCKS or below.tag in ("td", "th") else "")
            parts.append(below.tail or "")
    return " ".join("".join(parts).split())


def _collapsed(text: str) -> str:
    body = " ".join(text.split())
    if not body:
        return " "
    return f"{' ' if text[0].isspace() else ''}{body}{' ' if text[-1].isspace() else ''}"
