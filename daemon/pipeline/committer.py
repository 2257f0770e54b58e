"""Gathers what is ready into batches, completes them, and commits: one step of the store after the other."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import structlog

from consumers.failures import FailureCode
from daemon.observe.logs import told
from daemon.observe.metrics import COMMITS, PASSAGES, timed
from daemon.observe.redaction import place, system_said
from daemon.pipeline.backpressure import DEFAULT_QUEUE_LIMITS, Capacity, QueueLimits
from daemon.pipeline.extraction_failures import awaits_extractor, is_failed
from daemon.pipeline.extractors import PassageExtractor
from daemon.pipeline.work import Change, DocumentChange, ExtractionsFound, Work
from daemon.workers.pool import WorkerFailed
from memory.batch_encoding import with_vectors
from memory.encoder.errors import EncoderRefused, EncoderServerDown
from memory.types import Encoder
from store.errors import IncompleteBatch
from store.store import CommitResult, Store
from store.types import Batch, Extraction, ExtractionStatus, PassageText

BATCH_MAX_PASSAGES = 96
BATCH_MAX_CHANGES = 512
"""A batch's limits: large enough to share the cost of a commit, small enough to be visible within seconds."""

QUICK_BATCH_MAX_PASSAGES = 384
QUICK_BATCH_S = 0.5
"""Where full batches take less time than this (vectors that cost little), they may grow to that many passages: a commit's
own cost, mostly of syncing files, is then shared by more."""

RETRY_PAUSE_S = 2.0
"""How long to rest after a commit that the store refused (a full disk, say) before it is tried again."""

MAX_SAME_ERRORS = 5
"""How often in a row a batch meets the same error before its documents are thought to be at fault, unless the error is one
that passes: of the disk, the system or a server."""

SAME_ERROR_LOG_PAUSE_S = 60.0
"""An error that goes on is logged this often."""

MAX_COMPLETIONS = 5
"""How often a batch is completed before its documents are thought to be at fault: each purge can undo one completion."""

log = structlog.get_logger()

Applied = Callable[[Sequence[Change], Batch, CommitResult, float], None]
"""Is told of a commit, and how long encoding and committing took, in milliseconds."""
Assemble = Callable[[Sequence[Change]], Batch]


