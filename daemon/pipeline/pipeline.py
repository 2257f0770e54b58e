"""Puts the pipeline's parts together, and is what sources and services talk to.

A passage goes straight through them: `file_events`, `inbox` or `deliver` put work into the `intake`; `reading` takes it, has it
read (`document_reader`) and extracted (`extractors`), and puts the change into the `commit_queue`; the `committer` makes a
batch (`batching`), encodes and commits it; `_after_commit` tells everybody who waits (`commit_report`, acknowledgements).
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from consumers.records.record import Record
from consumers.types import FileChanged, FileMoved, Fingerprint
from daemon.errors import NotReady
from daemon.pipeline.acknowledgement import Acknowledgement, merged_positions
from daemon.pipeline.backpressure import DEFAULT_QUEUE_LIMITS, QueueLimits
from daemon.pipeline.commit.batching import DocumentsByFile, make_batch
from daemon.pipeline.commit.commit_events import Publish, report_commit, report_documents
from daemon.pipeline.commit.committer import Committer
from daemon.pipeline.extraction.extractors import PassageExtractor
from daemon.pipeline.folder_events import FileEvents, PositionCommitted
from daemon.pipeline.incoming.inbox import QUEUE_SLICE_DOCUMENTS, Inbox
from daemon.pipeline.incoming.inbox_progress import POSITION as INBOX_POSITION
from daemon.pipeline.incoming.intake import STOPPING, Intake
from daemon.pipeline.ownership import ADDED, NotOwner, Owners
from daemon.pipeline.parse_task import DocumentReader, FolderAccess, delivered_change
from daemon.pipeline.read_loop import ReadingLoop
from daemon.pipeline.records import RemovedRecords, is_overtaken, record_of
from daemon.pipeline.work_items import (
    Change,
    DeliveredDocument,
    DocumentChange,
    ExtractionsFound,
    RemoveDocument,
    Task,
    Urgency,
    Work,
    container_uri,
)
from memory.types import Encoder
from store.store import CommitResult, Store
from store.types import Batch, Document, Extraction, State

log = structlog.get_logger()

CANCEL_AGAIN_S = 1.0
"""How long a reader that is to stop may take before it is told again. The committer, the last task, is told once: it ends its
commit first."""

RetryDocument = Callable[[Document], None]


class Pipeline:
    """On the event loop."""

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
        asked_recently: Callable[[], bool] = lambda: False,
        *,
        owners: Owners,
    ) -> None:
        """`readers`: how many pieces of work are read at once. `owners`: which source may write and remove what.

        `on_commit` is called after each commit, before anybody who waits for it goes on, with the passages of the documents
        that it wrote, but for those with triples from these documents. `asked_recently`: whether queries are being answered.
        """
        self.owners = owners
        self._store = store
        self._reader = reader
        self._publish = publish
        self._readers = readers
        self._on_commit = on_commit
        self.intake = Intake(self._announce)
        self.inbox = Inbox(
            store.folder / "inbox", self.intake, limits, store.positions.get(INBOX_POSITION), store.check_folder
        )
        self.documents_by_file = DocumentsByFile(store.documents())
        self.committer = Committer(
            store, encoder, extractor, self._make_batch, self._after_commit, limits, asked_recently
        )
        self.file_events = FileEvents(store, self.documents_by_file, self.intake, self.committer.queue, owners)
        self.reading = ReadingLoop(store, self.intake, reader, extractor, self.committer.queue, self._finish)
        self._removed = RemovedRecords(store.positions)
        self._retries: dict[str, RetryDocument] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Takes up what the inbox has from before, and goes on."""
        self.inbox.recover()
        self._tasks = [asyncio.create_task(self.reading.run(), name=f"read {n}") for n in range(self._readers)]
        self._tasks.append(asyncio.create_task(self.reading.run_fresh(), name="read fresh"))
        self._tasks.append(asyncio.create_task(self.reading.run_starved(), name="read starved"))
        self._tasks.append(asyncio.create_task(self.reading.run_slow(), name="read slow"))
        self._tasks.append(asyncio.create_task(self.reading.run_freeing(), name="read freeing"))
        self._tasks.append(asyncio.create_task(self.committer.run(), name="commit"))

    async def stop(self, timeout_s: float) -> None:
        """Takes no new work and lets the commit under way finish; the rest is found again at the next start."""
        self.intake.stop()
        for task in self._tasks:
            task.cancel()
        late = {*self._tasks}
        until = time.monotonic() + timeout_s
        while late and (left_s := until - time.monotonic()) > 0:
            _, late = await asyncio.wait(late, timeout=min(left_s, CANCEL_AGAIN_S))
            # Before Python 3.12 `wait_for` loses a cancellation that comes as what it waits for ends.
            for task in late - {self._tasks[-1]}:
                task.cancel()
        for task in late:
            log.warning("stopped_late", task=task.get_name())
        self.committer.writer.shutdown(wait=False, cancel_futures=True)
        self.inbox.close()

    def ended_tasks(self) -> list[asyncio.Task[None]]:
        """The parts that run no more: what the watchdog asks."""
        return [task for task in self._tasks if task.done()]

    # What comes in.

    def follow_folder(
        self,
        source: str,
        root: bytes,
        follow_symlinks: bool,
        known: Iterable[str],
        committed: PositionCommitted,
        max_bytes: int | None = None,
    ) -> None:
        """Files below `root` may be read, each up to `max_bytes`; `committed` is called with the position of each once that is
        in the store.

        Called before `start`. `known`: the files below `root` that the store knows, whichever folder they were read for.
        """
        self._reader.follow_folder(FolderAccess(root, follow_symlinks, max_bytes))
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
        """Takes a document that its source has read; waits while too much is ready to be committed.

        `acknowledgement`, and `more` of them, are done once the document is committed, or a later one that replaced it.
        Raises NotOwner where the document is another source's: it must not even take the place of work that waits.
        """
        self.owners.check(source, task.uri)
        acknowledgements = (*more, *(() if acknowledgement is None else (acknowledgement,)))
        if (newer := self._newer_under_way(task)) is not None:
            newer.acknowledgements.extend(acknowledgements)
            return
        work = self.intake.put(task.uri, task, source, attempts, acknowledgements=acknowledgements, urgency=urgency)
        if task.is_read and self.intake.take(work) is not None:
            await self.committer.queue.put(delivered_change(work, task))

    def _newer_under_way(self, task: DeliveredDocument) -> Work | None:
        """Work with a newer record of the same document: it must not be replaced by this older one."""
        if task.record is None or task.record.position is None:
            return None
        for work in self.intake.of(task.uri):
            record = record_of(work.task)
            if record is not None and record.position is not None and task.record.position.is_before(record.position):
                return work
        return None

    async def record_file_fault(self, path: Path) -> str | None:
        """Why a file cannot be read as one of records, None where it can."""
        return await self._reader.record_file_fault(path)

    async def remove(self, uris: Sequence[str], sees: Callable[[Document], bool] | None = None) -> None:
        """Returns once the documents are gone from the memory. NotReady where hippod stops before.

        `sees`: which documents those who ask see. One that they do not see by then, as its labels have changed, stays.
        """
        removals = []
        distinct = dict.fromkeys(uris)
        last_seq = self.intake.last_seq
        for number, uri in enumerate(distinct, 1):
            file = container_uri(uri)
            if file != uri:
                if file in distinct:
                    continue  # the file's removal takes all its lines
                # Work that came before for the file would give the line anew.
                while self.intake.waits(file, last_seq) and not self.intake.stopping:
                    await self.intake.changed_within(0.5)
            # What waits may be of a document that they do not see: it must not make way for the removal.
            while sees is not None and self._unseen_waits(uri, sees) and not self.intake.stopping:
                await self.intake.changed_within(0.5)
            removals.append(self._remove(uri, sees))
            if number % QUEUE_SLICE_DOCUMENTS == 0:
                await asyncio.sleep(0)
        await asyncio.gather(*removals)

    def _unseen_waits(self, uri: str, sees: Callable[[Document], bool]) -> bool:
        """Whether work for `uri` waits that may give a document that is not seen."""
        work = self.intake.waiting_for(uri)
        return work is not None and not sees(Document(uri, work.source))

    def _remove(self, uri: str, sees: Callable[[Document], bool] | None) -> asyncio.Future[None]:
        removed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.intake.stopping:
            removed.set_exception(NotReady(STOPPING))
        else:
            task = RemoveDocument(uri, sees, _found(self.intake.waiting_for(uri)))
            self.intake.put(uri, task, ADDED).waiters.append(removed)
        return removed

    async def commit_extractions(self, extractions: Mapping[str, Extraction]) -> None:
        """Commits what was found in passages that are committed already; returns once that is done.

        Waits while the memory may not grow: triples take more of it than the passages that they were found in.
        """
        await self.intake.room()
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self.committer.queue.put(ExtractionsFound(dict(extractions), committed))
        await committed

    # What failed, once more.

    def on_retry(self, source: str, retry: RetryDocument) -> None:
        """`retry` is called to try a failed document of `source` once more."""
        self._retries[source] = retry

    def can_retry(self, document: Document) -> bool:
        """Whether a failed document can be had again: as a file, from what is kept of it, or from a source that is followed."""
        if document.uri.startswith("file:"):
            return True
        return document.payload is not None and (document.source == ADDED or self._retry_of(document) is not None)

    def retry(self, document: Document) -> bool:
        """Has the document's source try it once more; false where the source cannot, is not followed any more, or has sent
        a later version that is under way."""
        retry = self._retry_of(document)
        if retry is None or self.intake.busy(document.uri):
            return False
        retry(document)
        return True

    def _retry_of(self, document: Document) -> RetryDocument | None:
        """How the document's source tries it once more; None for a source that is not followed, or not its owner any more."""
        owned = self.owners.owns(document.source, document.uri)
        return self._retries.get(document.source) if owned else None

    def resubmit(self, uri: str, task: Task, attempts: int) -> bool:
        """Tries a failed document once more, for its owner; false where other work for it is under way.

        That came after the failure, so it is what counts: a correction that was accepted, or a removal.
        """
        if self.intake.busy(container_uri(uri)):
            return False
        self.intake.put(container_uri(uri), task, self.owners.owner(uri).source, attempts)
        return True

    # What becomes of it.

    def _make_batch(self, changes: Sequence[Change]) -> Batch:
        permitted = [change for change in changes if self._is_permitted(change)]
        batch = make_batch(self._store, self.documents_by_file, permitted)
        touched = self.file_events.batch_positions()
        delivered = merged_positions(_acknowledgements(changes))
        removals = self._removed.positions(_applied_records(self._store, permitted))
        added = self.inbox.positions([place for work in _ended_work(changes) for place in work.inbox_places])
        return replace(batch, positions={**touched, **batch.positions, **removals, **delivered, **added})

    def _is_permitted(self, change: Change) -> bool:
        """Whether the change's source owns all that it writes and removes. The only check that every change passes."""
        # The right to remove is the client's, and is checked where the request comes in.
        if isinstance(change, ExtractionsFound) or isinstance(change.work.task, RemoveDocument):
            return True
        task = change.work.task
        moved = (task.old_uri,) if isinstance(task, FileMoved) else ()
        try:
            for uri in (change.work.key, *moved, *(document.uri for document in change.documents)):
                self.owners.check(change.work.source, uri)
        except NotOwner as refused:
            log.warning("change_refused", uri=change.work.key, source=change.work.source, error=refused)
            return False
        return True

    def _after_commit(self, changes: Sequence[Change], batch: Batch, committed: CommitResult, took_ms: float) -> None:
        self.documents_by_file.update(batch)
        self._removed.committed(batch.positions)
        report_documents(batch, committed, self._publish)
        self._on_commit([ref.passage for each in batch.documents for ref in each.passages if ref.triples is None])
        self.file_events.committed(changes, batch)
        for acknowledgement in _acknowledgements(changes):
            acknowledgement.done()
        for work in _ended_work(changes):
            self._finish(work)
        report_commit(batch, committed, took_ms, self._publish)

    def _announce(self, key: str, source: str) -> None:
        before, coming = self._store.document(key), Document(key, source, state=State.PENDING)
        self._publish(State.PENDING.value, key, before=before, after=coming)

    def _finish(self, work: Work) -> None:
        """`work` is committed, failed, or not worth doing any more."""
        self.intake.done(work)
        self.inbox.done(work)

    async def drained(self) -> None:
        """Returns once all that is here now is committed or failed."""
        await self.intake.drained()


def _found(waiting: Work | None) -> Fingerprint | None:
    """The file that waits to be read, or was to be before its removal waited; None for a retry, which knows no file."""
    if waiting is None:
        return None
    task = waiting.task
    if isinstance(task, FileChanged):
        return task.fingerprint if task.fingerprint.size >= 0 else None
    return task.found if isinstance(task, RemoveDocument) else None


def _applied_records(store: Store, changes: Sequence[Change]) -> Iterator[Record]:
    for change in changes:
        if isinstance(change, DocumentChange) and not is_overtaken(store, change.work.task):
            record = record_of(change.work.task)
            if record is not None:
                yield record


def _acknowledgements(changes: Sequence[Change]) -> Iterator[Acknowledgement]:
    return (each for work in _ended_work(changes) for each in work.acknowledgements)


def _ended_work(changes: Sequence[Change]) -> Iterator[Work]:
    """The work that these changes complete."""
    return (change.work for change in changes if isinstance(change, DocumentChange) and change.final)
