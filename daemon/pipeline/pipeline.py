"""The pipeline: what the sources and the API put in, read and committed, in the order of each document's changes."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import structlog

from consumers.failures import FailureCode
from consumers.types import FileChanged, FileEvent, FileMoved, FileRemoved, Fingerprint
from daemon.api.errors import Busy, NotReady, TooLarge
from daemon.observe.metrics import DOCUMENTS, FAILURES, timed
from daemon.observe.redaction import system_said
from daemon.pipeline.acknowledgement import Acknowledgement, merged_positions
from daemon.pipeline.backpressure import DEFAULT_QUEUE_LIMITS, Capacity, QueueLimits
from daemon.pipeline.batching import DocumentsByFile, assemble, ending
from daemon.pipeline.committer import Committer
from daemon.pipeline.document_reader import DocumentReader, FolderAccess, delivered_change, retry_payload
from daemon.pipeline.extractors import PassageExtractor
from daemon.pipeline.inbox import Inbox
from daemon.pipeline.intake import Intake
from daemon.pipeline.store_documents import failed_document
from daemon.pipeline.work import (
    AddedDocument,
    Change,
    DeliveredDocument,
    DocumentChange,
    ExtractionsFound,
    RemoveDocument,
    Task,
    Work,
    container_uri,
)
from daemon.workers.pool import WorkerFailed
from memory.types import Encoder
from store.store import CommitResult, Store
from store.types import Batch, Document, Extraction, State

ADDED = "added"
"""The source of documents that were handed in."""

QUEUE_SLICE_DOCUMENTS = 500
"""Documents that are queued, some milliseconds' work, before the event loop is free for others."""

STOPPING = "hippod is stopping; ask again when it is back"

log = structlog.get_logger()

Publish = Callable[..., None]
Position = Callable[[str, Fingerprint | None], None]
Again = Callable[[Document], None]


def failed_change(work: Work, reason: str, code: FailureCode) -> DocumentChange:
    """The change of work that could not be carried through: a failed document that keeps what a retry needs."""
    return DocumentChange(
        work,
        [
            failed_document(
                work.key, work.source, reason, code, work.attempts, skipped=False, payload=retry_payload(work.task)
            )
        ],
    )


def _acknowledgements(changes: Sequence[Change]) -> Iterator[Acknowledgement]:
    """Of the work that these changes complete."""
    done = (change for change in changes if isinstance(change, DocumentChange) and change.final)
    return (each for change in done for each in change.work.acknowledgements)


def _weight(documents: Sequence[AddedDocument]) -> tuple[int, int]:
    """How many, and of how many bytes in UTF-8."""
    return len(documents), sum(_bytes(document.text) for document in documents)


