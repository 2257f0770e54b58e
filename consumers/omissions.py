"""The account of omissions: the content of a file that its passages do not contain.

Each parser reports everything that it leaves out to an `Omissions` object. The result is the document's `left_out`.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

TEXT_CHARS = 400
"""Maximum total length of the examples in one entry of an account, in characters."""


class OmissionKind(StrEnum):
    """A kind of omitted content, with the singular and plural that follow a number."""

    singular: str
    plural: str

    def __new__(cls, value: str, singular: str, plural: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.singular, member.plural = singular, plural
        return member

    ATTACHMENT = "attachment", "attachment not read", "attachments not read"
    ALTERNATIVE = "alternative", "alternative version", "alternative versions"
    UNKNOWN_CHARACTER = "unknown_character", "character of unknown meaning", "characters of unknown meaning"
    PAGE_WITHOUT_TEXT = "page_without_text", "page has no text layer", "pages have no text layer"
    UNREADABLE_PAGE = "unreadable_page", "damaged page", "damaged pages"
    RUNNING_HEADER = "running_header", "running header", "running headers"
    BOOKMARK = "bookmark", "bookmark", "bookmarks"
    NAVIGATION = "navigation", "part of a site's navigation", "parts of a site's navigation"
    CONTENTS_TABLE = "contents_table", "contents table", "contents tables"
    CONTROL = "control", "button or field", "buttons and fields"
    TOOLTIP = "tooltip", "tooltip", "tooltips"
    HIDDEN = "hidden", "hidden part", "hidden parts"
    COMMENT = "comment", "comment", "comments"
    METADATA = "metadata", "header or property", "headers or properties"
    FORMULA = "formula", "formula without a stored result", "formulas without a stored result"
    EMBEDDED = "embedded", "embedded object", "embedded objects"
    PICTURE = "picture", "picture", "pictures"
    RECOGNISED = "recognised", "page or picture read by OCR", "pages and pictures read by OCR"
    UNCERTAIN = (
        "uncertain",
        "paragraph that OCR read with low confidence",
        "paragraphs that OCR read with low confidence",
    )
    OUTPUT = "output", "output of a program", "outputs of programs"
    CODE = "code", "line of code", "lines of code"
    TOO_LARGE = "too_large", "part beyond a limit of size", "parts beyond a limit of size"
    OTHER = "other", "other omission", "other omissions"


KIND_OF = {kind.value: kind for kind in OmissionKind}


@dataclass(frozen=True, slots=True)
class Omission:
    """One entry of an account. `text` is the sentence for users: "1 attachment not read: drawing.dwg"."""

    kind: OmissionKind
    count: int
    text: str


@dataclass(slots=True)
class _Entry:
    count: int = 0
    chars: int = 0
    """Number of characters of all omitted texts; the examples may quote only some of them."""
    total: int | None = None
    examples: dict[str, None] = field(default_factory=dict)
    room: int = TEXT_CHARS
    more: bool = False


class Omissions:
    """Collects the content that a parser leaves out: one entry per kind, with examples."""

    def __init__(self) -> None:
        self._entries: dict[OmissionKind, _Entry] = {}

    def add(self, kind: OmissionKind, example: str = "", count: int = 1, *, total: int | None = None) -> None:
        """Adds `count` omissions of a kind.

        `example` is the complete omitted text; the account quotes its beginning and counts its characters. `total` is the
        number of parts of this kind in the file.
        """
        if count <= 0:
            return
        entry = self._entries.setdefault(kind, _Entry())
        entry.count += count
        entry.total = total if total is not None else entry.total
        example = " ".join(example.split())
        entry.chars += len(example) * count
        if not example or example in entry.examples:
            return
        if entry.room <= 0:
            entry.more = True
            return
        if len(example) > entry.room:
            example, entry.more = example[: entry.room], True
        entry.examples[example] = None
        entry.room -= len(example) + len("; ")

    def add_words(self, kind: OmissionKind, text: str) -> None:
        """Adds an omitted text if it has a letter or a digit."""
        if any(map(str.isalnum, text)):
            self.add(kind, text)

    def done(self) -> tuple[Omission, ...]:
        """Returns one entry per kind, in the order of their first reports."""
        return tuple(Omission(kind, entry.count, _sentence(kind, entry)) for kind, entry in self._entries.items())


def _sentence(kind: OmissionKind, entry: _Entry) -> str:
    words = kind.singular if entry.count == 1 and entry.total is None else kind.plural
    if entry.total is None:
        text = f"{entry.count:,} {words}"
    else:
        text = f"{entry.count:,} of {entry.total:,} {words.replace(' have ', ' has ') if entry.count == 1 else words}"
    if not entry.examples:
        return text
    more = f" … ({entry.chars:,} characters in all)" if entry.more else ""
    return f"{text}: {'; '.join(entry.examples)}{more}"