class Committer:
    """One coroutine (`run`) that commits; `put` waits while too much is ready."""

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        extractor: PassageExtractor,
        assemble: Assemble,
        applied: Applied,
        failed_change: Callable[[Work, str, FailureCode], DocumentChange],
        limits: QueueLimits = DEFAULT_QUEUE_LIMITS,
    ) -> None:
        """`failed_change` makes the change of work whose own cannot be committed, whatever the disk does."""
        self._store = store
        self._encoder = encoder
        self._extractor = extractor
        self._assemble = assemble
        self._applied = applied
        self._failed_change = failed_change
        self._ready: deque[Change] = deque()
        self.ready = Capacity(limits.queue_passages, limits.queue_bytes)
        """What is read and not committed: passages, and bytes of their text. Beyond it, reading waits."""
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._most = BATCH_MAX_PASSAGES
        self.busy_since: float | None = None
        """When the batch under way began (monotonic), None between batches."""
        self.step: tuple[str, int] | None = None
        """What the writer thread is at ("encode" or "commit") and which step of its life that is; None while it rests."""
        self._steps = 0
        self._replacement: DocumentChange | ExtractionsFound | None = None
        """The failure that is being committed in place of a change that cannot be."""
        self._logged: dict[tuple[object, ...], float] = {}
        """When which kind of error was logged last (monotonic)."""
        self.trouble: str | None = None
        """Why the last commit was refused, until one succeeds: for clients."""
        self.trouble_logged: str | None = None
        """The same as it may stand in the log."""
        self.encoder_away = False
        """Whether it is the embeddings' server that is waited for, and not the store."""

    async def put(self, change: Change) -> None:
        while not self.ready.free:
            self._room.clear()
            await self._room.wait()
        self.put_now(change)

    def put_now(self, change: Change) -> None:
        """Without waiting for room: for what must keep its place before anything that comes later."""
        self._ready.append(change)
        self.ready.take(change.size, change.bytes)
        self._wake.set()

    async def run(self) -> None:
        """Commits until cancelled; what is being written then is finished first (`writer` is a thread)."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._ready:
                changes = self._next()
                self.busy_since = time.monotonic()
                began = self.busy_since
                try:
                    await self._commit(changes)
                finally:
                    self.busy_since = None
                quick = time.monotonic() - began < QUICK_BATCH_S
                self._most = min(self._most * 2, QUICK_BATCH_MAX_PASSAGES) if quick else BATCH_MAX_PASSAGES

    def _next(self) -> list[Change]:
        """The longest run of changes that fits a batch and in which no key comes twice: steps of one key stay apart."""
        taken: list[Change] = []
        keys: set[str] = set()
        size = 0
        while self._ready and len(taken) < BATCH_MAX_CHANGES:
            change = self._ready[0]
            touched = _keys(change)
            if taken and (size + change.size > self._most or touched & keys):
                break
            keys |= touched
            size += change.size
            self._ready.popleft()
            self.ready.give(change.size, change.bytes)
            taken.append(change)
        self._room.set()
        return taken

    async def _commit(self, changes: list[Change]) -> None:
        loop = asyncio.get_running_loop()
        completions = 0
        met: list[tuple[object, ...]] = []
        began = time.monotonic()
        while True:
            try:
                batch = self._assemble(changes)
                # Removing or replacing a document can leave a passage to another one that never had it extracted.
                if unread := self._store.unextracted(batch):
                    batch = replace(batch, extractions=(*batch.extractions, *await self._extract(unread)))
                with timed("encode"), self._at("encode"):
                    batch = await loop.run_in_executor(self.writer, with_vectors, self._store, self._encoder, batch)
                with timed("commit"), self._at("commit"):
                    committed = await _unhurried(loop.run_in_executor(self.writer, self._store.commit, batch))
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
                met = [*met[-MAX_SAME_ERRORS:], _kind(error)]
                same = len(met) >= MAX_SAME_ERRORS and len(set(met[-MAX_SAME_ERRORS:])) == 1
                if same and not _passes(error) and self._replacement is not changes[0]:
                    await self._isolate(changes, error)
                    return
                self._refused(changes, error)
                await asyncio.sleep(RETRY_PAUSE_S)
            except Exception as error:  # noqa: BLE001 - a fault of ours that one document sets off must not stop the rest
                await self._isolate(changes, error)
                return
        self.trouble = self.trouble_logged = None
        self.encoder_away = False
        COMMITS.inc()
        PASSAGES.inc(len(batch.passage_vectors))
        self._applied(changes, batch, committed, (time.monotonic() - began) * 1000)
        for change in changes:
            if isinstance(change, ExtractionsFound):
                change.done()

    def _refused(self, changes: list[Change], error: Exception) -> None:
        """A batch could not be committed, and will be tried again."""
        self.trouble = f"{type(error).__name__}: {error}"
        self.trouble_logged = told(error)
        self.encoder_away = isinstance(error, EncoderServerDown) and not isinstance(error, EncoderRefused)
        now, kind = time.monotonic(), _kind(error)
        if now - self._logged.get(kind, -SAME_ERROR_LOG_PAUSE_S) < SAME_ERROR_LOG_PAUSE_S:
            return
        self._logged[kind] = now
        if self.encoder_away:
            encoder = self._encoder.identity
            log.warning("encoder_away", encoder=encoder.name, dim=encoder.dim, error=error)
        else:
            log.error("commit_failed", error=error, documents=len(changes), retry_s=RETRY_PAUSE_S)

    @contextmanager
    def _at(self, step: str) -> Iterator[None]:
        self._steps += 1
        self.step = (step, self._steps)
        try:
            yield
        finally:
            self.step = None

    async def _isolate(self, changes: list[Change], error: Exception) -> None:
        """Commits the changes of a batch that cannot be committed one by one; the one at fault as failed."""
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
        await self._commit_instead(self._failed_change(change.work, _reason(error), FailureCode.INTERNAL))

    async def _isolate_extraction(self, found: ExtractionsFound, error: Exception) -> None:
        """Commits the passages' extractions one by one; the one at fault as a failure."""
        if len(found.extractions) > 1:
            for id, extraction in found.extractions.items():
                await self._commit([ExtractionsFound({id: extraction})])
            found.done()
            return
        log.error("passage_spoils_commit", passage=next(iter(found.extractions), None), error=error, exc_info=error)
        await self._commit_instead(self._failed_extractions(found, _reason(error)))

    async def _commit_instead(self, replacement: Change) -> None:
        self._replacement = replacement
        await self._commit([replacement])
        self._replacement = None

    def _failed_extractions(self, found: ExtractionsFound, reason: str) -> ExtractionsFound:
        """In place of extractions that cannot be committed: the failures of their passages."""
        failures = {}
        for id, extraction in found.extractions.items():
            present = self._store.extraction_state(id)
            if awaits_extractor(present) or is_failed(present):  # an older extraction is better than none and stays
                failures[id] = Extraction(
                    id,
                    extraction.extractor,
                    triples=self._store.extracted_triples(id),
                    status=ExtractionStatus.FAILED,
                    attempts=1 + (present.attempts if present is not None else 0),
                    error=reason,
                )
        return ExtractionsFound(failures, found.committed)

    async def _extract(self, passages: list[PassageText]) -> list[Extraction]:
        try:
            with timed("extract"):
                return await self._extractor.extract(passages)
        except WorkerFailed as error:
            log.error("extraction_failed", passages=len(passages), error=error)
            return []


def _passes(error: Exception) -> bool:
    """Whether it is the disk, the system or a server that refuses, whatever stands in the batch."""
    if isinstance(error, EncoderRefused):
        return False
    return isinstance(error, ConnectionError | TimeoutError) or system_said(error) is not None


def _kind(error: Exception) -> tuple[object, ...]:
    """What makes two errors the same. Not the message: it may name a file or an amount that is another each time."""
    return type(error), place(error), system_said(error)


def _reason(error: Exception) -> str:
    return f"internal error: {error!r}; see the log"


def _keys(change: Change) -> set[str]:
    """The documents and files of which a batch may hold no other change."""
    if isinstance(change, ExtractionsFound):
        return set()
    old = getattr(change.work.task, "old_uri", None)
    return {change.work.key} | ({old} if old else set())


async def _unhurried(writing: Awaitable[CommitResult]) -> CommitResult:
    """Waits for a commit even when cancelled: half-finished work must not be left to a thread nobody waits for."""
    task = asyncio.ensure_future(writing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
