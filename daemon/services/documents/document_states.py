"""The present state of each document: its state in the store, overridden by work in progress.

A document that is being parsed again is pending, whatever its stored state. A document with a passage that the model could not
extract is failed, although its stored state is indexed. `ls`, `status`, `show` and the page use this module, so that they
agree.
"""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from heapq import merge
from itertools import groupby

from consumers.failure_codes import FAILS_AGAIN, FailureCode
from daemon.contract.base import utc_time
from daemon.contract.choices import DocumentState
from daemon.contract.documents import DocumentEntry
from daemon.pipeline.extraction.failed_passages import PassageFailure
from daemon.pipeline.extraction.queue import ExtractionQueue
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work_items import container_uri
from daemon.services.documents.document_references import document_entry
from store.reader import count_omissions
from store.store import Store
from store.types import Document, State


@dataclass(frozen=True, slots=True)
class DocumentCounts:
    """Numbers of documents. `indexed` counts documents that queries find, including those being parsed again."""

    indexed: int
    pending: int
    failed: int
    left_out: dict[str, int]
    """Omitted content of all documents, by kind."""
    skipped: dict[str, int]
    """Skipped documents, by reason."""


class CurrentStates:
    """The store's documents, combined with the work in progress at one moment. Create on the event loop; use in any thread."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        extraction_queue: ExtractionQueue,
        next_retry: Callable[[], float | None] = lambda: None,
    ) -> None:
        """`next_retry` returns when failed documents are next retried (Unix seconds); None if automatic retries are off."""
        self._store = store
        self._under_way = pipeline.intake.sources()
        """Source of each URI that is being parsed."""
        self._waiting = extraction_queue.unfinished()
        self._failures = extraction_queue.failures()
        """Passages on which the extractor failed. Like `_waiting`, contains only passages of documents that do not supply the
        extraction."""
        self._next_retry = next_retry()
        self._can_retry = pipeline.can_retry

    # Computed in the caller's thread, because the first indexing has many documents.

    @cached_property
    def _pending(self) -> frozenset[str]:
        return frozenset(self._under_way).union(*map(self._store.documents_to_extract, self._waiting))

    @cached_property
    def _failed_passages(self) -> dict[str, list[PassageFailure]]:
        """The failures in each document, by URI."""
        found: dict[str, list[PassageFailure]] = {}
        for id, failure in self._failures.items():
            for uri in self._store.documents_to_extract(id):
                found.setdefault(uri, []).append(failure)
        return found

    @cached_property
    def _failed_extractions(self) -> dict[str, str]:
        """The reasons for failed passages, by the document's URI."""
        return {
            uri: f"the model could not extract {len(failures)} of its passages, which are found without triples: "
            f"{failures[0].reason}"
            for uri, failures in self._failed_passages.items()
        }

    def _next_passage_try(self, uri: str) -> float | None:
        """Returns the time of the earliest automatic retry of a failed passage, in Unix seconds."""
        tries = (failure.next_try for failure in self._failed_passages.get(uri, ()))
        return min((due for due in tries if due is not None), default=None)

    def counts(self) -> DocumentCounts:
        stored = self._store.states()
        again = sum(self._has_failed(uri) for uri in self._pending)
        failed_extractions = sum(
            uri not in self._pending and not self._has_failed(uri) for uri in self._failed_extractions
        )
        return DocumentCounts(
            stored.get(State.INDEXED, 0),
            len(self._pending),
            stored.get(State.FAILED, 0) - again + failed_extractions,
            self._store.omissions(),
            self._count_skipped(self._store.skipped()),
        )

    def coming(self, uri: str) -> Document:
        """Returns a pending document with the data known while it is parsed for the first time."""
        return Document(uri, self._under_way.get(uri, ""), state=State.PENDING)

    def counts_of(self, holds: Callable[[Document], bool]) -> DocumentCounts:
        """Like `counts`, for only the documents that `holds` accepts."""
        seen = [document for document in self._store.documents() if holds(document)]
        known = {document.uri for document in seen}
        new = {uri for uri in self._pending if self._store.document(uri) is None and holds(self.coming(uri))}
        pending = (self._pending & known) | new
        failed = {document.uri for document in seen if document.state is State.FAILED} | (
            self._failed_extractions.keys() & known
        )
        return DocumentCounts(
            sum(document.state is State.INDEXED for document in seen),
            len(pending),
            len(failed - pending),
            count_omissions(seen),
            self._count_skipped(document for document in seen if document.state is State.SKIPPED),
        )

    def _count_skipped(self, documents: Iterable[Document]) -> dict[str, int]:
        """Returns the counts by reason; omits documents that are being parsed again."""
        counts = Counter(each.code or FailureCode.OTHER.value for each in documents if each.uri not in self._pending)
        return dict(sorted(counts.items()))

    def _has_failed(self, uri: str) -> bool:
        document = self._store.document(uri)
        return document is not None and document.state is State.FAILED

    def uris(self, first: str, stored: Sequence[str]) -> Iterator[str]:
        """Returns the URIs from `first` on, sorted, including uncommitted documents. `stored`: the store's URIs, sorted."""
        pending = sorted(uri for uri in self._pending if uri >= first)
        from_first = (stored[at] for at in range(bisect_left(stored, first), len(stored)))
        return (uri for uri, _ in groupby(merge(from_first, pending)))

    def document(self, uri: str) -> Document | None:
        """Returns a stored or pending document; None if a commit has just removed it."""
        return self._store.document(uri) or (self.coming(uri) if uri in self._pending else None)

    def state(self, document: Document) -> DocumentState:
        if document.uri in self._pending:
            return DocumentState.PENDING
        return DocumentState.FAILED if document.uri in self._failed_extractions else DocumentState(document.state.value)

    def entry(self, document: Document) -> DocumentEntry:
        """Returns the document as an entry of `ls`."""
        found: dict[str, object] = {"state": self.state(document)}
        if document.uri not in self._pending:
            if (reason := self._failed_extractions.get(document.uri)) is not None:
                found |= {"error": reason, "retryable": True}
            elif document.state is State.FAILED:
                found["retryable"] = document.code not in FAILS_AGAIN and self._can_retry(document)
        return document_entry(document).model_copy(update=found)

    def retriable(self) -> set[str]:
        """Returns the URIs of documents that have failed or are being parsed again, and of files with such a document."""
        failed = {document.uri for document in self._store.documents() if document.state is State.FAILED}
        return failed | {container_uri(uri) for uri in failed} | self._pending | self._failed_extractions.keys()

    def next_try_at(self, document: Document) -> datetime | None:
        """Returns the time of a failed document's automatic retry; None if there will be none, or the retry is in progress.

        The time is not before the next automatic retry of failed documents, and never in the past.
        """
        if document.uri in self._pending or container_uri(document.uri) in self._under_way:
            return None
        due = self._next_passage_try(document.uri) if document.state is not State.FAILED else document.next_try
        if (
            due is None
            or self._next_retry is None
            or (document.state is State.FAILED and not self._can_retry(document))
        ):
            return None
        return utc_time(max(due, self._next_retry, time.time()))
