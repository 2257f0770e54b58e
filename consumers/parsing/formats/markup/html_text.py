"""Converts an HTML tree to blocks in reading order, under their headings.

Text that a page does not show (menus, controls, hidden parts, frames) is reported to the outline's omissions.
"""

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from lxml import etree

from consumers.omissions import Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.embedded_data import embedded_picture
from consumers.parsing.formats.markup.html_elements import (
    Element,
    LeftOut,
    OpenLists,
    description,
    expansion,
    is_unread,
    pictures_below,
)
from consumers.parsing.formats.markup.html_tree import tree
from consumers.parsing.formats.markup.link_targets import link_to, place_links
from consumers.parsing.outline import Outline
from consumers.parsing.spanned_tables import Cell, read_rows, span
from consumers.types import Link

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    """
    p div section article main header footer aside blockquote pre ul ol dl dt dd li figure figcaption table caption
    address fieldset form hr details summary body html center tr td th thead tbody tfoot
""".split()
)
_TABLE_PARTS = frozenset(("thead", "tbody", "tfoot", "tr", "td", "th", "caption", "colgroup", "col", "script", "style"))
_MAX_FRAMES = 3
Pictures = Callable[[str], Callable[[], bytes] | None]
"""Returns a function that reads the picture at an address, or None if the file does not contain the picture."""


