"""The output of parsing and input of splitting: a document's text as a list of blocks with their locations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from consumers.types import Link

SEPARATOR = " › "
"""Separates a document's title and its headings wherever they are written in one line."""


@dataclass(frozen=True, slots=True)
class SplitSettings:
    """Sizes of passages in tokens (`consumers.splitting.tokens`).

    A section of at most `max_tokens` becomes one passage; no passage is longer. Consecutive sections shorter than
    `min_tokens` share a passage.
    """

    max_tokens: int = 400
    min_tokens: int = 40

    def __post_init__(self) -> None:
        if self.max_tokens < 8:
            raise ValueError(f"max_tokens is {self.max_tokens}; it must be at least 8")
        if not 0 <= self.min_tokens <= self.max_tokens:
            raise ValueError(f"min_tokens is {self.min_tokens}; it must lie between 0 and max_tokens")


@dataclass(frozen=True, slots=True)
class PlacedLink:
    """A link that begins at the character `start` of its block's text."""

    start: int
    link: Link


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A paragraph, list item or table row.

    `headings` is the path of headings above it. `joint` separates it from the previous block: an empty line before a
    paragraph, a line break before an item or a row. Lines, pages and rows are counted from 1.
    """

    text: str
    headings: tuple[str, ...] = ()
    joint: str = "\n\n"
    page: int | None = None
    line: int | None = None
    sheet: str | None = None
    row: int | None = None
    links: tuple[PlacedLink, ...] = ()
    """The links in `text`, in order."""
    heading_links: tuple[Link, ...] = ()
    """The links in `headings`."""


@dataclass(frozen=True, slots=True)
class ParsedText:
    """The result of a format's parser. `title` comes from the content alone; it is "" if the content has no title."""

    blocks: tuple[TextBlock, ...]
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
