"""What is to be done, and what came of it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from consumers.records.record import Record
from consumers.types import FileChanged, FileEvent, Fingerprint, ParsedDocument
from daemon.pipeline.acknowledgement import Acknowledgement
from daemon.pipeline.incoming.inbox_progress import InboxPlace
from store.types import Document, Extraction, ExtractionCosts, PassageText


@dataclass(frozen=True, slots=True)
class AddedDocument:
    """A JSON document that was added; `text` is its JSON, which waits in the inbox until it is committed.

    `whole`: one passage however long it is (what `import` brings was split by its extractor).
    """

    uri: str
    text: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class RemoveDocument:
    """A document, or all documents of a file, that somebody asked to remove.

    `sees`: which documents that somebody sees, asked when the removal is committed: labels may have changed since.
    """

    uri: str
    sees: Callable[[Document], bool] | None = None
    found: Fingerprint | None = None
    """The file as it was found, where its reading made way for this: it is not read before it is otherwise."""


@dataclass(frozen=True, slots=True)
class DeliveredDocument:
    """A document that its source has read already, None where it is to be removed."""

    uri: str
    document: ParsedDocument | None
    payload: Callable[[], str] | None = None
    """What the source needs to read it once more; called, and stored, only where the document fails."""
    record: Record | None = None
    """The record that the document came in: its triples and vectors are taken as they are."""

    @property
    def is_read(self) -> bool:
        """Whether no passage is left to extract."""
        if self.record is not None:
            return self.record.is_read
        return self.document is None or all(passage.triples is not None for passage in self.document.passages)


@dataclass(frozen=True, slots=True)
class FileTakenOver:
    """A followed file whose documents were another source's when they were read; now they are `source`'s."""

    uri: str
    source: str


Task = FileEvent | FileTakenOver | AddedDocument | RemoveDocument | DeliveredDocument


def may_grow(task: Task) -> bool:
    """Whether the memory can be larger once this is done. Removing, renaming, taking over and refusing add no passage."""
    if isinstance(task, DeliveredDocument):
        return task.document is not None
    return isinstance(task, FileChanged | AddedDocument)


class Urgency(IntEnum):
    """Which work goes first; known where it comes in."""

    FRESH = 0
    """A file that was saved just now, a document that was handed in, a message, a removal that somebody asked for."""
    BULK = 1
    """Found by a scan, imported, or of a burst (`daemon.pipeline.incoming.lanes`)."""


def container_uri(uri: str) -> str:
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
    urgency: Urgency = Urgency.FRESH
    """Rises while the work is under way where later work for the same key is more urgent, as that waits for this."""
    slow: bool = False
    """Whether it is expected to take long to parse: it used its time limit before, or had to give up its place."""
    seen: set[str] = field(default_factory=set)
    """URIs of the documents that reading it gave so far."""
    inbox_places: list[InboxPlace] = field(default_factory=list)
    """The documents of the inbox that are done once this is committed: its own, and those of the work that it replaced."""
    acknowledgements: list[Acknowledgement] = field(default_factory=list)
    """What its source, and those of the work that it replaced, hear from once this is committed."""
    waiters: list[asyncio.Future[None]] = field(default_factory=list)
    """Who waits for this to be done, or for what took its place."""


@dataclass(slots=True)
class DocumentChange:
    """Documents read from a task, on their way into the store; `final` with the last of them."""

    work: Work
    documents: list[Document] = field(default_factory=list)
    texts: dict[str, PassageText] = field(default_factory=dict)
    extractions: dict[str, Extraction] = field(default_factory=dict)
    """By the local extractor."""
    supplied_costs: ExtractionCosts = field(default_factory=dict)
    """What the extractions cost that its documents supply."""
    positions: Mapping[str, Any | None] = field(default_factory=dict)
    final: bool = True
    record: Record | None = None
    """What its documents' vectors are taken from."""

    @property
    def size(self) -> int:
        """Passages, at least one."""
        return max(len(self.texts), len(self.extractions), 1)

    @property
    def bytes(self) -> int:
        """Of the passages' text, about: a character counts as one."""
        return sum(len(text.title) + len(text.text) for text in self.texts.values())


@dataclass(slots=True)
class ExtractionsFound:
    """What an extractor found in passages that are committed already, on its way into the store.

    It changes no document, so it waits for nothing and nothing waits for it but `committed`.
    """

    extractions: dict[str, Extraction]
    committed: asyncio.Future[None] | None = None
    """Done once these are in the store."""

    def done(self) -> None:
        """Tells who waits that these are in the store."""
        if self.committed is not None and not self.committed.done():
            self.committed.set_result(None)

    @property
    def size(self) -> int:
        """Passages."""
        return len(self.extractions)

    @property
    def bytes(self) -> int:
        """No passage's text comes with it."""
        return 0


Change = DocumentChange | ExtractionsFound
"""What the committer takes."""
