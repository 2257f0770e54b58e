"""Tasks of the pipeline, the changes that result from them, and the acknowledgements of committed changes.

An acknowledgement stores the source's position in the commit that contains the source's documents. The pipeline only forwards
and merges acknowledgements; only the source interprets them.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol

from consumers.openat import NO_INODE
from consumers.records.record import Record
from consumers.types import FileChanged, FileEvent, Fingerprint, ParsedDocument
from daemon.pipeline.incoming.inbox_progress import InboxPlace
from store.types import Document, Extraction, ExtractionCosts, PassageText

Group = tuple[str, str | int]
"""(source, the ticket of a request or the directory of files). Work of one group arrives together."""


class PositionTracker(Protocol):
    """Tracks how much of one ordered delivery, such as a Kafka partition, is committed. Belongs to the source."""

    def positions(self, parts: Collection[object]) -> Mapping[str, Any]:
        """Returns the positions, by name, to store in the commit that completes these `parts`.

        Must not change the tracker: a batch may be assembled several times before it is committed.
        """
        ...


class Acknowledgement(Protocol):
    """Reports to a source that work is committed. All documents of one message share one acknowledgement."""

    @property
    def tracker(self) -> PositionTracker: ...

    def done(self) -> None:
        """Reports that one work item with this acknowledgement is committed."""
        ...


def merged_positions(acknowledgements: Iterable[Acknowledgement]) -> dict[str, Any]:
    """Returns the positions to store in the commit that completes these acknowledgements."""
    by_tracker: dict[PositionTracker, list[Acknowledgement]] = {}
    for acknowledgement in acknowledgements:
        by_tracker.setdefault(acknowledgement.tracker, []).append(acknowledgement)
    positions: dict[str, Any] = {}
    for tracker, parts in by_tracker.items():
        positions.update(tracker.positions(parts))
    return positions


@dataclass(frozen=True, slots=True)
class AddedDocument:
    """A JSON document that a client added. `text` is the JSON, which stays in the inbox until it is committed.

    `whole` makes one passage of the text, whatever its length, because imported passages are split already.
    """

    uri: str
    text: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class RemoveDocument:
    """A client's request to remove a document or all documents of a file.

    `sees` returns whether the client sees a document. `sees` is called at the commit, because labels may have changed by then.
    """

    uri: str
    sees: Callable[[Document], bool] | None = None
    found: Fingerprint | None = None
    """The file's position, if the removal replaced waiting work to parse the file. The removal commits the position, so that
    the file is parsed again only if it changes."""


@dataclass(frozen=True, slots=True)
class DeliveredDocument:
    """A document that its source has parsed; `document` is None to remove it."""

    uri: str
    document: ParsedDocument | None
    payload: Callable[[], str] | None = None
    """Returns the data that the source needs to retry the document; called only if the document fails, to store the result."""
    record: Record | None = None
    """The record that contained the document; its triples and vectors are used unchanged."""

    @property
    def is_read(self) -> bool:
        """Whether no passage needs extraction."""
        if self.record is not None:
            return self.record.is_read
        return self.document is None or all(passage.triples is not None for passage in self.document.passages)


@dataclass(frozen=True, slots=True)
class FileTakenOver:
    """Assigns the documents of a followed file to `source`; another source owned them when they were parsed."""

    uri: str
    source: str


@dataclass(frozen=True, slots=True)
class RetryFile:
    """Parses a followed file again, even if its size and modification time have not changed."""

    uri: str
    path: bytes
    source: str
    checked_inode: int = NO_INODE
    """The file's inode, if the file's folder has checked all names of this inode; otherwise `NO_INODE`."""


@dataclass(frozen=True, slots=True)
class Postponed:
    """Replaces the task of a file on an unmounted drive: the file's documents stay, and its folder will emit the file again."""


Task = FileEvent | FileTakenOver | AddedDocument | RemoveDocument | DeliveredDocument | RetryFile | Postponed


def may_grow(task: Task) -> bool:
    """Returns whether the task can enlarge the memory. Removals, renames, source changes and refusals add no passage."""
    if isinstance(task, DeliveredDocument):
        return task.document is not None
    return isinstance(task, FileChanged | RetryFile | AddedDocument)


