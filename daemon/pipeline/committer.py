"""Gathers what is ready into batches, completes them, and commits: one step of the store after the other."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import structlog

from daemon.metrics import COMMITS, PASSAGES, timed
from daemon.pipeline.extraction import Extraction as Extracting
from daemon.pipeline.room import UNTOLD, QueueLimits, Room
from daemon.pipeline.work import Outcome, Work
from daemon.workers import WorkerFailed
from memory.indexing import with_vectors
from memory.types import Encoder
from store.errors import Incomplete
from store.store import Committed, Store
from store.types import Batch, PassageText
from store.types import Extraction as Extracted

MOST_PASSAGES = 96
MOST_OUTCOMES = 512
"""A batch's limits: large enough to share the cost of a commit, small enough to be visible within seconds."""

QUICK_PASSAGES = 384
QUICK_S = 0.5
"""Where full batches take less time than this (vectors that cost little), they may grow to that many passages: a commit's
own cost, mostly of syncing files, is then shared by more."""

PAUSE_S = 2.0
"""How long to rest after a commit that the store refused (a full disk, say) before it is tried again."""

COMPLETIONS = 5
"""How often a batch is completed before its documents are thought to be at fault: each purge can undo one completion."""

log = structlog.get_logger()

Applied = Callable[[Sequence[Outcome], Batch, Committed, float], None]
"""Is told of a commit, and how long encoding and committing took, in milliseconds."""
Assemble = Callable[[Sequence[Outcome]], Batch]


class Committer:
    """One coroutine (`run`) that commits; `put` waits while too much is ready."""

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        extractor: Extracting,
        assemble: Assemble,
        applied: Applied,
        spoiled: Callable[[Work, str], Outcome],
        limits: QueueLimits = UNTOLD,
    ) -> None:
        """`spoiled` makes the outcome of work whose own cannot be committed, whatever the disk does."""
        self._store = store
        self._encoder = encoder
        self._extractor = extractor
        self._assemble = assemble
        self._applied = applied
        self._spoiled = spoiled
        self._ready: deque[Outcome] = deque()
        self.ready = Room(limits.queue_passages, limits.queue_bytes)
        """What is read and not committed: passages, and bytes of their text. Beyond it, reading waits."""
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._most = MOST_PASSAGES
        self.busy_since: float | None = None
        """When the batch under way began (monotonic), None between batches."""
        self.step: tuple[str, int] | None = None
        """What the writer thread is at ("encode" or "commit") and which step of its life that is; None while it rests."""
        self._steps = 0
        self._hopeless: Work | None = None
        self.trouble: str | None = None
        """Why the last commit was refused, until one succeeds."""

    async def put(self, outcome: Outcome) -> None:
        while not self.ready.free:
            self._room.clear()
            await self._room.wait()
        self.put_now(outcome)

    def put_now(self, outcome: Outcome) -> None:
        """Without waiting for room: for what must keep its place before anything that comes later."""
        self._ready.append(outcome)
        self.ready.take(outcome.size, outcome.bytes)
        self._wake.set()

    async def run(self) -> None:
        """Commits until cancelled; what is being written then is finished first (`writer` is a thread)."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._ready:
                outcomes = self._next()
                self.busy_since = time.monotonic()
                began = self.busy_since
                try:
                    await self._commit(outcomes)
                finally:
                    self.busy_since = None
                quick = time.monotonic() - began < QUICK_S
                self._most = min(self._most * 2, QUICK_PASSAGES) if quick else MOST_PASSAGES

    def _next(self) -> list[Outcome]:
        """The longest run of outcomes that fits a batch and in which no key comes twice: steps of one key stay apart."""
        taken: list[Outcome] = []
        keys: set[str] = set()
        size = 0
        while self._ready and len(taken) < MOST_OUTCOMES:
            outcome = self._ready[0]
            touched = _keys(outcome)
            if taken and (size + outcome.size > self._most or touched & keys):
                break
            keys |= touched
            size += outcome.size
            self._ready.popleft()
            self.ready.give(outcome.size, outcome.bytes)
            taken.append(outcome)
        self._room.set()
        return taken

    async def _commit(self, outcomes: list[Outcome]) -> None:
        loop = asyncio.get_running_loop()
        completions = 0
        began = time.monotonic()
        while True:
            try:
                batch = self._assemble(outcomes)
                # Removing or replacing a document can leave a passage to another one that never had it extracted.
                if unread := self._store.unextracted(batch):
                    batch = replace(batch, extractions=(*batch.extractions, *await self._extract(unread)))
                with timed("encode"), self._at("encode"):
                    batch = await loop.run_in_executor(self.writer, with_vectors, self._store, self._encoder, batch)
                with timed("commit"), self._at("commit"):
                    committed = await _unhurried(loop.run_in_executor(self.writer, self._store.commit, batch))
                break
            except Incomplete as error:
                # A purge took what the store had said it holds: the batch is completed again, as if it came only now.
                completions += 1
                if completions == COMPLETIONS:
                    await self._isolate(outcomes, error)
                    return
            except (OSError, RuntimeError) as error:
                # LanceDB raises RuntimeError or OSError for what the disk refuses. Nothing is lost: the batch is kept
                # and tried again; the tables are back at the last commit.
                self.trouble = f"{type(error).__name__}: {error}"
                log.error("commit_failed", error=self.trouble, documents=len(outcomes), retry_s=PAUSE_S)
                await asyncio.sleep(PAUSE_S)
            except Exception as error:  # noqa: BLE001 - a fault of ours that one document sets off must not stop the rest
                await self._isolate(outcomes, error)
                return
        self.trouble = None
        COMMITS.inc()
        PASSAGES.inc(len(batch.passage_vectors))
        self._applied(outcomes, batch, committed, (time.monotonic() - began) * 1000)

    @contextmanager
    def _at(self, step: str) -> Iterator[None]:
        self._steps += 1
        self.step = (step, self._steps)
        try:
            yield
        finally:
            self.step = None

    async def _isolate(self, outcomes: list[Outcome], error: Exception) -> None:
        """Commits the outcomes of a batch that cannot be committed one by one; the one at fault as failed."""
        if len(outcomes) > 1:
            log.error("batch_split", documents=len(outcomes), error=error, exc_info=error)
            for outcome in outcomes:
                await self._commit([outcome])
            return
        work = outcomes[0].work
        if self._hopeless is work:
            raise error  # not even its failure can be written: this is no document's fault
        log.error("document_spoils_commit", uri=work.key, error=error, exc_info=error)
        self._hopeless = work
        await self._commit([self._spoiled(work, f"internal error: {error!r}; see the log")])
        self._hopeless = None

    async def _extract(self, passages: list[PassageText]) -> list[Extracted]:
        try:
            with timed("extract"):
                return await self._extractor.extract(passages)
        except WorkerFailed as error:
            log.error("extraction_failed", passages=len(passages), error=error)
            return []


def _keys(outcome: Outcome) -> set[str]:
    old = getattr(outcome.work.task, "old_uri", None)
    return {outcome.work.key} | ({old} if old else set())


async def _unhurried(writing: Awaitable[Committed]) -> Committed:
    """Waits for a commit even when cancelled: half-finished work must not be left to a thread nobody waits for."""
    task = asyncio.ensure_future(writing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
