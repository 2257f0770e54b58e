"""Completes batches and commits them: one step of the store after the other.

Encoding is the long part. A batch that is not fresh is encoded in slices, between which what is fresh is committed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import structlog

from consumers.failure_codes import FailureCode
from daemon.observe.metrics import COMMITS, PASSAGES, timed
from daemon.pipeline.backpressure import DEFAULT_QUEUE_LIMITS, QueueLimits
from daemon.pipeline.commit.commit_queue import CommitQueue
from daemon.pipeline.commit.commit_trouble import (
    RETRY_PAUSE_S,
    CommitTrouble,
    RepeatedErrors,
    TroubleLog,
    internal_reason,
)
from daemon.pipeline.extraction.extractors import PassageExtractor
from daemon.pipeline.extraction.failed_passages import failed_extraction
from daemon.pipeline.parse_task import failed_change
from daemon.pipeline.records import encoded_by_record
from daemon.pipeline.work_items import Change, DocumentChange, ExtractionsFound
from daemon.workers.pool import WorkerFailed
from memory.batch_encoding import EncodedAhead, missing_texts, slices, with_vectors
from memory.types import Encoder
from store.errors import IncompleteBatch
from store.store import CommitResult, Store
from store.types import Batch, Extraction, PassageText

BATCH_MAX_PASSAGES = 96
"""Large enough to share the cost of a commit, small enough to be visible within seconds."""

QUICK_BATCH_MAX_PASSAGES = 384
QUICK_BATCH_S = 0.5
"""Where full batches take less time than this (vectors that cost little), they may grow to that many passages: a commit's
own cost, mostly of syncing files, is then shared by more."""

REST_S = 0.1
"""From the end of a batch to the next, while queries are answered. A commit of one passage costs about as much as one of four,
and keeps a query from the processors and from the interpreter for as long as it lasts. What comes meanwhile shares the next."""

ENCODE_SLICE_S = 0.25
ENCODE_SLICE_CHARS = (4_096, 262_144)
"""A slice has so many characters at least and at most; in between as many as take about `ENCODE_SLICE_S`."""

UNSLICED_PASSAGES = 8
"""A batch of no more is encoded at once."""

MAX_COMPLETIONS = 5
"""How often a batch is completed before its documents are thought to be at fault: each purge can undo one completion."""

log = structlog.get_logger()

AfterCommit = Callable[[Sequence[Change], Batch, CommitResult, float], None]
"""Called after each commit with how long encoding and committing took, in milliseconds."""
MakeBatch = Callable[[Sequence[Change]], Batch]


class Committer:
    """One coroutine (`run`) that commits what is put into `queue`."""

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        extractor: PassageExtractor,
        make_batch: MakeBatch,
        after_commit: AfterCommit,
        limits: QueueLimits = DEFAULT_QUEUE_LIMITS,
        asked_recently: Callable[[], bool] = lambda: False,
    ) -> None:
        """`asked_recently`: whether queries are being answered."""
        self._store = store
        self._encoder = encoder
        self._extractor = extractor
        self._make_batch = make_batch
        self._after_commit = after_commit
        self._asked_recently = asked_recently
        self.queue = CommitQueue(limits)
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._max_passages = BATCH_MAX_PASSAGES
        self._slice_chars = ENCODE_SLICE_CHARS[0]
        self._interrupted = False
        """Whether something fresh was committed in the midst of the batch under way."""
        self.busy_since: float | None = None
        """When the batch under way began (monotonic), None between batches."""
        self.step: tuple[str, int] | None = None
        """What the writer thread is at ("encode" or "commit") and which step of its life that is; None while it rests."""
        self._steps = 0
        self._replacement: Change | None = None
        """The failure that is being committed in place of a change that cannot be."""
        self._trouble_log = TroubleLog(encoder.identity)
        self.trouble: CommitTrouble | None = None
        """Why the last commit was refused, until one succeeds."""

    async def run(self) -> None:
        """Commits until cancelled; what is being written then is finished first (`writer` is a thread)."""
        ended = float("-inf")
        while True:
            await self.queue.wait_until_filled()
            while self.queue:
                await self._rest_since(ended)
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

    async def _rest_since(self, ended: float) -> None:
        """Leaves queries room. `ended`: when the last batch was done with (monotonic)."""
        rest_s = ended + REST_S - time.monotonic()
        if rest_s > 0 and self._asked_recently():
            await asyncio.sleep(rest_s)

    async def _commit(self, changes: list[Change], fresh: bool = False) -> None:
        """`fresh`: nothing is committed in the midst of it."""
        ahead = self._encoded_elsewhere(changes)
        completions = 0
        errors = RepeatedErrors()
        began = time.monotonic()
        while True:
            try:
                if not fresh and sum(change.size for change in changes) > UNSLICED_PASSAGES:
                    await self._encode_ahead(changes, ahead)
                batch, committed = await self._complete_and_commit(changes, ahead)
                break
            except IncompleteBatch as error:
                # A purge took what the store had said it holds: the batch is completed again, as if it came only now.
                completions += 1
                if completions == MAX_COMPLETIONS:
                    await self._isolate(changes, error)
                    return
            except (OSError, RuntimeError) as error:
                # LanceDB raises RuntimeError or OSError for what the disk refuses. Nothing is lost: the batch is kept
                # and tried again; the tables are back at the last commit. Others raise them for a fault that a document
                # sets off again and again; but where not even a failure can be written, it is no document's.
                if errors.is_documents_fault(error) and self._replacement is not changes[0]:
                    await self._isolate(changes, error)
                    return
                self.trouble = self._trouble_log.refused(error, len(changes))
                await asyncio.sleep(RETRY_PAUSE_S)
            except Exception as error:  # noqa: BLE001 - a fault of ours that one document sets off must not stop the rest
                await self._isolate(changes, error)
                return
        self.trouble = None
        COMMITS.inc()
        PASSAGES.inc(len(batch.passage_vectors))
        self._after_commit(changes, batch, committed, (time.monotonic() - began) * 1000)
        for change in changes:
            if isinstance(change, ExtractionsFound):
                change.done()

    def _encoded_elsewhere(self, changes: Sequence[Change]) -> EncodedAhead:
        """The vectors that records brought along."""
        ahead = EncodedAhead()
        for change in changes:
            if isinstance(change, DocumentChange) and change.record is not None:
                brought = encoded_by_record(change.record, self._encoder.identity)
                ahead.rough |= brought.rough
                ahead.exact |= brought.exact
        return ahead

    async def _encode_ahead(self, changes: list[Change], ahead: EncodedAhead) -> None:
        """Encodes what the batch needs, and commits what is fresh after each slice.

        The batch is made again afterwards, as those commits may change what it has to hold.
        """
        loop = asyncio.get_running_loop()
        rough, exact = await loop.run_in_executor(self.writer, missing_texts, self._store, self._make_batch(changes))
        # What else the processors do has changed since: a slice that was right then may take a second now.
        self._slice_chars = ENCODE_SLICE_CHARS[0]
        left = [
            [text for text in rough if text not in ahead.rough],
            [text for text in exact if text not in ahead.exact],
        ]
        while left[0] or left[1]:
            kind = 0 if left[0] else 1
            part = next(slices(left[kind], self._slice_chars))
            left[kind] = left[kind][len(part) :]
            if not left[0] and not left[1]:
                return  # the last slice is encoded with the batch
            began = time.monotonic()
            with timed("encode"), self._step("encode"):
                parts = (part, []) if kind == 0 else ([], part)
                await loop.run_in_executor(self.writer, ahead.encode_slice, self._encoder, *parts)
            self._adapt_slice(time.monotonic() - began, full=bool(left[kind]))
            if interrupting := self.queue.next_fresh_batch(BATCH_MAX_PASSAGES, changes):
                self._interrupted = True
                await self._commit(interrupting, fresh=True)

    def _adapt_slice(self, took_s: float, full: bool) -> None:
        """`full`: there were more texts than went into the slice. What a short one took says nothing of a longer one's time."""
        factor = ENCODE_SLICE_S / max(took_s, 1e-3)
        least, most = ENCODE_SLICE_CHARS
        if factor < 1 or full:
            self._slice_chars = min(max(int(self._slice_chars * min(factor, 2.0)), least), most)

    async def _complete_and_commit(self, changes: list[Change], ahead: EncodedAhead) -> tuple[Batch, CommitResult]:
        loop = asyncio.get_running_loop()
        batch = self._make_batch(changes)
        # The extractor may have failed on a passage before, or another extraction may have been purged since.
        if unread := self._store.unextracted(batch):
            batch = replace(batch, extractions=(*batch.extractions, *await self._extract(unread)))
        with timed("encode"), self._step("encode"):
            batch = await loop.run_in_executor(self.writer, with_vectors, self._store, self._encoder, batch, ahead)
        with timed("commit"), self._step("commit"):
            committed = await _finish_even_if_cancelled(loop.run_in_executor(self.writer, self._store.commit, batch))
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
        except WorkerFailed as error:
            log.error("extraction_failed", passages=len(passages), error=error)
            return []

    # Batches that cannot be committed.

    async def _isolate(self, changes: list[Change], error: Exception) -> None:
        """Commits the changes of a batch one by one; the one at fault as failed."""
        if len(changes) > 1:
            log.error("batch_split", documents=len(changes), error=error, exc_info=error)
            for change in changes:
                await self._commit([change])
            return
        [change] = changes
        if self._replacement is change:
            raise error  # not even its failure can be written: this is no document's fault
        if isinstance(change, ExtractionsFound):
            await self._isolate_extraction(change, error)
            return
        log.error("document_spoils_commit", uri=change.work.key, error=error, exc_info=error)
        await self._commit_instead(failed_change(change.work, internal_reason(error), FailureCode.INTERNAL))

    async def _isolate_extraction(self, found: ExtractionsFound, error: Exception) -> None:
        """Commits the passages' extractions one by one; the one at fault as a failure."""
        if len(found.extractions) > 1:
            for id, extraction in found.extractions.items():
                await self._commit([ExtractionsFound({id: extraction})])
            found.done()
            return
        log.error("passage_spoils_commit", passage=next(iter(found.extractions), None), error=error, exc_info=error)
        failures = {}
        for id, extraction in found.extractions.items():
            state = self._store.extraction_state(id)
            attempts = 1 + (state.attempts if state is not None else 0)
            failure = failed_extraction(self._store, id, extraction.extractor, attempts, internal_reason(error))
            if failure is not None:
                failures[id] = failure
        await self._commit_instead(ExtractionsFound(failures, found.committed))

    async def _commit_instead(self, replacement: Change) -> None:
        self._replacement = replacement
        await self._commit([replacement])
        self._replacement = None


async def _finish_even_if_cancelled(writing: Awaitable[CommitResult]) -> CommitResult:
    """Waits for a commit even when cancelled: half-finished work must not be left to a thread nobody waits for."""
    task = asyncio.ensure_future(writing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
