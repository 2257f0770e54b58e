"""Connects the parts of the pipeline; the interface for sources and services.

The path of a passage: `file_events`, `inbox` or `deliver` puts work into the `intake`. `reading` takes work from the intake,
has it parsed (`document_reader`) and extracted (`extractors`), and puts the change into the `commit_queue`. The `committer`
makes a batch of changes (`batching`), encodes it and commits it, and `batching` notifies everything that waits for the commit.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import structlog

from consumers.openat import FileAccess
from consumers.types import FileChanged, Fingerprint
from daemon.errors import NotReady
from daemon.pipeline.backpressure import DEFAULT_QUEUE_LIMITS, QueueLimits
from daemon.pipeline.commit.batching import Batches, Publish
from daemon.pipeline.commit.commit_queue import CommitQueue
from daemon.pipeline.commit.committer import Committer
from daemon.pipeline.commit.content_index import ContentCounts, DocumentsByFile
from daemon.pipeline.document_changes import delivered_change
from daemon.pipeline.document_reader import DocumentReader
from daemon.pipeline.extraction.extractors import PassageExtractor
from daemon.pipeline.folder_events import FileEvents, PositionCommitted
from daemon.pipeline.incoming.inbox import QUEUE_SLICE_DOCUMENTS, Inbox
from daemon.pipeline.incoming.inbox_progress import POSITION as INBOX_POSITION
from daemon.pipeline.incoming.intake import STOPPING, Intake
from daemon.pipeline.ownership import ADDED, Owners
from daemon.pipeline.read_loop import ReadingLoop
from daemon.pipeline.records import record_of
from daemon.pipeline.work_items import (
    Acknowledgement,
    DeliveredDocument,
    ExtractionsFound,
    RemoveDocument,
    Task,
    Urgency,
    Work,
    container_uri,
)
from memory.types import Encoder
from store.store import Store
from store.types import Document, Extraction, State

log = structlog.get_logger()

CANCEL_AGAIN_S = 1.0
"""Time to wait for a cancelled reading task before cancelling it again. The last task, the committer, is cancelled only once,
because it finishes its commit first."""

RetryDocument = Callable[[Document], None]


class Pipeline:
    """The path from sources to the store. Use on the event loop only."""

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        extractor: PassageExtractor,
        reader: DocumentReader,
        publish: Publish,
        readers: int,
        limits: QueueLimits = DEFAULT_QUEUE_LIMITS,
        on_commit: Callable[[Sequence[str]], None] = lambda _passages: None,
        queries_run: Callable[[], bool] = lambda: False,
        *,
        owners: Owners,
    ) -> None:
        """`readers` is the number of concurrent parsing tasks. `owners` determines which source may change which documents.

        `on_commit` is called after each commit, before waiting tasks continue. Its argument is the ids of the passages in the
        written documents, except passages whose triples the documents supply. `queries_run` returns whether a query is
        running or has just ended.
        """
        self.owners = owners
        self._store = store
        self._reader = reader
        self._publish = publish
        self._readers = readers
        queue = CommitQueue(limits)
        self.intake = Intake(self._announce, queue.update_rank)
        self.inbox = Inbox(
            store.folder / "inbox", self.intake, limits, store.positions.get(INBOX_POSITION), store.check_folder
        )
        self.documents_by_file = DocumentsByFile(store.documents())
        self.content_counts = ContentCounts(store, self.documents_by_file)
        self.file_events = FileEvents(store, self.documents_by_file, self.intake, queue, owners)
        batches = Batches(
            store, self.documents_by_file, owners, self.inbox, self.file_events, publish, on_commit, self._finish
        )
        commit = self.content_counts.commit
        self.committer = Committer(
            store, encoder, extractor, queue, batches.make, commit, batches.committed, queries_run
        )
        self.reading = ReadingLoop(store, self.intake, reader, extractor, queue, self._finish)
        self._retries: dict[str, RetryDocument] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Queues the documents that an earlier run left in the inbox, and starts the tasks."""
        self.inbox.recover()
        runs = {**self.reading.runs(self._readers), "commit": self.committer.run()}
        self._tasks = [asyncio.create_task(run, name=name) for name, run in runs.items()]

    async def stop(self, timeout_s: float) -> None:
        """Accepts no new work, and finishes the present commit. The next start finds the unfinished work."""
        self.intake.stop()
        for task in self._tasks:
            task.cancel()
        late = {*self._tasks}
        until = time.monotonic() + timeout_s
        while late and (left_s := until - time.monotonic()) > 0:
            _, late = await asyncio.wait(late, timeout=min(left_s, CANCEL_AGAIN_S))
            # Before Python 3.12, `wait_for` loses a cancellation that arrives at the moment when the awaited task ends.
            for task in late - {self._tasks[-1]}:
                task.cancel()
        for task in late:
            log.warning("stopped_late", task=task.get_name())
        self.committer.writer.shutdown(wait=False, cancel_futures=True)
        self.inbox.close()

    def ended_tasks(self) -> list[asyncio.Task[None]]:
        """Returns the tasks that have ended unexpectedly, for the watchdog."""
        return [task for task in self._tasks if task.done()]

    # Input.

    def follow_folder(
        self, source: str, folder: FileAccess, known: Iterable[str], committed: PositionCommitted
    ) -> None:
        """Allows files below the folder to be parsed, and calls `committed` with each committed position.

        Call it before `start`. `known` are the store's files below the folder, even if parsed for another folder.
        """
        self._reader.follow_folder(folder)
        self.file_events.listen(source, committed)
        self.file_events.take_over(source, known)

    async def deliver(
        self,
        task: DeliveredDocument,
        source: str,
        attempts: int = 0,
        acknowledgement: Acknowledgement | None = None,
        *,
        more: Sequence[Acknowledgement] = (),
        urgency: Urgency = Urgency.FRESH,
    ) -> None:
        """Accepts a document that its source has parsed. Waits while the commit queue is full.

        Calls `done` of all acknowledgements once the document, or a later version of it, is committed. Raises NotOwner,
        before any waiting work is replaced, if another source owns the document.
        """
        self.owners.check(source, task.uri)
        acknowledgements = [*more, *(() if acknowledgement is None else (acknowledgement,))]
        if (newer := self._newer_under_way(task)) is not None:
            newer.acknowledgements.extend(acknowledgements)
            return
        work = Work(task.uri, task, source, attempts, urgency=urgency, acknowledgements=acknowledgements)
        self.intake.put(work)
        if task.is_read and self.intake.take(work) is not None:
            await self.committer.queue.put(delivered_change(work, task))

    def _newer_under_way(self, task: DeliveredDocument) -> Work | None:
        """Returns unfinished work with a newer record of the document, which `task` with its older record must not replace."""
        if task.record is None or task.record.position is None:
            return None
        for work in self.intake.of(task.uri):
            record = record_of(work.task)
            if record is not None and record.position is not None and task.record.position.is_before(record.position):
                return work
        return None

    async def remove(self, uris: Sequence[str], sees: Callable[[Document], bool] | None = None) -> None:
        """Removes documents; returns once the memory does not contain them. Raises NotReady if hippod stops first.

        `sees` returns whether the client sees a document. Keeps documents that the client no longer sees, because their labels
        changed.
        """
        removals = []
        distinct = dict.fromkeys(uris)
        last_seq = self.intake.last_seq
        for number, uri in enumerate(distinct, 1):
            file = container_uri(uri)
            if file != uri:
                if file in distinct:
                    continue  # removing the file removes all its lines
                # Wait until earlier work for the file, which would add the line again, is done.
                while self.intake.waits(file, last_seq) and not self.intake.stopping:
                    await self.intake.changed_within(0.5)
            # The removal must not replace waiting work for a document that the client does not see.
            while sees is not None and self._unseen_waits(uri, sees) and not self.intake.stopping:
                await self.intake.changed_within(0.5)
            removals.append(self._remove(uri, sees))
            if number % QUEUE_SLICE_DOCUMENTS == 0:
                await asyncio.sleep(0)
        await asyncio.gather(*removals)

    def _unseen_waits(self, uri: str, sees: Callable[[Document], bool]) -> bool:
        """Returns whether waiting work for `uri` may yield a document that the client does not see."""
        work = self.intake.waiting_for(uri)
        return work is not None and not sees(Document(uri, work.source))

    def _remove(self, uri: str, sees: Callable[[Document], bool] | None) -> asyncio.Future[None]:
        removed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.intake.stopping:
            removed.set_exception(NotReady(STOPPING))
        else:
            task = RemoveDocument(uri, sees, _found(self.intake.waiting_for(uri)))
            self.intake.put(Work(uri, task, ADDED, waiters=[removed]))
        return removed

    async def commit_extractions(self, extractions: Mapping[str, Extraction]) -> None:
        """Commits the extractions of committed passages; returns after the commit.

        Waits while the memory must not grow: triples need more memory than their passages.
        """
        await self.intake.room()
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self.committer.queue.put(ExtractionsFound(dict(extractions), committed))
        await committed

    # Retries.

    def on_retry(self, source: str, retry: RetryDocument) -> None:
        """Registers `retry`, which retries a failed document of `source`."""
        self._retries[source] = retry

    def can_retry(self, document: Document) -> bool:
        """Returns whether a failed document can be retried: from its file, from stored payload, or by its source."""
        if document.uri.startswith("file:"):
            return True
        return document.payload is not None and (document.source == ADDED or self._retry_of(document) is not None)

    def retry(self, document: Document) -> bool:
        """Makes the document's source retry the document.

        Returns False if the source cannot retry, is no longer followed, or has sent a later version that is being processed.
        """
        retry = self._retry_of(document)
        if retry is None or self.intake.busy(document.uri):
            return False
        retry(document)
        return True

    def _retry_of(self, document: Document) -> RetryDocument | None:
        """Returns the retry function of the document's source; None if the source is no longer followed or no longer the
        owner."""
        owned = self.owners.owns(document.source, document.uri)
        return self._retries.get(document.source) if owned else None

    def resubmit(self, uri: str, task: Task, attempts: int) -> bool:
        """Retries a failed document for its owner; returns False if other work for the document exists.

        That work arrived after the failure (a correction or a removal), so it takes precedence.
        """
        if self.intake.busy(container_uri(uri)):
            return False
        self.intake.put(Work(container_uri(uri), task, self.owners.owner(uri).source, attempts))
        return True

    # Results.

    def _announce(self, key: str, source: str) -> None:
        before, coming = self._store.document(key), Document(key, source, state=State.PENDING)
        self._publish(State.PENDING.value, key, before=before, after=coming)

    def _finish(self, work: Work) -> None:
        """Records that `work` is committed, failed or superseded."""
        self.intake.done(work)
        self.inbox.done(work)

    async def drained(self) -> None:
        """Returns once all work that exists now is committed or failed."""
        await self.intake.drained()


def _found(waiting: Work | None) -> Fingerprint | None:
    """Returns the file's fingerprint in the waiting work that a removal replaced; None without such work, or for a retry."""
    if waiting is None:
        return None
    task = waiting.task
    if isinstance(task, FileChanged):
        return task.fingerprint
    return task.found if isinstance(task, RemoveDocument) else None
