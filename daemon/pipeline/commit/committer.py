"""Completes batches and commits them, one after the other.

Encoding takes most of the time. A batch that is not fresh is encoded in slices, and fresh changes are committed between slices.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import structlog

from consumers.failure_codes import FailureCode
from daemon.observe.metrics import COMMITS, PASSAGES, timed
from daemon.observe.redaction import raised_at, system_error
from daemon.parser_pool.pool import ParserFailed
from daemon.pipeline.commit.commit_queue import CommitQueue
from daemon.pipeline.document_changes import failed_change, internal_reason
from daemon.pipeline.extraction.extractors import PassageExtractor
from daemon.pipeline.extraction.failed_passages import failed_extraction
from daemon.pipeline.outage import Dependency, Outage, encoder_is_unavailable
from daemon.pipeline.records import encoded_by_record
from daemon.pipeline.uninterrupted import finish_even_if_cancelled
from daemon.pipeline.work_items import Change, DocumentChange, ExtractionsFound
from memory.batch_encoding import EncodedAhead, SliceSize, missing_texts, slices, with_vectors
from memory.encoder.errors import EncoderRefused
from memory.types import Encoder
from store.errors import IncompleteBatch
from store.store import CommitResult, Store
from store.types import Batch, Extraction, PassageText

MAX_SAME_ERRORS = 5
"""Number of consecutive identical errors after which the batch's documents are considered the cause. Transient errors (of the
disk, the system or a server) never count against the documents."""

ErrorKind = tuple[object, ...]
BATCH_MAX_PASSAGES = 96
"""Maximum passages of a batch: enough to share the cost of a commit, few enough to be committed within seconds."""
QUICK_BATCH_MAX_PASSAGES = 384
QUICK_BATCH_S = 0.5
"""A batch that takes less than `QUICK_BATCH_S` (fast encoder) doubles the size of the next, up to `QUICK_BATCH_MAX_PASSAGES`:
more passages then share the fixed cost of a commit, mostly syncing files."""
COMMIT_PAUSE_S = 0.1
"""Pause between two batches while queries are running. A commit of one passage costs about as much as a commit of four, and
slows queries, which share the processors and the interpreter lock. Changes arriving meanwhile share the next commit."""
UNSLICED_PASSAGES = 8
"""A batch with at most this many passages is encoded in one step."""
MAX_PAUSE_S = 2.0
"""Maximum pause before retrying a commit that failed, for example on a full disk."""
MAX_COMPLETIONS = 5
"""Number of times that a batch is completed before its documents are considered the cause. A purge can invalidate a completed
batch."""
AfterCommit = Callable[[Sequence[Change], Batch, CommitResult, float], None]
"""Called after each commit; the last argument is the duration of encoding and committing in milliseconds."""
MakeBatch = Callable[[Sequence[Change]], Batch]
WriteBatch = Callable[[Batch], CommitResult]

log = structlog.get_logger()


class Committer:
    """Commits the changes in `queue`, in one coroutine (`run`)."""

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        extractor: PassageExtractor,
        queue: CommitQueue,
        make_batch: MakeBatch,
        write_batch: WriteBatch,
        after_commit: AfterCommit,
        queries_run: Callable[[], bool] = lambda: False,
    ) -> None:
        """`write_batch` commits a completed batch to `store`. `queries_run` returns whether queries run or just ended."""
        self._store = store
        self._encoder = encoder
        self._extractor = extractor
        self._make_batch = make_batch
        self._write_batch = write_batch
        self._after_commit = after_commit
        self._queries_run = queries_run
        self.queue = queue
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._max_passages = BATCH_MAX_PASSAGES
        self._switching = asyncio.Lock()
        """Held while a batch is completed and committed, so that the encoder cannot change in between."""
        self._interrupted = False
        """Whether fresh changes were committed while the present batch was being encoded."""
        self.busy_since: float | None = None
        """Monotonic time at which the present batch began; None between batches."""
        self.step: tuple[str, int] | None = None
        """Present step of the writer thread ("encode" or "commit") and the step's number; None while the thread is idle."""
        self._steps = 0
        self._replacement: Change | None = None
        """The failure that is being committed in place of a change that could not be committed."""
        self._needed = Dependency(MAX_PAUSE_S)
        """The disk and the encoder's server, which commits need."""

    @property
    def encoder(self) -> Encoder:
        """The encoder of the next commit."""
        return self._encoder

    @property
    def trouble(self) -> Outage | None:
        """Why the last commit failed; None after a successful one. The outage's event is `encoder_unreachable` if only the
        embedding server is unavailable, not the store."""
        return self._needed.outage

    def use(self, encoder: Encoder) -> None:
        """Completes later batches with `encoder`. Call within `paused`."""
        self._encoder = encoder

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Prevents batches from being completed or committed inside the block."""
        async with self._switching:
            yield

    async def run(self) -> None:
        """Commits until cancelled. On cancellation, first finishes a write in progress in the thread `writer`."""
        ended = float("-inf")
        while True:
            await self.queue.wait_until_filled()
            while self.queue:
                await self._pause_since(ended)
                changes = self.queue.next_batch(self._max_passages)
                began = self.busy_since = time.monotonic()
                self._interrupted = False
                try:
                    await self._commit(changes)
                finally:
                    self.busy_since = None
                ended = time.monotonic()
                quick = not self._interrupted and ended - began < QUICK_BATCH_S
                self._max_passages = (
                    min(self._max_passages * 2, QUICK_BATCH_MAX_PASSAGES) if quick else BATCH_MAX_PASSAGES
                )

    async def _pause_since(self, ended: float) -> None:
        """Pauses while queries run. `ended` is the monotonic time at which the last batch ended."""
        pause_s = ended + COMMIT_PAUSE_S - time.monotonic()
        if pause_s > 0 and self._queries_run():
            await asyncio.sleep(pause_s)

    async def _commit(self, changes: list[Change], fresh: bool = False) -> None:
        """Commits one batch, with retries. If `fresh`, commits no other changes in between."""
        ahead = self._encoded_elsewhere(changes)
        completions = 0
        errors = RepeatedErrors()
        began = time.monotonic()
        while True:
            if ahead.made_by != self._encoder.identity:  # the encoder was switched since the last attempt
                ahead = self._encoded_elsewhere(changes)
            try:
                if not fresh and sum(change.size for change in changes) > UNSLICED_PASSAGES:
                    await self._encode_ahead(changes, ahead)
                batch, committed = await self._complete_and_commit(changes, ahead)
                break
            except IncompleteBatch as error:
                # A purge has removed passages since the batch was made, so complete the batch again.
                completions += 1
                if completions == MAX_COMPLETIONS:
                    await self._isolate(changes, error, fresh)
                    return
            except (OSError, RuntimeError) as error:
                # LanceDB raises RuntimeError or OSError for disk errors. The tables are still at the last commit, so keep the
                # batch and retry. A bug that is triggered by one document can also raise these exceptions. If the document's
                # failure cannot be committed either, the document is not the cause.
                if errors.is_documents_fault(error) and self._replacement is not changes[0]:
                    await self._isolate(changes, error, fresh)
                    return
                if encoder_is_unavailable(error):
                    made_by = self._encoder.identity
                    await self._needed.wait("encoder_unreachable", error, encoder=made_by.name, dim=made_by.dim)
                else:
                    await self._needed.wait("commit_failed", error, documents=len(changes))
            except Exception as error:  # noqa: BLE001 - a bug that one document triggers must not stop other documents
                await self._isolate(changes, error, fresh)
                return
        self._needed.restored()
        COMMITS.inc()
        PASSAGES.inc(len(batch.passage_vectors))
        self._after_commit(changes, batch, committed, (time.monotonic() - began) * 1000)
        for change in changes:
            if isinstance(change, ExtractionsFound):
                change.done()

    def _encoded_elsewhere(self, changes: Sequence[Change]) -> EncodedAhead:
        """Returns the vectors that records supply."""
        ahead = EncodedAhead(made_by=self._encoder.identity)
        for change in changes:
            if isinstance(change, DocumentChange) and change.record is not None:
                brought = encoded_by_record(change.record, self._encoder.identity)
                ahead.rough |= brought.rough
                ahead.exact |= brought.exact
        return ahead

    async def _encode_ahead(self, changes: list[Change], ahead: EncodedAhead) -> None:
        """Encodes the batch's texts in slices and commits fresh changes after each slice.

        These commits may change the batch's content, so the caller makes the batch again afterwards.
        """
        loop, encoder = asyncio.get_running_loop(), self._encoder
        rough, exact = await loop.run_in_executor(self.writer, missing_texts, self._store, self._make_batch(changes))
        # The processors' load may have changed since the last batch: with the old size, a slice could take a second now.
        size = SliceSize()
        left = [
            [text for text in rough if text not in ahead.rough],
            [text for text in exact if text not in ahead.exact],
        ]
        while left[0] or left[1]:
            kind = 0 if left[0] else 1
            part = next(slices(left[kind], size.chars))
            left[kind] = left[kind][len(part) :]
            if not left[0] and not left[1]:
                return  # the last slice is encoded with the batch
            began = time.monotonic()
            with timed("encode"), self._step("encode"):
                parts = (part, []) if kind == 0 else ([], part)
                await loop.run_in_executor(self.writer, ahead.encode_slice, encoder, *parts)
            size.adapt(time.monotonic() - began, full=bool(left[kind]))
            if interrupting := self.queue.next_fresh_batch(BATCH_MAX_PASSAGES, changes):
                self._interrupted = True
                await self._commit(interrupting, fresh=True)

    async def _complete_and_commit(self, changes: list[Change], ahead: EncodedAhead) -> tuple[Batch, CommitResult]:
        async with self._switching:
            if ahead.made_by != self._encoder.identity:
                ahead = self._encoded_elsewhere(changes)
            return await self._commit_with(changes, ahead)

    async def _commit_with(self, changes: list[Change], ahead: EncodedAhead) -> tuple[Batch, CommitResult]:
        loop = asyncio.get_running_loop()
        batch = self._make_batch(changes)
        # Passages may lack an extraction because the extractor failed, or because their extraction was purged.
        if unread := self._store.unextracted(batch):
            batch = replace(batch, extractions=(*batch.extractions, *await self._extract(unread)))
        with timed("encode"), self._step("encode"):
            batch = await loop.run_in_executor(self.writer, with_vectors, self._store, self._encoder, batch, ahead)
        with timed("commit"), self._step("commit"):
            committed = await finish_even_if_cancelled(loop.run_in_executor(self.writer, self._write_batch, batch))
        return batch, committed

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        self._steps += 1
        self.step = (name, self._steps)
        try:
            yield
        finally:
            self.step = None

    async def _extract(self, passages: list[PassageText]) -> list[Extraction]:
        try:
            with timed("extract"):
                return await self._extractor.extract(passages)
        except ParserFailed as error:
            log.error("extraction_failed", passages=len(passages), error=error)
            return []

    # Batches that cannot be committed.

    async def _isolate(self, changes: list[Change], error: Exception, fresh: bool) -> None:
        """Commits a batch's changes one by one, and the change that causes the error as failed. `fresh`: see `_commit`."""
        if len(changes) > 1:
            log.error("batch_split", documents=len(changes), error=error, exc_info=error)
            for change in changes:
                await self._commit([change], fresh)
            return
        [change] = changes
        if self._replacement is change:
            raise error  # not even the failure can be committed, so no document is the cause
        if isinstance(change, ExtractionsFound):
            await self._isolate_extraction(change, error, fresh)
            return
        log.error("commit_failed_for_document", uri=change.work.key, error=error, exc_info=error)
        await self._commit_instead(failed_change(change.work, internal_reason(error), FailureCode.INTERNAL), fresh)
        change.work.failed = True

    async def _isolate_extraction(self, found: ExtractionsFound, error: Exception, fresh: bool) -> None:
        """Commits the extractions one by one; commits the extraction that causes the error as a failure."""
        if len(found.extractions) > 1:
            for id, extraction in found.extractions.items():
                await self._commit([ExtractionsFound({id: extraction})], fresh)
            found.done()
            return
        log.error("commit_failed_for_passage", passage=next(iter(found.extractions), None), error=error, exc_info=error)
        failures = {}
        for id, extraction in found.extractions.items():
            state = self._store.extraction_state(id)
            attempts = 1 + (state.attempts if state is not None else 0)
            failure = failed_extraction(self._store, id, extraction.extractor, attempts, internal_reason(error))
            if failure is not None:
                failures[id] = failure
        await self._commit_instead(ExtractionsFound(failures, found.committed), fresh)

    async def _commit_instead(self, replacement: Change, fresh: bool) -> None:
        self._replacement = replacement
        await self._commit([replacement], fresh)
        self._replacement = None


class RepeatedErrors:
    """Counts consecutive errors of the same kind in one batch."""

    def __init__(self) -> None:
        self._kind: ErrorKind | None = None
        self._count = 0

    def is_documents_fault(self, error: Exception) -> bool:
        """Counts the error. Returns whether a document must be the cause: the error is not transient and has recurred too
        often."""
        kind = _error_kind(error)
        self._count = self._count + 1 if kind == self._kind else 1
        self._kind = kind
        return self._count >= MAX_SAME_ERRORS and not _is_transient(error)


def _is_transient(error: Exception) -> bool:
    """Whether the disk, the system or a server caused the error, not the batch's content."""
    if isinstance(error, EncoderRefused):
        return False
    return isinstance(error, ConnectionError | TimeoutError) or system_error(error) is not None


def _error_kind(error: Exception) -> ErrorKind:
    """Returns a key for the kind of error. The key omits the message, which may contain a varying name or amount."""
    return type(error), raised_at(error), system_error(error)
