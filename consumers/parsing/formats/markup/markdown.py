"""Markdown by markdown-it-py (CommonMark and tables), with the markup taken off and front matter as metadata."""

import re
import tomllib
from collections.abc import Sequence, Set
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from consumers.omissions import Omissions
from consumers.parsing.decoding import decode
from consumers.parsing.embedded_data import without_embedded_data
from consumers.parsing.formats.text import within_limits
from consumers.parsing.limits import Limits
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import row_text
from consumers.splitting import ParsedText

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TOML_FRONT_MATTER = re.compile(r"\A\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NOTE = re.compile(r"^ {0,3}\[\^([^\]\s]{1,100})\]:", re.MULTILINE)
"""What opens a footnote. CommonMark has none: a note of several words is a paragraph, one of one word the target of a link."""
_NOTE_MARK = re.compile(r"(?<!\S)\[\^([^\]\s]{1,100})\]:[ \t]*|\[\^([^\]\s]{1,100})\]")
_PAIR = re.compile(r"([\w][\w .-]*?)\s*:(?:\s+(.*))?\Z")
_TAG = re.compile(r"<[^<>]*>")
_LONGEST_FRONT_MATTER = 1 << 16


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def parse_markdown(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    text = without_embedded_data(decode(data), omissions)
    text = within_limits(text, limits, omissions)
    metadata, body, above = front_matter(text)
    outline = Outline(limits.text_chars, omissions)
    read_markdown(body, outline, above=above)
    blocks = outline.done()
    stated = metadata.get("title")
    title = stated if isinstance(stated, str) and stated.strip() else outline.first_heading
    return ParsedText(blocks, " ".join(title.split()), metadata)


def read_markdown(text: str, outline: Outline, *, lines: bool = True, above: int = 0) -> None:
    """Put a text without front matter into the outline. `above`: how many lines of the file stand above it."""
    notes = frozenset(_NOTE.findall(text))
    _MarkdownWalk(outline, above, lines, notes).run(_parser().parse(text))


def front_matter(text: str) -> tuple[dict[str, Any], str, int]:
    """The flat `key: value` pairs and lists between `---` lines, or TOML between `+++` lines, the text below, and how many
    lines stand above it.

    Not YAML in full: what front matter says in practice needs no aliases, tags or nesting, and those have been used to
    exhaust readers.
    """
    if match := _TOML_FRONT_MATTER.match(text[:_LONGEST_FRONT_MATTER]):
        values = _toml(match[1])
        return (values, *_below(text, match)) if values else ({}, text, 0)
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
    return found, *_below(text, match)


def _below(text: str, match: re.Match[str]) -> tuple[str, int]:
    return text[match.end() :], text.count("\n", 0, match.end())


def _toml(text: str) -> dict[str, Any]:
    """Hugo's front matter: the values and lists at its top, as text; none where it is no TOML."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {key: value for key, each in found.items() if (value := _plain(each)) is not None}


def _plain(value: Any) -> str | list[str] | None:
    if isinstance(value, list):
        return [each for item in value if isinstance(each := _plain(item), str)]
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if isinstance(value, dict) else str(value)


def _scalar(value: str) -> str:
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return value


class _MarkdownWalk:
    """One pass over the flat token list; lists, quotes and tables are distinguished by which elements are open."""

    def __init__(self, outline: Outline, above: int, lines: bool, notes: Set[str]) -> None:
        self.outline = outline
        self.notes = notes
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
                    self.outline.heading(int(token.tag[1]), self._text(tokens[index + 1]), line=line)
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
            self.row.append(self._text(token))
            self.line = line
        elif parent == "paragraph_open":
            text = self._text(token)
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

    def _text(self, token: Token) -> str:
        """A paragraph's words without emphasis, link targets, tags and the marks of footnotes; line breaks stay."""
        parts = []
        for child in token.children or ():
            match child.type:
                case "text" if child.content[1:] in self.notes and child.content[0] == "^":
                    pass
                case "text":
                    parts.append(_NOTE_MARK.sub(self._without_mark, child.content))
                case "code_inline" | "image":
                    parts.append(child.content)
                case "softbreak" | "hardbreak":
                    parts.append("\n")
        return "".join(parts).strip()

    def _without_mark(self, mark: re.Match[str]) -> str:
        return "" if (mark[1] or mark[2]) in self.notes else mark[0]
