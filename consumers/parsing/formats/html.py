"""HTML by lxml: the visible text in reading order, under its headings."""

from collections.abc import Iterator
from typing import Any

from lxml import etree, html

from consumers.failure_codes import FailureCode
from consumers.parsing.decoding import clean_text, refuse_binary
from consumers.parsing.limits import Limits, Unreadable
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import is_header, row_text
from consumers.splitting import ParsedText

_HIDDEN_WORDS = """
    script style template noscript svg math head title nav iframe object embed audio video canvas button select
    input textarea dialog
"""
_HIDDEN = frozenset(_HIDDEN_WORDS.split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS_WORDS = """
    p div section article main header footer aside blockquote pre ul ol dl dt dd li figure figcaption table caption
    address fieldset form hr details summary body html center
"""
_BLOCKS = frozenset(_BLOCKS_WORDS.split())
_TITLE_ENDS = (" - ", " – ", " — ", " | ", " :: ", " · ", " » ")
Element = Any


def parse_html(data: bytes, limits: Limits) -> ParsedText:
    refuse_binary(data)
    outline = Outline(limits.text_chars)
    root = tree(data)
    if root is None:
        return ParsedText(())
    walk(root, outline)
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


def walk(root: Element, outline: Outline, *, lines: bool = True, page: int | None = None, level: int = 0) -> None:
    """Put everything visible below `root` into the outline. `level` is added to that of its headings."""
    _HtmlWalk(outline, lines, page, level).run(root)


class _HtmlWalk:
    """Goes through the tree with lxml's own iterator: nothing here recurses, so depth costs nothing."""

    def __init__(self, outline: Outline, lines: bool, page: int | None, level: int) -> None:
        self.outline = outline
        self.lines = lines
        self.page = page
        self.level = level
        self.parts: list[str] = []
        self.line: int | None = None
        self.item = ""
        self.joint = "\n\n"
        self.lists = 0
        self.pre_depth = 0

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
                if tag in _HIDDEN or not tag or node.get("hidden") is not None or tag in ("table", *_HEADINGS):
                    if tag in ("table", *_HEADINGS):
                        self._whole(node, tag)
                    skip = node
                    continue
                self._open(node, tag)
            else:
                self._close(node, tag)
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
        if self.line is None:
            self.line = node.sourceline
        self._words(node.text)

    def _close(self, node: Element, tag: str) -> None:
        if tag in _BLOCKS:
            self._flush()
            self.lists -= tag in ("ul", "ol", "dl")
            self.pre_depth -= tag == "pre"
        self._words(node.tail)

    def _words(self, text: str | None) -> None:
        if text:
            self.parts.append(text if self.pre_depth else _collapsed(text))

    def _flush(self) -> None:
        text = clean_text("".join(self.parts)).strip()
        if text:
            if not self.pre_depth:
                text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
            joint = self.joint if self.item or self.lists else "\n\n"
            self.outline.text(self.item + text, joint, line=self.line if self.lines else None, page=self.page)
            self.item, self.joint = "", "\n"
        if not self.lists:
            self.joint = "\n\n"
        self.parts, self.line = [], None

    def _whole(self, node: Element, tag: str) -> None:
        self._flush()
        line = node.sourceline if self.lines else None
        if tag in _HEADINGS:
            self.outline.heading(self.level + _HEADINGS[tag], clean_text(_visible(node)), line=line, page=self.page)
            return
        self._table(node)

    def _table(self, table: Element) -> None:
        rows = []
        for row in _rows(table):
            cells = [cell for cell in row if cell.tag in ("td", "th")]
            if cells:
                marked = all(cell.tag == "th" for cell in cells)
                rows.append((row.sourceline, marked, [clean_text(_visible(cell)) for cell in cells]))
        header: list[str] = []
        if len(rows) > 1 and (rows[0][1] or is_header(rows[0][2])):
            header = rows.pop(0)[2]
        for number, (line, _, cells) in enumerate(rows, 1):
            where = line if self.lines else None
            self.outline.text(
                row_text(header, cells), "\n\n" if number == 1 else "\n", line=where, row=number, page=self.page
            )


def _rows(table: Element) -> Iterator[Element]:
    """A table's own rows; those of a table inside one of its cells belong to that cell's text."""
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child if row.tag == "tr")


def _visible(node: Element) -> str:
    parts = [node.text or ""]
    skip: Element | None = None
    for event, below in etree.iterwalk(node, events=("start", "end")):
        if below is node:
            continue
        if skip is None and event == "start":
            if below.tag in _HIDDEN or not isinstance(below.tag, str):
                skip = below
            else:
                parts.append(" " if below.tag in _BLOCKS or below.tag in ("br", "td", "th", "tr") else "")
                parts.append(below.text or "")
        elif event == "end" and (skip is None or skip is below):
            skip = None
            parts.append(" " if below.tag in _BLOCKS or below.tag in ("td", "th") else "")
            parts.append(below.tail or "")
    return " ".join("".join(parts).split())


def _collapsed(text: str) -> str:
    body = " ".join(text.split())
    if not body:
        return " "
    return f"{' ' if text[0].isspace() else ''}{body}{' ' if text[-1].isspace() else ''}"


def _title(root: Element, outline: Outline) -> str:
    node = root.find(".//title")
    title = " ".join(clean_text(_visible(node)).split()) if node is not None else ""
    heading = outline.first_heading
    # "Zeppelin - An Encyclopedia" over a page whose heading is "Zeppelin": the site's name is no part of the subject.
    if heading and (not title or any(title.startswith(heading + end) for end in _TITLE_ENDS)):
        return heading
    return title


def _metadata(root: Element) -> dict[str, str]:
    found = {}
    for node in root.iterfind(".//meta"):
        name, content = (node.get("name") or "").lower(), node.get("content")
        if name in ("author", "description", "keywords", "date") and content:
            found[name] = clean_text(content)[:1000]
    if language := root.get("lang"):
        found["language"] = clean_text(language)[:40]
    return found
