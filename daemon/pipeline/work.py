"""What is to be done, and what came of it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from consumers.kafka.line import Mark
from consumers.kafka.message import Message
from consumers.types import Document as Read
from consumers.types import FileEvent
from store.types import Document, Extraction, PassageText


@dataclass(frozen=True, slots=True)
class Added:
    """A JSON document that was handed in; `text` is its JSON, which waits in the inbox until it is committed.

    `whole`: one passage however long it is (what `import` brings was split by whoever extracted from it).
    """

    uri: str
    text: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Forget:
    """A document, or all documents of a file, that somebody asked to remove."""

    uri: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """A document as a Kafka message brought it, read already; without one the message takes away what stands there."""

    uri: str
    document: Read | None
    message: Message | None = None
    """Kept with the document where it cannot be read, for another try."""


@dataclass(frozen=True, slots=True)
class Learned:
    """Nothing to read: what an extractor found in passages that are committed already."""


Task = FileEvent | Added | Forget | Delivered | Learned


def container(uri: str) -> str:
    """The URI whose reading yields the document: the file for a line of it, otherwise the document itself.

    A `#` inside a file's name is percent-encoded, so the first one begins the fragment.
    """
    return uri.split("#", 1)[0] if uri.startswith(("file:", "added:")) else uri


@dataclass(slots=True, eq=False)
class Work:
    """One task under way. `key` is the container's URI: of two tasks with one key only the later is worth doing."""

    key: str
    task: Task
    seq: int
    source: str
    attempts: int = 0
    seen: set[str] = field(default_factory=set)
    """URIs of the documents that reading it gave so far."""
    tickets: list[str] = field(default_factory=list)
    """Inbox files that may be deleted once this is committed."""
    marks: list[Mark] = field(default_factory=list)
    """Parts of Kafka messages that are done once this is committed."""
    waiters: list[asyncio.Future[None]] = field(default_factory=list)
    """Who waits for this to be done, or for what took its place."""


@dataclass(slots=True)
class Outcome:
    """A step towards the store: documents read from a task, `final` with the last of them."""

    work: Work
    documents: list[Document] = field(default_factory=list)
    texts: dict[str, PassageText] = field(default_factory=dict)
    extractions: dict[str, Extraction] = field(default_factory=dict)
    positions: Mapping[str, Any | None] = field(default_factory=dict)
    final: bool = True

    @property
    def size(self) -> int:
        """Passages, at least one."""
        return max(len(self.texts), len(self.extractions), 1)

    @property
    def bytes(self) -> int:
        """Of the passages' text, about: a character counts as one."""
        return sum(len(text.title) + len(text.text) for text in self.texts.values())