class Urgency(IntEnum):
    """The priority of work, set when the work arrives."""

    FRESH = 0
    """A file that was just saved, an added document, a message, or a requested removal."""
    BULK = 1
    """Found by a scan, imported, or part of a burst (`daemon.pipeline.incoming.lanes`)."""


def container_uri(uri: str) -> str:
    """Returns the URI to parse: the file's URI for a line of a file, otherwise the document's own URI.

    A `#` in a file's name is percent-encoded, so the first `#` begins the fragment.
    """
    return uri.split("#", 1)[0] if uri.startswith(("file:", "added:")) else uri


@dataclass(slots=True, eq=False)
class Work:
    """A task in progress. `key` is the container's URI; of two tasks with the same key, only the later one counts."""

    key: str
    task: Task
    source: str
    attempts: int = 0
    seq: int = 0
    """Number in the order of arrival, set by the intake. Work that replaces or continues other work takes over its number."""
    urgency: Urgency = Urgency.FRESH
    """Raised to FRESH while the work runs if fresh work for the same key arrives."""
    slow: bool = False
    """Whether parsing probably takes long, because it exceeded its time limit before or was set aside for other work."""
    failed: bool = False
    """Whether a failed document was committed in place of a change of this work. Further changes are dropped."""
    recognise: bool = False
    """Whether this is OCR work for a document that was parsed without its pictures. OCR work waits for all other work."""
    seen: set[str] = field(default_factory=set)
    """URIs of the documents that parsing has found so far."""
    inbox_places: list[InboxPlace] = field(default_factory=list)
    """Inbox documents that are done when this work is committed, including documents of work that it replaced."""
    acknowledgements: list[Acknowledgement] = field(default_factory=list)
    """Notified when this work is committed; includes the acknowledgements of work that it replaced."""
    waiters: list[asyncio.Future[None]] = field(default_factory=list)
    """Futures that end when this work, or work that replaced it, is done."""


@dataclass(slots=True)
class DocumentChange:
    """Parsed documents of a task, to be committed. `final` is true for the task's last change."""

    work: Work
    documents: list[Document] = field(default_factory=list)
    texts: dict[str, PassageText] = field(default_factory=dict)
    extractions: dict[str, Extraction] = field(default_factory=dict)
    """Extractions by the local extractor."""
    supplied_costs: ExtractionCosts = field(default_factory=dict)
    """Costs of the extractions that the documents supply."""
    positions: Mapping[str, Any | None] = field(default_factory=dict)
    final: bool = True
    record: Record | None = None
    """The record that supplies the documents' vectors."""
    awaits_ocr: bool = False
    """Whether OCR work follows. Until it is done, documents that this work did not find stay: they may be in pictures."""
    lane: Urgency = Urgency.BULK
    """The lane of the commit queue whose capacity the change uses."""
    group: Group | None = None
    """The group with which the change arrived in the commit queue; None if it did not arrive as fresh."""

    @property
    def size(self) -> int:
        """Number of passages, at least 1."""
        return max(len(self.texts), len(self.extractions), 1)

    @property
    def bytes(self) -> int:
        """Approximate bytes of the passages' texts, counting one byte per character."""
        return sum(len(text.title) + len(text.text) for text in self.texts.values())


@dataclass(slots=True)
class ExtractionsFound:
    """Extractions from committed passages, to be committed.

    Extractions change no document, so their order relative to other changes does not matter. Only `committed` waits for their
    commit.
    """

    extractions: dict[str, Extraction]
    committed: asyncio.Future[None] | None = None
    """Completed when the extractions are in the store."""
    lane: Urgency = Urgency.BULK
    group: Group | None = None

    def done(self) -> None:
        """Completes `committed`."""
        if self.committed is not None and not self.committed.done():
            self.committed.set_result(None)

    @property
    def size(self) -> int:
        """Number of passages."""
        return len(self.extractions)

    @property
    def bytes(self) -> int:
        """0: the passages' texts are stored already."""
        return 0


Change = DocumentChange | ExtractionsFound
"""The input of the committer."""