@dataclass(slots=True)
class HtmlWalk:
    """Adds everything visible in a tree to an outline.

    Elements in `left_out` are not added but reported. `lines`: whether line numbers in the tree are those of the file.
    `pictures` finds the pictures that the file contains. `frames` is the number of frames around this text. The walk does not
    recurse, so the depth of the tree is not limited.
    """

    outline: Outline
    left_out: LeftOut = field(default_factory=dict)
    lines: bool = True
    page: int | None = None
    pictures: Pictures = embedded_picture
    frames: int = 0
    _parts: list[str] = field(default_factory=list, init=False)
    _line: int | None = field(default=None, init=False)
    _item: str = field(default="", init=False)
    _joint: str = field(default="\n\n", init=False)
    _lists: OpenLists = field(default_factory=OpenLists, init=False)
    _pre_depth: int = field(default=0, init=False)
    _links: list[Link] = field(default_factory=list, init=False)
    """Links of the current block."""
    _block_pictures: list[tuple[Callable[[], bytes], str, bool]] = field(default_factory=list, init=False)
    """Pictures in the current block: (function that reads the picture, name, whether it has a description)."""
    _anchor: tuple[str, int] | None = field(default=None, init=False)
    """The open link: (target, number of parts before the link)."""

    def run(self, root: Element) -> None:
        skip: Element | None = None
        walk = etree.iterwalk(root, events=("start", "end"))
        for event, node in walk:
            tag = node.tag if isinstance(node.tag, str) else ""
            if event == "end" and skip is not None and node is skip:
                self._words(node.tail)
            elif event == "end":
                self._close(node, tag, node is root)
            elif self._is_taken_whole(node, tag):
                walk.skip_subtree()
                skip = node
            else:
                self._open(node, tag)
        self._flush()

    def _is_taken_whole(self, node: Element, tag: str) -> bool:
        """Adds or reports a frame, heading, table or unread element with everything below it. Returns False for other
        elements."""
        if tag == "iframe" and node.get("srcdoc") and self.frames < _MAX_FRAMES:
            self._frame(node)
        elif is_unread(node, self.left_out, self.outline.omissions):
            if tag == "svg" and node not in self.left_out:
                self._pictures(node)
        elif tag in _HEADINGS or (tag == "table" and not self._is_layout(node)):
            self._flush()
            self._heading(node, tag) if tag in _HEADINGS else self._table(node)
            self._pictures(node)
        else:
            return False
        return True

    def _open(self, node: Element, tag: str) -> None:
        if tag in _BLOCKS:
            self._flush()
            self._lists.begin(node)
            self._pre_depth += tag == "pre"
            if tag in ("li", "dt", "dd"):
                self._item, self._joint = (self._lists.number(node) or "- " if tag == "li" else ""), "\n"
        elif tag == "br":
            self._parts.append("\n")
        elif tag == "a" and node.get("href"):
            self._anchor = (node.get("href"), len(self._parts))
        elif tag == "img":
            self._pictures(node)
        if self._line is None:
            self._line = node.sourceline
        self._words(description(node, self.outline.omissions))
        self._words(node.text)

    def _close(self, node: Element, tag: str, is_root: bool) -> None:
        self._words(expansion(node))
        if tag in _BLOCKS:
            self._flush()
            self._lists.end(node)
            self._pre_depth -= tag == "pre"
        elif tag == "a":
            self._end_link()
            self._anchor = None
        if not is_root:
            self._words(node.tail)

    def _pictures(self, node: Element) -> None:
        """Queues the pictures in an element that are in the file. The pictures are added after the current block."""
        for address, described in pictures_below(node, self.left_out):
            image = self.pictures(address)
            if image is not None:
                name = address.partition(",")[0] if address.startswith("data:") else posixpath.basename(address)
                self._block_pictures.append((image, name, described))

    def _words(self, text: str | None) -> None:
        if text:
            self._parts.append(text if self._pre_depth else _collapsed(text))

    def _end_link(self) -> None:
        """Adds the link with its words to the block. A link around several blocks belongs to the first block with words."""
        if self._anchor is not None:
            target, first = self._anchor
            words = "".join(self._parts[first:])
            if words.strip() and (link := link_to(target, clean_text(words))):
                self._links.append(link)
            self._anchor = None if words.strip() else (target, 0)

    def _flush(self) -> None:
        self._end_link()
        text = clean_text("".join(self._parts)).strip()
        if text:
            if not self._pre_depth:
                text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
            joint = self._joint if self._item or self._lists else "\n\n"
            text = self._item + text
            line = self._line if self.lines else None
            self.outline.text(text, joint, line=line, page=self.page, links=place_links(self._links, text))
            self._item, self._joint, self._links = "", "\n", []
        if not self._lists:
            self._joint = "\n\n"
        self._parts, self._line = [], None
        for image, name, described in self._block_pictures:
            self.outline.picture(image, name, described=described, page=self.page)
        self._block_pictures = []

    def _heading(self, node: Element, tag: str) -> None:
        line = node.sourceline if self.lines else None
        text = self._visible(node)
        self.outline.heading(_HEADINGS[tag], text, line=line, page=self.page, links=self._links_below(node))

    def _visible(self, node: Element, omissions: Omissions | None = None) -> str:
        """Returns the visible text of an element on one line. Other text is added to `omissions`, by default the outline's."""
        omissions = self.outline.omissions if omissions is None else omissions
        parts = [description(node, omissions), node.text or ""]
        skip: Element | None = None
        lists = OpenLists()
        walk = etree.iterwalk(node, events=("start", "end"))
        for event, below in walk:
            if below is node:
                continue
            if event == "end":
                if below is not skip:
                    lists.end(below)
                    parts.append(expansion(below))
                parts.append(" " if below.tag in _BLOCKS or below.tag in ("td", "th") else "")
                parts.append(below.tail or "")
            elif is_unread(below, self.left_out, omissions):
                walk.skip_subtree()
                skip = below
            else:
                parts.append(" " if below.tag in _BLOCKS or below.tag in ("br", "td", "th", "tr") else "")
                lists.begin(below)
                parts += [lists.number(below), description(below, omissions), below.text or ""]
        return clean_text(" ".join("".join(parts).split()))

    def _frame(self, node: Element) -> None:
        """Adds the page in an iframe's `srcdoc` attribute (HTML, 4.8.5)."""
        self._flush()
        page = tree(node.get("srcdoc").encode("utf-8", "replace"), self.outline.omissions)
        if page is not None:
            HtmlWalk(self.outline, {}, False, self.page, self.pictures, self.frames + 1).run(page)

    def _is_layout(self, table: Element) -> bool:
        """Whether a table only arranges blocks (page columns, code next to line numbers) and contains no data."""
        if table.get("role") in ("presentation", "none") or next(table.iter(*_HEADINGS), None) is not None:
            return True
        if next(table.iterdescendants("table"), None) is not None or _has_stray_content(table):
            return True
        cells = [cell for row in islice(_rows(table), 2) if row not in self.left_out for cell in row]
        return sum(cell.tag in ("td", "th") and cell not in self.left_out for cell in cells) == 1

    def _cells(self, row: Element) -> list[Cell]:
        is_head = row.getparent().tag == "thead"
        shown = (
            cell
            for cell in row
            if cell.tag in ("td", "th") and not is_unread(cell, self.left_out, self.outline.omissions)
        )
        return [
            Cell(self._visible(cell), span(cell.get("colspan")), span(cell.get("rowspan")), is_head or cell.tag == "th")
            for cell in shown
        ]

    def _table(self, table: Element) -> None:
        for caption in table.iterchildren("caption"):
            self.outline.text(self._visible(caption), line=caption.sourceline if self.lines else None, page=self.page)
        shown = [row for row in _rows(table) if not is_unread(row, self.left_out, self.outline.omissions)]
        cells = ((index, self._cells(row)) for index, row in enumerate(shown))
        done = 0
        for number, (index, text) in enumerate(read_rows(cells, self.outline.omissions), 1):
            line = shown[index].sourceline if self.lines else None
            links = [
                link for row in shown[done : index + 1] for link in self._links_below(row)
            ]  # with the links of the header
            done = index + 1
            placed = place_links(links, text)
            self.outline.text(
                text, "\n\n" if number == 1 else "\n", line=line, row=number, page=self.page, links=placed
            )

    def _links_below(self, node: Element) -> list[Link]:
        reported = Omissions()  # discarded: the omissions in links were reported with the node's text
        anchors = (each for each in node.iter("a") if each not in self.left_out)
        found = ((each.get("href"), self._visible(each, reported)) for each in anchors)
        links = (link_to(target, text) for target, text in found if target and text)
        return [link for link in links if link is not None]


def _rows(table: Element) -> Iterator[Element]:
    """Yields the rows of a table, without rows of tables inside its cells: they belong to the cell's text."""
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


def _collapsed(text: str) -> str:
    body = " ".join(text.split())
    if not body:
        return " "
    return f"{' ' if text[0].isspace() else ''}{body}{' ' if text[-1].isspace() else ''}"


def add_page(outline: Outline, data: bytes, charset: str = "") -> None:
    """Adds the text of a page inside another file, such as the body of a message."""
    if (root := tree(data, outline.omissions, charset)) is not None:
        HtmlWalk(outline, lines=False).run(root)
