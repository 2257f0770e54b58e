"""The state of each document as `ls`, `status`, `show` and the page tell it: what the store has, under what is under way.

A document that is being read anew is pending, whatever became of it before. One whose passage the model could not read is
failed, though the store has it indexed. Everything that counts or lists documents asks here, so that the numbers agree.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from consumers.failure_codes import FAILS_AGAIN, FailureCode
from daemon.contract.base import utc_time
from daemon.contract.choices import DocumentState
from daemon.contract.documents import DocumentEntry
from daemon.pipeline.extraction.queue import ExtractionQueue
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work_items import container_uri
from daemon.services.documents.document_references import document_entry
from daemon.services.extraction import ExtractionStates, extraction_states
from store.reader import count_omissions
from store.store import Store
from store.types import Document, State


@dataclass(frozen=True, slots=True)
class DocumentCounts:
    """`indexed`: documents that can be found, those among them that are being read anew included."""

    indexed: int
    pending: int
    failed: int
    left_out: dict[str, int]
    """Omitted content of all documents, by kind."""
    skipped: dict[str, int]
    """Skipped documents, by reason."""


class DocumentStates:
    """`now` is called on the event loop. `next_retry`: when what has failed is looked through next, in Unix seconds; None where
    that is switched off."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        extraction_queue: ExtractionQueue,
        next_retry: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._extraction_queue = extraction_queue
        self._next_retry = next_retry

    def now(self) -> "CurrentStates":
        """What is under way at this moment."""
        return CurrentStates(
            self._store,
            self._pipeline.intake.sources(),
            extraction_states(self._store, self._extraction_queue),
            self._next_retry(),
            self._pipeline.can_retry,
        )


class CurrentStates:
    """What is under way at one moment, to be laid over the documents in any thread."""

    def __init__(
        self,
        store: Store,
        under_way: Mapping[str, str],
        extraction: ExtractionStates,
        next_retry: float | None,
        can_retry: Callable[[Document], bool],
    ) -> None:
        """`under_way`: the source of what is being read, by URI."""
        self._store = store
        self._under_way = under_way
        self._extraction = extraction
        self._next_retry = next_retry
        self._can_retry = can_retry

    # In the thread that asks: with a first index under way these are many.

    @cached_property
    def _pending(self) -> frozenset[str]:
        return frozenset(self._under_way) | self._extraction.pending()

    @cached_property
    def _unread(self) -> dict[str, str]:
        return self._extraction.failed()

    @cached_property
    def _next_passage_try(self) -> dict[str, float]:
        return self._extraction.next_tries()

    def counts(self) -> DocumentCounts:
        stored = self._store.states()
        again = sum(self._has_failed(uri) for uri in self._pending)
        unread = sum(uri not in self._pending and not self._has_failed(uri) for uri in self._unread)
        return DocumentCounts(
            stored.get(State.INDEXED, 0),
            len(self._pending),
            stored.get(State.FAILED, 0) - again + unread,
            self._store.omissions(),
            self._count_skipped(self._store.skipped()),
        )

    def coming(self, uri: str) -> Document:
        """What is known of a document that is being read for the first time."""
        return Document(uri, self._under_way.get(uri, ""), state=State.PENDING)

    def counts_of(self, holds: Callable[[Document], bool]) -> DocumentCounts:
        """As `counts`, of the documents that `holds` accepts."""
        seen = [document for document in self._store.documents() if holds(document)]
        known = {document.uri for document in seen}
        pending = {uri for uri in self._pending if uri in known or self._is_new(uri, holds)}
        failed = {document.uri for document in seen if document.state is State.FAILED} | (self._unread.keys() & known)
        return DocumentCounts(
            sum(document.state is State.INDEXED for document in seen),
            len(pending),
            len(failed - pending),
            count_omissions(seen),
            self._count_skipped(document for document in seen if document.state is State.SKIPPED),
        )

    def _count_skipped(self, documents: Iterable[Document]) -> dict[str, int]:
        """By reason, without documents that are being read again."""
        counts = Counter(each.code or FailureCode.OTHER.value for each in documents if each.uri not in self._pending)
        return dict(sorted(counts.items()))

    def _is_new(self, uri: str, holds: Callable[[Document], bool]) -> bool:
        return self._store.document(uri) is None and holds(self.coming(uri))

    def _has_failed(self, uri: str) -> bool:
        document = self._store.document(uri)
        return document is not None and document.state is State.FAILED

    def entries(self) -> dict[str, DocumentEntry]:
        """Every document, and what is to become one, by URI."""
        entries = {document.uri: self.entry(document) for document in self._store.documents()}
        for uri in self._pending - entries.keys():
            entries[uri] = DocumentEntry(uri=uri, title="", state=DocumentState.PENDING, passages=0, attempts=0)
        return entries

    def entry(self, document: Document) -> DocumentEntry:
        """As `ls` lists it."""
        entry = document_entry(document)
        if document.uri in self._pending:
            return entry.model_copy(update={"state": DocumentState.PENDING})
        if (reason := self._unread.get(document.uri)) is not None:
            return entry.model_copy(update={"state": DocumentState.FAILED, "error": reason, "retryable": True})
        if document.state is State.FAILED:
            retryable = document.code not in FAILS_AGAIN and self._can_retry(document)
            return entry.model_copy(update={"retryable": retryable})
        return entry

    def retriable(self) -> set[str]:
        """URIs of documents that have failed or are being read anew already, and of files that hold one."""
        failed = {document.uri for document in self._store.documents() if document.state is State.FAILED}
        return failed | {container_uri(uri) for uri in failed} | self._pending | self._unread.keys()

    def next_try_at(self, document: Document) -> datetime | None:
        """When a failed document is tried again by itself; None where it is not, or where that is under way.

        Not before the next time that what has failed is looked through: a time that has passed says nothing.
        """
        if document.uri in self._pending or container_uri(document.uri) in self._under_way:
            return None
        due = self._next_passage_try.get(document.uri) if document.state is not State.FAILED else document.next_try
        if (
            due is None
            or self._next_retry is None
            or (document.state is State.FAILED and not self._can_retry(document))
        ):
            return None
        return utc_time(max(due, self._next_retry, time.time()))
