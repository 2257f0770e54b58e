"""Collects the blocks of a document under their headings, for every format."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.splitting import Attachment, ParsedText, Picture, PlacedLink, TextBlock
from consumers.types import Link

_MAX_HEADING_CHARS = 300


class Outline:
    """The blocks so far and the open headings. A heading without text below it becomes a block."""

    def __init__(self, text_chars: int, omissions: Omissions) -> None:
        """`text_chars` is the maximum length of a document's text. `omissions` receives the content that is left
        out."""
        self.omissions = omissions
        self.blocks: list[TextBlock] = []
        self.pictures: list[Picture] = []
        self.first_heading = ""
        self.running_texts: set[str] = set()
        self._room = text_chars
        self._limit = text_chars
        self._open: list[tuple[int, str, tuple[Link, ...]]] = []
        self._empty_heading: TextBlock | None = None

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(text for _, text, _ in self._open)

    @property
    def heading_links(self) -> tuple[Link, ...]:
        return tuple(link for _, _, links in self._open for link in links)

    def heading(
        self,
        level: int,
        text: str,
        *,
        page: int | None = None,
        line: int | None = None,
        sheet: str | None = None,
        links: Iterable[Link] = (),
    ) -> None:
        """Opens a section. The heading's `links` belong to every block below it."""
        text = " ".join(text.split())
        if not text:
            return
        if len(text) > _MAX_HEADING_CHARS:  # a paragraph that is marked up as a heading
            self.text(text, page=page, line=line, sheet=sheet, links=[PlacedLink(0, link) for link in links])
            return
        self._close(level)
        own = tuple(links)
        above = self.heading_links
        self._empty_heading = TextBlock(
            text, self.headings, page=page, line=line, sheet=sheet, heading_links=(*above, *own)
        )
        self._open.append((level, text, own))
        if not self.first_heading and not self.blocks:
            self.first_heading = text

    def text(
        self,
        text: str,
        joint: str = "\n\n",
        *,
        page: int | None = None,
        line: int | None = None,
        sheet: str | None = None,
        row: int | None = None,
        time: str | None = None,
        links: Sequence[PlacedLink] = (),
    ) -> None:
        """Adds a paragraph, item or row. The positions of `links` refer to `text` before it is stripped."""
        stripped = text.strip()
        if not stripped:
            return
        if links:
            lead = len(text) - len(text.lstrip())
            links = [replace(link, start=min(max(link.start - lead, 0), len(stripped) - 1)) for link in links]
        text = stripped
        self._room -= len(text)
        if self._room < 0:
            self.omissions.add(OmissionKind.TOO_LARGE, f"text after the first {self._limit:,} characters")
            return
        self._empty_heading = None
        self.blocks.append(
            TextBlock(text, self.headings, joint, page, line, sheet, row, tuple(links), self.heading_links, time)
        )

    def running_text(self, text: str, *, page: int | None = None) -> None:
        """Adds a header, footer or date that pages repeat. Only the first occurrence is added; later occurrences are
        reported."""
        if text in self.running_texts:
            self.omissions.add(OmissionKind.RUNNING_HEADER, text)
        else:
            self.running_texts.add(text)
            self.text(text, page=page)

    def picture(
        self,
        image: Callable[[], bytes],
        name: str,
        *,
        described: bool = False,
        page: int | None = None,
        sheet: str | None = None,
    ) -> None:
        """Adds a picture. A picture that OCR does not read is reported, unless the text describes it (`described`)."""
        unread = None if described else OmissionKind.PICTURE
        before = len(self.blocks)
        self.pictures.append(Picture(image, before, self.headings, page, unread=unread, name=name, sheet=sheet))

    def pictures_after(self, count: int) -> Iterator[Picture]:
        """Yields the pictures, with positions for a document in which `count` other blocks precede the blocks of this
        outline."""
        return (replace(picture, before=picture.before + count) for picture in self.pictures)

    def include(self, document: ParsedText, level: int) -> None:
        """Adds the blocks and pictures of another document. The document's top headings get the level `level`."""
        above: tuple[str, ...] = ()
        pictures = list(reversed(document.pictures))
        for number, block in enumerate(document.blocks):
            self._add_pictures(pictures, number)
            self._close(level + len(block.headings))
            for depth, heading in enumerate(block.headings):
                if above[: depth + 1] != block.headings[: depth + 1]:
                    self.heading(level + depth, heading, page=block.page, line=block.line, sheet=block.sheet)
                    above = block.headings[: depth + 1]
            above = block.headings
            links = [*block.links, *(PlacedLink(0, link) for link in block.heading_links)]
            self.text(
                block.text, block.joint, page=block.page, line=block.line, sheet=block.sheet, row=block.row, links=links
            )
        self._add_pictures(pictures, len(document.blocks))

    def document(
        self, title: str = "", metadata: Mapping[str, Any] | None = None, attachments: Sequence[Attachment] = ()
    ) -> ParsedText:
        """Returns the document with all blocks and pictures. Without `title`, the first heading is its title."""
        blocks = self.done()
        return ParsedText(blocks, title or self.first_heading, metadata or {}, tuple(attachments), tuple(self.pictures))

    def done(self) -> tuple[TextBlock, ...]:
        self._add_empty_heading(0)
        return tuple(self.blocks)

    def _add_pictures(self, pictures: list[Picture], before: int) -> None:
        """Moves the pictures that precede another document's block `before` from the end of `pictures` to this outline."""
        while pictures and pictures[-1].before <= before:
            self.pictures.append(replace(pictures.pop(), before=len(self.blocks), headings=self.headings))

    def _close(self, level: int) -> None:
        """Closes the open headings of this level and of deeper levels."""
        self._add_empty_heading(level)
        while self._open and self._open[-1][0] >= level:
            self._open.pop()

    def _add_empty_heading(self, level: int) -> None:
        """Adds the last heading as a block if it has no text and the next heading is not below it. `level` is the level of the
        next heading."""
        if self._empty_heading is not None and self._open and self._open[-1][0] >= level:
            bare, self._empty_heading = self._empty_heading, None
            self.blocks.append(bare)


def comment_text(text: str, author: str = "", cell: str = "") -> str:
    """Returns the text of a reader's comment; "" if it is blank. `cell` names the commented cell of a sheet."""
    text, author = clean_text(text).strip(), clean_text(author).strip()
    return f"Comment{f' on {cell}' if cell else ''}{f' by {author}' if author else ''}: {text}" if text else ""
