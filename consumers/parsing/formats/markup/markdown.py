"""Markdown by markdown-it-py (CommonMark and tables): the text without markup; front matter becomes metadata.

Each link becomes one of the document's `links`. In addition to CommonMark, this parser supports the syntax of Obsidian's and
Logseq's notes:
wikilinks, embeds, callouts, comments, highlights, block ids, tags and properties (`note_syntax.py`).
"""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import decode
from consumers.parsing.embedded_data import without_embedded_data
from consumers.parsing.formats.markup.front_matter import front_matter
from consumers.parsing.formats.markup.link_targets import is_media, link_to, place_links
from consumers.parsing.formats.markup.note_syntax import (
    WIKILINK,
    add_note_rules,
    is_sign_of_note,
    line_text,
    links_in_properties,
    page_properties,
    tags_in,
    without_block_id,
    without_callout,
    without_size,
)
from consumers.parsing.formats.text import within_limits
from consumers.parsing.limits import Limits
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import Columns
from consumers.splitting import ParsedText, PlacedLink, TextBlock

_NOTE = re.compile(r"^ {0,3}\[\^([^\]\s]{1,100})\]:", re.MULTILINE)
"""Beginning of a footnote. CommonMark has no footnotes: a footnote of several words is a paragraph, a footnote of one word a
link definition."""
_NOTE_MARK = re.compile(r"(?<!\S)\[\^([^\]\s]{1,100})\]:[ \t]*|\[\^([^\]\s]{1,100})\]")
_TAG = re.compile(r"<!--((?:(?!<!--).)*?)-->|<!\[CDATA\[((?:(?!<!\[CDATA).)*?)\]\]>|<[^<>]*>", re.DOTALL)
_ATTRIBUTE = re.compile(
    r"""\b(alt|title|aria-label|label|placeholder)\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)')""", re.IGNORECASE
)
_CELL_END = re.compile(r"(?<!\\)\|")
_WORD = re.compile(r"[^\W\d_]{3,}")
_ANCHOR = re.compile(r"""<a\s(?:[^<>]*?\s)?href\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s<>"']+))[^<>]*>""", re.IGNORECASE)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_ANCHOR_END = re.compile(r"</a\s*>", re.IGNORECASE)


MAX_TAGS = 100
"""Maximum number of tags from the text that become metadata, in order of occurrence."""


@cache
def _parser() -> MarkdownIt:
    return add_note_rules(MarkdownIt("commonmark", {"store_labels": True}).enable("table"))


def parse_markdown(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    text = without_embedded_data(decode(data), omissions)
    text = within_limits(text, limits, omissions)
    metadata, body, above = front_matter(text, omissions)
    properties, body = page_properties(body)
    metadata = {**properties, **metadata}
    outline = Outline(limits.text_chars, omissions)
    walk = read_markdown(body, outline, above=above, is_note=bool(properties))
    if walk.tags:
        stated = metadata.get("tags", [])
        own = stated if isinstance(stated, list) else [stated] if stated else []
        metadata["tags"] = list(dict.fromkeys([*own, *list(walk.tags)[:MAX_TAGS]]))
    stated = metadata.get("title")
    title = stated if isinstance(stated, str) and stated.strip() else walk.title
    blocks = _with_property_links(outline.done(), metadata)
    return ParsedText(blocks, " ".join(title.split()), metadata)


def _with_property_links(blocks: tuple[TextBlock, ...], metadata: Mapping[str, Any]) -> tuple[TextBlock, ...]:
    found = [link_to(target, "") for value in metadata.values() for target in links_in_properties(value)]
    placed = tuple(PlacedLink(0, link) for link in found if link is not None)
    return (replace(blocks[0], links=(*placed, *blocks[0].links)), *blocks[1:]) if blocks and placed else blocks


def read_markdown(
    text: str, outline: Outline, *, lines: bool = True, above: int = 0, is_note: bool = False
) -> "MarkdownWalk":
    """Adds a text without front matter to the outline. `above` is the number of lines in the file before the text. `is_note`:
    the file has shown the syntax of Obsidian or Logseq before the text."""
    definitions: dict[str, Any] = {}
    tokens = _parser().parse(text, definitions)
    is_note = is_note or any(is_sign_of_note(child) for token in tokens for child in token.children or ())
    walk = MarkdownWalk(outline, text, frozenset(_NOTE.findall(text)), above, lines, is_note)
    walk.run(tokens)
    walk.read_definitions(definitions.get("references", {}))
    return walk


@dataclass(slots=True)
class _Words:
    """The words of a paragraph, heading or cell, and its links."""

    parts: list[str] = field(default_factory=list)
    links: list[PlacedLink] = field(default_factory=list)
    length: int = 0
    _open: list[tuple[str, int, int]] = field(default_factory=list)
    """Open links: target, position in the text, and number of parts before the link."""

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)

    def begin_link(self, target: str) -> None:
        self._open.append((target, self.length, len(self.parts)))

    def end_link(self) -> None:
        if self._open:
            target, start, first = self._open.pop()
            self.put_link(target, "".join(self.parts[first:]), start)

    def put_link(self, target: str, text: str, start: int | None = None) -> None:
        link = link_to(target, text)
        if link is not None:
            self.links.append(PlacedLink(self.length if start is None else start, link))

    @property
    def text(self) -> str:
        return "".join(self.parts)


