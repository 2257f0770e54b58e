"""Markdown by markdown-it-py (CommonMark and tables), with the markup taken off and front matter as metadata."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from consumers.parsing.decoding import decode
from consumers.parsing.formats.text import check_lines
from consumers.parsing.limits import Limits
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import row_text
from consumers.splitting import ParsedText

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_PAIR = re.compile(r"([\w][\w .-]*?)\s*:(?:\s+(.*))?\Z")
_TAG = re.compile(r"<[^<>]*>")
_LONGEST_FRONT_MATTER = 1 << 16


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def parse_markdown(data: bytes, limits: Limits) -> ParsedText:
    text = decode(data)
    check_lines(text, limits)
    metadata, body, above = front_matter(text)
    outline = Outline(limits.text_chars)
    read_markdown(body, outline, above=above)
    blocks = outline.done()
    stated = metadata.get("title")
    title = stated if isinstance(stated, str) and stated.strip() else outline.first_heading
    return ParsedText(blocks, " ".join(title.split()), metadata)


def read_markdown(text: str, outline: Outline, *, lines: bool = True, above: int = 0) -> None:
    """Put a text without front matter into the outline. `above`: how many lines of the file stand above it."""
    _MarkdownWalk(outline, above, lines).run(_parser().parse(text))


def front_matter(text: str) -> tuple[dict[str, Any], str, int]:
    """The flat `key: value` pairs and lists between `---` lines, the text below, and how many lines stand above it.

    Not YAML in full: what front matter says in practice needs no aliases, tags or nesting, and those have been used to
    exhaust readers.
    """
    match = _FRONT_MATTER.match(text[:_LONGEST_FRONT_MATTER])
    if not match:
        return {}, text, 0
    found: dict[str, Any] = {}
    key = ""
    for line in match[1].splitlines():
        stripped = line.strip()
        if stripped.startswith("- ") and key:
            earlier = found.get(key)
            found[key] = [*earlier, _scalar(stripped[2:])] if isinstance(earlier, list) else [_scalar(stripped[2:])]
        elif line[:1].strip() and not stripped.startswith("#") and (pair := _PAIR.match(stripped)):
            key = pair[1]
            value = (pair[2] or "").strip()
            if value.startswith("[") and value.endswith("]"):
                found[key] = [_scalar(item) for item in value[1:-1].split(",") if item.strip()]
            else:
                found[key] = _scalar(value)
    if not found:
        return {}, text, 0  # two rules with prose between them
    return found, text[match.end() :], text.count("\n", 0, match.end())


def _scalar(value: str) -> str:
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return value


class _MarkdownWalk:
    """One pass over the flat token list; lists, quotes and tables are distinguished by which elements are open."""

    def __init__(self, outline: Outline, above: int, lines: bool) -> None:
        self.outline = outline
        self.lines = lines
        self.above = above
        self.depth = 0
        self.item_starts = False
        self.header: list[str] | None = None
        self.row: list[str] = []
        self.row_number = 0

    def run(self, tokens: Sequence[Token]) -> None:
        for index, token in enumerate(tokens):
            line = self.above + token.map[0] + 1 if token.map and self.lines else None
            match token.type:
                case "heading_open":
                    self.outline.heading(int(token.tag[1]), inline_text(tokens[index + 1]), line=line)
                case "bullet_list_open" | "ordered_list_open":
                    self.depth += 1
                case "bullet_list_close" | "ordered_list_close":
                    self.depth -= 1
                case "list_item_open":
                    self.item_starts = True
                case "table_open":
                    self.header = None
                    self.row_number = 0
                case "tr_open":
                    self.row = []
                case "tr_close":
                    self._end_row(line)
                case "inline":
                    self._inline(tokens[index - 1].type, token, line)
                case "fence" | "code_block":
                    self.outline.text(token.content, line=line)
                case "html_block":
                    self.outline.text(_TAG.sub(" ", token.content), line=line)

    def _inline(self, parent: str, token: Token, line: int | None) -> None:
        if parent in ("th_open", "td_open"):
            self.row.append(inline_text(token))
            self.line = line
        elif parent == "paragraph_open":
            text = inline_text(token)
            if self.depth and self.item_starts:
                self.item_starts = False
                self.outline.text(f"- {text}", "\n", line=line)
            else:
                self.outline.text(text, "\n" if self.depth else "\n\n", line=line)

    def _end_row(self, line: int | None) -> None:
        if self.header is None:
            self.header = self.row
            return
        self.row_number += 1
        joint = "\n\n" if self.row_number == 1 else "\n"
        self.outline.text(row_text(self.header, self.row), joint, line=line or self.line, row=self.row_number)


def inline_text(token: Token) -> str:
    """A paragraph's words without emphasis, link targets and tags; line breaks stay."""
    parts = []
    for child in token.children or ():
        match child.type:
            case "text" | "code_inline":
                parts.append(child.content)
            case "softbreak" | "hardbreak":
                parts.append("\n")
            case "image":
                parts.append(child.content)
    return "".join(parts).strip()