def _bytes(text: str) -> int:
    """Without encoding where every character is one byte, as in JSON that is escaped."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class Pipeline:
    """Runs on the event loop. Everything but `emit` is to be called there."""

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
    ) -> None:
        """`on_commit` is called after each commit, before anybody who waits for it goes on, with the passages of the documents
        that it wrote, but for those that have triples from these documents."""
        self._store = store
        self._on_commit = on_commit
        self._extractor = extractor
        self._reader = reader
        self._publish = publish
        self._readers = readers
        self.intake = Intake()
        self.documents_by_file = DocumentsByFile(store.documents())
        self._inbox = Inbox(store.folder / "inbox")
        self.inbox_capacity = Capacity(limits.inbox_documents, limits.inbox_bytes)
        """What was handed in and is not indexed: documents, and bytes."""
        self._tickets: dict[str, tuple[int, int]] = {}
        self._queueing = asyncio.Lock()
        self._taking: set[asyncio.Task[str]] = set()
        self._stopping = False
        """Nothing that is handed in is taken any more: the API ends after this."""
        self._inbox_writer = ThreadPoolExecutor(1, thread_name_prefix="inbox")
        self.committer = Committer(store, encoder, extractor, self._assemble, self._applied, failed_change, limits)
        self._positions: dict[str, Position] = {}
        self._again: dict[str, Again] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._touched: dict[str, Any] = {}
        self._taken: dict[str, Any] = {}
        """Those of them that the batch under way takes along."""
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Takes up what the inbox holds from before, and goes on."""
        for ticket, documents in self._inbox.waiting():
            weight = _weight(documents)
            self.inbox_capacity.take(*weight)
            self._hold(ticket, weight)
            self._queue(ticket, documents)
        self._tasks = [asyncio.create_task(self._read_on(), name=f"read {n}") for n in range(self._readers)]
        self._tasks.append(asyncio.create_task(self.committer.run(), name="commit"))

    async def stop(self, timeout_s: float) -> None:
        """Takes no new work and lets the commit under way finish; the rest is found again at the next start."""
        self._stopping = True
        for work in self.intake.pending():
            for waiter in work.waiters:
                if not waiter.done():
                    waiter.set_exception(NotReady(STOPPING))
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=timeout_s)
            for task in late:
                log.warning("stopped_late", task=task.get_name())
        self.committer.writer.shutdown(wait=False, cancel_futures=True)
        self._inbox_writer.shutdown(wait=False)

    def alive(self) -> bool:
        """Whether every part runs: what the watchdog asks."""
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    # What comes in.

    def follow_folder(self, source: str, root: bytes, follow_symlinks: bool, committed: Position) -> None:
        """Files below `root` may be read; `committed` is told the position of each once that is in the store."""
        self._reader.follow_folder(FolderAccess(root, follow_symlinks))
        self._positions[source] = committed

    def emit(self, event: FileEvent) -> None:
        """Takes an event from a source's own thread."""
        self._loop.call_soon_threadsafe(self._emitted, event)

    def touched(self, uri: str, fingerprint: Fingerprint) -> None:
        """A file has another mtime and the same content: nothing to read, its position goes along with the next commit."""
        self._loop.call_soon_threadsafe(self._touch, uri, fingerprint.to_json())

    def _touch(self, uri: str, position: Any) -> None:
        self._touched[uri] = position

    def _emitted(self, event: FileEvent) -> None:
        if isinstance(event, FileMoved) and not self._keeps(event):
            # It is read under the new name; passages that are known are not extracted again all the same.
            self._put(event.old_uri, FileRemoved(event.old_uri, event.source), event.source)
            self._put(event.uri, FileChanged(event.uri, event.path, event.source, event.fingerprint), event.source)
        else:
            work = self._put(event.uri, event, event.source)
            if isinstance(event, FileMoved) and self.intake.take(work) is not None:
                # Nothing has to be read, and a new file under the old name must come after it.
                self.committer.put_now(DocumentChange(work, positions={event.uri: event.fingerprint.to_json()}))

    def _keeps(self, event: FileMoved) -> bool:
        """Whether the file's documents are what reading it under its new name would give, and nothing comes between."""
        held = [self._store.document(uri) for uri in self.documents_by_file.of(event.old_uri)]
        return (
            not self.intake.busy(event.old_uri)
            and not self.intake.busy(event.uri)
            and bool(held)
            and all(document is not None and document.state is State.INDEXED for document in held)
            and ending(event.old_uri) == ending(event.uri)
        )

    def _put(
        self,
        key: str,
        task: Task,
        source: str,
        attempts: int = 0,
        tickets: Sequence[str] = (),
        acknowledgements: Sequence[Acknowledgement] = (),
    ) -> Work:
        work = self.intake.put(key, task, source, attempts, tickets, acknowledgements)
        self._publish(State.PENDING.value, key)
        return work

    def refuse_too_many(self, documents: int, bytes: int = 0) -> None:
        """TooLarge where that much could not wait to be indexed even if nothing else did."""
        most, most_bytes = self.inbox_capacity.most
        taken = "none of these was taken: send them in several requests"
        if documents > most:
            raise TooLarge(
                f"These are {documents} documents, and no more than {most} may wait to be indexed ([daemon] "
                f"inbox_documents); {taken}."
            )
        if bytes > most_bytes:
            raise TooLarge(
                f"These documents have {bytes} bytes, and no more than {most_bytes} may wait to be indexed ([daemon] "
                f"inbox_bytes); {taken}, and split a document that is larger by itself."
            )

    async def add(self, documents: Sequence[AddedDocument], wait: bool = False) -> str:
        """Returns their ticket once a crash does not lose the documents, of which no two have the same URI.

        Where too many wait already: Busy, or with `wait` it waits too. More than could ever wait: TooLarge, or with `wait`
        they are taken once nothing else waits. NotReady where hippod stops, or the disk takes nothing.
        """
        weight = _weight(documents)
        if not wait:
            self.refuse_too_many(*weight)
        while not self.inbox_capacity.holds(*weight):
            if self._stopping:
                raise NotReady(STOPPING)
            if not wait:
                raise Busy(
                    f"{self.inbox_capacity.items} added documents wait to be indexed, the most that may ([daemon] "
                    "inbox_documents, inbox_bytes); none of these was taken: send them again in a moment.",
                    of="inbox",
                    retry_after_s=2,
                )
            await self.intake.changed_within(0.5)
        self.inbox_capacity.take(*weight)
        taking = self._loop.create_task(self._take(documents, weight), name="add")
        self._taking.add(taking)
        taking.add_done_callback(self._taking.discard)
        return await asyncio.shield(taking)  # who asked may go: what is on disk, or half queued, is queued to its end

    async def _take(self, documents: Sequence[AddedDocument], weight: tuple[int, int]) -> str:
        try:
            if self._stopping:
                raise NotReady(STOPPING)
            ticket = await self._loop.run_in_executor(self._inbox_writer, self._inbox.put, documents)
        except OSError as error:
            self.inbox_capacity.give(*weight)
            raise NotReady(
                f"The disk that holds the memory ([store] path) refused to keep what was added: "
                f"{system_said(error) or type(error).__name__}; none of it was taken: send it again once the disk takes it.",
                retry_after_s=10,
            ) from error
        except BaseException:
            self.inbox_capacity.give(*weight)
            raise
        self._hold(ticket, weight)
        # In the order of the tickets, in which they are taken up after a crash.
        async with self._queueing:
            for start in range(0, len(documents), QUEUE_SLICE_DOCUMENTS):
                self._queue(ticket, documents[start : start + QUEUE_SLICE_DOCUMENTS])
                await asyncio.sleep(0)
        return ticket

    async def indexed(self, tickets: Iterable[str]) -> None:
        """Returns once the documents that were added for these tickets are committed, or what took their place."""
        for ticket in tickets:
            while ticket in self._tickets:
                await self.intake.changed()

    def _hold(self, ticket: str, weight: tuple[int, int]) -> None:
        self._tickets[ticket] = weight
        self._inbox.hold(ticket, weight[0])

    def _queue(self, ticket: str, documents: Sequence[AddedDocument]) -> None:
        for document in documents:
            self._put(document.uri, document, ADDED, tickets=[ticket])

    async def remove(self, uris: Sequence[str]) -> None:
        """Returns once the documents are gone from the memory. NotReady where hippod stops before."""
        waiting = []
        each = dict.fromkeys(uris)
        asked = self.intake.mark
        for number, uri in enumerate(each, 1):
            file = container_uri(uri)
            if file != uri:
                if file in each:
                    continue  # the file's removal takes all its lines
                # What came before for the file would give the line anew.
                while self.intake.waits(file, asked) and not self._stopping:
                    await self.intake.changed_within(0.5)
            waiting.append(self._forgotten(uri))
            if number % QUEUE_SLICE_DOCUMENTS == 0:
                await asyncio.sleep(0)
        await asyncio.gather(*waiting)

    def _forgotten(self, uri: str) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self._loop.create_future()
        if self._stopping:
            future.set_exception(NotReady(STOPPING))
        else:
            self._put(uri, RemoveDocument(uri), ADDED).waiters.append(future)
        return future

    async def deliver(
        self, task: DeliveredDocument, source: str, attempts: int = 0, acknowledgement: Acknowledgement | None = None
    ) -> None:
        """Takes a document that its source has read; waits while too much is ready to be committed.

        `acknowledgement` is done once the document is committed, or a later one that replaced it.
        """
        acknowledgements = () if acknowledgement is None else (acknowledgement,)
        work = self._put(task.uri, task, source, attempts, acknowledgements=acknowledgements)
        passages = task.document.passages if task.document is not None else ()
        if all(passage.triples is not None for passage in passages) and self.intake.take(work) is not None:
            await self.committer.put(delivered_change(work, task))

    def take_again(self, source: str, again: Again) -> None:
        """`again` is asked to try the failed documents of `source` once more."""
        self._again[source] = again

    def retry(self, document: Document) -> bool:
        """Has the document's source try it once more; false where the source does not, is not followed any more, or has sent
        a later one that is under way."""
        again = self._again.get(document.source)
        if again is None or self.intake.busy(document.uri):
            return False
        again(document)
        return True

    def again(self, uri: str, task: Task, source: str, attempts: int) -> bool:
        """Tries a failed document once more; false where other work for it is under way.

        That came after the failure, so it is what counts: a correction that was accepted, or a removal.
        """
        if self.intake.busy(container_uri(uri)):
            return False
        self._put(container_uri(uri), task, source, attempts)
        return True

    async def commit_extractions(self, extractions: Mapping[str, Extraction]) -> None:
        """Commits what was found in passages that are committed already; returns once that is done."""
        done: asyncio.Future[None] = self._loop.create_future()
        await self.committer.put(ExtractionsFound(dict(extractions), done))
        await done

    # What happens to it.

    async def _read_on(self) -> None:
        while True:
            work = self.intake.take()
            if work is None:
                await self.intake.changed()
                continue
            try:
                await self._carry(work)
            except Exception as error:  # whatever one document does to its parser or to us, the others go on
                log.error("reading_failed", uri=work.key, error=error, exc_info=not isinstance(error, WorkerFailed))
                if isinstance(error, WorkerFailed):
                    failed = failed_change(work, str(error), error.code)
                else:
                    failed = failed_change(work, f"internal error: {error!r}; see the log", FailureCode.INTERNAL)
                await self.committer.put(failed)

    async def _carry(self, work: Work) -> None:
        async for change in self._reader.read(work):
            if self.intake.superseded(work) and not work.seen:
                log.debug("superseded", uri=work.key)
                self.intake.pass_on(work)
                self._finish(work)
                return
            if change.texts:
                change.extractions = await self._extract(change)
            await self.committer.put(change)

    async def _extract(self, change: DocumentChange) -> Any:
        unread = self._store.unextracted(
            Batch(documents=tuple(change.documents), passages=tuple(change.texts.values()))
        )
        if not unread:
            return {}
        with timed("extract"):
            return {found.passage: found for found in await self._extractor.extract(unread)}

    def _assemble(self, changes: Sequence[Change]) -> Batch:
        batch = assemble(self._store, self.documents_by_file, changes)
        source_positions = merged_positions(_acknowledgements(changes))
        # A file that is to be read again was told of as it is now: with its position the document before would count as that.
        self._taken = {uri: at for uri, at in self._touched.items() if not self.intake.busy(uri)}
        return replace(batch, positions={**self._taken, **batch.positions, **source_positions})

    def _applied(self, changes: Sequence[Change], batch: Batch, committed: CommitResult, took_ms: float) -> None:
        for document in batch.documents:
            self.documents_by_file.add(document.uri)
            DOCUMENTS.labels(document.state.value).inc()
            if document.state is not State.INDEXED:
                reason = document.code or FailureCode.OTHER
                FAILURES.labels(document.state.value, reason).inc()
                if document.state is State.FAILED:
                    log.warning("document_failed", uri=document.uri, commit=committed.seq, reason=reason)
                else:
                    log.info("document_skipped", uri=document.uri, commit=committed.seq, reason=reason)
            self._publish(document.state.value, document.uri, commit=committed.seq, error=document.error)
        for uri in batch.removed:
            self.documents_by_file.discard(uri)
            DOCUMENTS.labels(State.REMOVED.value).inc()
            self._publish("removed", uri, commit=committed.seq)
        self._on_commit([ref.passage for each in batch.documents for ref in each.passages if ref.triples is None])
        # Not when the batch was made: it may be made several times before it is committed.
        for uri, position in batch.positions.items():
            # One that came since stays; one of a file that was read or removed has been overtaken.
            if self._taken.get(uri) is not position or self._touched.get(uri) is position:
                self._touched.pop(uri, None)
        for acknowledgement in _acknowledgements(changes):
            acknowledgement.done()
        for change in changes:
            if isinstance(change, ExtractionsFound):
                continue  # it is no document's, and the committer tells who waits for it
            if change.final:
                self._finish(change.work)
            told = self._positions.get(change.work.source)
            for uri, position in change.positions.items():
                if told is not None:
                    told(uri, Fingerprint.from_json(position) if position else None)
        self._publish("commit", None, commit=committed.seq, documents=len(batch.documents), removed=len(batch.removed))
        log.info(
            "committed",
            commit=committed.seq,
            documents=len(batch.documents),
            removed=len(batch.removed),
            passages=committed.born,
            forgotten=committed.died,
            took_ms=round(took_ms, 1),
        )

    def _finish(self, work: Work) -> None:
        self.intake.done(work)
        for ticket in work.tickets:
            if self._inbox.done(ticket):
                self.inbox_capacity.give(*self._tickets.pop(ticket))
        for waiter in work.waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def drained(self) -> None:
        """Returns once all that is here now is committed or failed."""
        await self.intake.drained()
