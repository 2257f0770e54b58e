"""The output of parsing and input of splitting: a document's text as a list of blocks with their locations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from consumers.omissions import OmissionKind
from consumers.types import Link

SEPARATOR = " › "
"""Separates a document's title and its headings when they are written on one line."""


@dataclass(frozen=True, slots=True)
class SplitSettings:
    """Sizes of passages in tokens (`consumers.splitting.passages`).

    `max_tokens` is the maximum length of a passage; a section up to this length becomes one passage. Consecutive
    sections shorter than `min_tokens` share a passage.
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
    """A link that begins at character `start` of a block's text."""

    start: int
    link: Link


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A paragraph, list item or table row.

    `headings` is the path of headings above it. `joint` separates the block from the previous one: an empty line before
    a paragraph, a line break before an item or a row. Lines, pages and rows are counted from 1.
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
    time: str | None = None
    """Time from the beginning of a recording, as `hours:minutes:seconds`."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file inside a document: attached to an e-mail, embedded in a PDF. The file is parsed as a separate document."""

    name: str
    """The file's name, or its MIME type if it has no name. Its ending may determine the format."""
    data: bytes
    description: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture for OCR: a page without a text layer, or a picture in a document.

    `image()` returns the content of an image file. The recognised text is placed before the block with the index `before`. If
    the picture is not read, the account of omissions gets an entry of kind `unread` with `name` and `total`; no entry if
    `unread` is None.
    """

    image: Callable[[], bytes]
    before: int = 0
    headings: tuple[str, ...] = ()
    page: int | None = None
    is_page: bool = False
    """Whether the picture is a whole page. Other pictures may be too small to contain text."""
    unread: OmissionKind | None = OmissionKind.PICTURE
    name: str = ""
    total: int | None = None
    sheet: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedText:
    """The result of a format's parser. `title` is the title in the content; "" if the content has none."""

    blocks: tuple[TextBlock, ...]
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()
    pictures: tuple[Picture, ...] = ()
    """The pictures that OCR may read, in order of position."""
    without_pictures: str = "it contains no text, except pictures"
    """Reason for an empty text if no picture is read. A message to users begins with this text."""