@dataclass(slots=True)
class MarkdownWalk:
    """One pass over the flat token list. The open elements distinguish lists, quotes and tables.

    `above` is the number of lines in the file before the text. `notes` are the names of the footnotes. `is_note`: the rules
    for notes of Obsidian and Logseq apply.
    """

    outline: Outline
    source: str
    notes: Set[str]
    above: int = 0
    lines: bool = True
    is_note: bool = False
    tags: dict[str, None] = field(default_factory=dict)
    depth: int = 0
    item: str = ""
    """Mark of the list item that begins: a dash or the item's number."""
    quote_starts: bool = False
    columns: Columns | None = None
    """The columns of the open table; None before its first row."""
    row: list[_Words] = field(default_factory=list)
    row_number: int = 0
    line: int | None = None
    _headings: list[tuple[int, str]] = field(default_factory=list)
    """Level and text of each heading."""
    _source_lines: list[str] = field(default_factory=list)
    _row_line: int = 0
    _used: set[str] = field(default_factory=set)
    """Names of the link definitions that links and pictures use."""
    _has_preface: bool = False
    """Whether text occurs before the first heading."""

    @property
    def title(self) -> str:
        """The first heading, if no text comes before it and all other headings have lower levels; otherwise "".

        If the first heading has level 1, the other headings may have level 1 too.
        """
        if not self._headings or self._has_preface:
            return ""
        level, text = self._headings[0]
        others = (other for other, _ in self._headings[1:])
        return text if level == 1 or all(other > level for other in others) else ""

    def run(self, tokens: Sequence[Token]) -> None:
        for index, token in enumerate(tokens):
            line = self.above + token.map[0] + 1 if token.map and self.lines else None
            match token.type:
                case "heading_open":
                    self._heading(int(token.tag[1]), self._words(tokens[index + 1]), line)
                case "bullet_list_open" | "ordered_list_open":
                    self.depth += 1
                case "bullet_list_close" | "ordered_list_close":
                    self.depth -= 1
                case "list_item_open":
                    self.item = f"{token.info}{token.markup} " if token.info else "- "
                case "blockquote_open":
                    self.quote_starts = True
                case "table_open":
                    self.columns = None
                    self.row_number = 0
                case "tr_open":
                    self.row = []
                    self._row_line = token.map[0] if token.map else 0
                case "tr_close":
                    self._end_row(line)
                case "table_close":
                    self._text(self.columns.unused() if self.columns else "", "\n", self.line)
                case "inline":
                    self._inline(tokens[index - 1].type, token, line)
                case "fence" | "code_block":
                    self._report(OmissionKind.METADATA, token.info.partition(" ")[2])
                    self._text(token.content, line=line)
                case "html_block":
                    self._html(token.content, line)

    def _text(self, text: str, joint: str = "\n\n", line: int | None = None, links: Sequence[PlacedLink] = ()) -> None:
        if text.strip() and not self._headings:
            self._has_preface = True
        self.outline.text(text, joint, line=line, links=links)

    def _heading(self, level: int, words: _Words, line: int | None) -> None:
        text = " ".join(words.text.split())
        if text:
            self._headings.append((level, text))
        self.outline.heading(level, text, line=line, links=[placed.link for placed in words.links])

    def _html(self, content: str, line: int | None) -> None:
        words, at = _Words(), 0
        for tag in _TAG.finditer(content):
            words.add(content[at : tag.start()])
            self._html_tag(words, tag[0])
            words.add(" ")
            at = tag.end()
        words.add(content[at:])
        self._text(words.text, line=line, links=words.links)

    def _html_tag(self, words: _Words, tag: str) -> None:
        found = _TAG.match(tag)
        if found and found[1] is not None:
            self._report(OmissionKind.COMMENT, found[1])
            return
        if found and found[2] is not None:
            words.add(found[2])
            return
        if tag.startswith(("<?", "<!")):
            self._report(OmissionKind.OTHER, tag)
        for name, *values in _ATTRIBUTE.findall(tag):
            if name.lower() == "alt":
                words.add(f" {''.join(values)} ")
            else:
                self._report(OmissionKind.TOOLTIP, "".join(values))
        if anchor := _ANCHOR.match(tag):
            words.begin_link(anchor[1] or anchor[2] or anchor[3] or "")
        elif _ANCHOR_END.match(tag):
            words.end_link()
        elif _BREAK.match(tag):
            words.add("\n")

    def _inline(self, parent: str, token: Token, line: int | None) -> None:
        words = self._words(token)
        if parent in ("th_open", "td_open"):
            self.row.append(words)
            self.line = line
        elif parent == "paragraph_open":
            text, links = words.text, words.links
            if self.quote_starts:
                kept = without_callout(text)
                text, links = kept, _moved(links, len(kept) - len(text))
                self.quote_starts = False
            mark, self.item = self.item, ""
            if self.depth and mark:
                lead = len(text) - len(text.lstrip())
                self._text(mark + text.lstrip(), "\n", line, _moved(links, len(mark) - lead))
            else:
                self._text(text, "\n" if self.depth else "\n\n", line, links)

    def _end_row(self, line: int | None) -> None:
        cells = [" ".join(words.text.split()) for words in self.row]
        if self.columns is None:
            self.columns = Columns(cells)
            return
        cells += self._cells_beyond(len(cells))
        self.row_number += 1
        joint = "\n\n" if self.row_number == 1 else "\n"
        text = self.columns.row(cells)
        links = place_links([placed.link for words in self.row for placed in words.links], text)
        self._has_preface |= not self._headings
        self.outline.text(text, joint, line=line or self.line, row=self.row_number, links=links)

    def _cells_beyond(self, columns: int) -> list[str]:
        """Returns those cells of a row, as written in the source, that are beyond the table's columns. The parser drops
        them."""
        self._source_lines = self._source_lines or self.source.split("\n")
        written = self._source_lines[self._row_line].strip(" \t>")
        return [cell.strip() for cell in _CELL_END.split(written.removeprefix("|").removesuffix("|"))[columns:]]

    def _report(self, kind: OmissionKind, text: str) -> None:
        if _WORD.search(text):
            self.outline.omissions.add(kind, text)

    def _link_or_picture(self, token: Token) -> None:
        self._used.add(str(token.meta.get("label", "")))
        self._report(OmissionKind.TOOLTIP, str(token.attrGet("title") or ""))

    def read_definitions(self, definitions: Mapping[str, Mapping[str, Any]]) -> None:
        """Adds footnotes of one word, and reports unused definitions. `definitions` is keyed by name."""
        for name, definition in definitions.items():
            target, title = unquote(str(definition.get("href", ""))), str(definition.get("title", ""))
            if name[:1] == "^" and "://" not in target:
                self._text(target)
            elif name not in self._used:
                self._report(
                    OmissionKind.COMMENT if name.startswith("//") else OmissionKind.OTHER, f"{name.lower()} {title}"
                )

    def _words(self, token: Token) -> _Words:
        """Returns a paragraph's words without emphasis, link targets, HTML tags and footnote marks; keeps line
        breaks."""
        words = _Words()
        children = token.children or []
        for number, child in enumerate(children):
            match child.type:
                case "text" if child.content[1:] in self.notes and child.content[0] == "^":
                    pass
                case "text":
                    ends = number + 1 == len(children) or children[number + 1].type in ("softbreak", "hardbreak")
                    starts = not number or children[number - 1].type in ("softbreak", "hardbreak")
                    self._line(words, child.content, starts, ends)
                case "code_inline" | "escaped":
                    words.add(child.content)
                case "image":
                    words.add(without_size(child.content))
                    self._link_or_picture(child)
                case "softbreak" | "hardbreak":
                    words.add("\n")
                case "link_open":
                    words.begin_link(str(child.attrGet("href") or ""))
                    self._link_or_picture(child)
                case "link_close":
                    words.end_link()
                case "html_inline":
                    self._html_tag(words, child.content)
                case "wikilink":
                    self._wikilink(words, child)
        return words

    def _line(self, words: _Words, content: str, starts: bool, ends: bool) -> None:
        """Adds a piece of a line. `starts`: the line begins with the piece. `ends`: the line ends with the piece."""
        text = _NOTE_MARK.sub(self._without_mark, content)
        self.tags.update(dict.fromkeys(tags_in(text)))
        if self.is_note:
            text = line_text(without_block_id(text) if ends else text, whole=starts and ends)
        words.add(text)

    def _wikilink(self, words: _Words, token: Token) -> None:
        link = token.meta[WIKILINK]
        start = words.length
        picture = is_media(link.target)
        shown = without_size(link.label) if picture else link.label
        if not shown and not picture:
            heading = "" if link.heading.startswith("^") else link.heading
            shown = " ".join(part for part in (link.target, heading) if part)
        words.add(shown)
        words.put_link(f"{link.target}#{link.heading}" if link.heading else link.target, shown, start)

    def _without_mark(self, mark: re.Match[str]) -> str:
        return "" if (mark[1] or mark[2]) in self.notes else mark[0]


def _moved(links: Sequence[PlacedLink], by: int) -> list[PlacedLink]:
    return [PlacedLink(max(placed.start + by, 0), placed.link) for placed in links]
