"""Gathers what is ready into batches, completes them, and commits: one step of the store after the other."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import structlog

from daemon.faults import place, system_said
from daemon.logs import told
from daemon.metrics import COMMITS, PASSAGES, timed
from daemon.pipeline.extraction import Extraction as Extracting
from daemon.pipeline.marks import Failure, failure_mark, failure_of, is_unread
from daemon.pipeline.room import UNTOLD, QueueLimits, Room
from daemon.pipeline.work import Learned, Outcome, Work
from daemon.workers import WorkerFailed
from memory.encoder.errors import EncoderRefused, EncoderServerDown
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

SAME_ERRORS = 5
"""How often in a row a batch meets the same error before its documents are thought to be at fault, unless the error is one
that passes: of the disk, the system or a server."""

REPEAT_S = 60.0
"""An error that goes on is logged this often."""

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
        self._logged: dict[tuple[object, ...], float] = {}
        """When which kind of error was logged last (monotonic)."""
        self.trouble: str | None = None
        """Why the last commit was refused, until one succeeds: for clients."""
        self.trouble_logged: str | None = None
        """The same as it may stand in the log."""
        self.encoder_away = False
        """Whether it is the embeddings' server that is waited for, and not the store."""

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
        met: list[tuple[object, ...]] = []
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
                # and tried again; the tables are back at the last commit. Others raise them for a fault that a document
                # sets off again and again; but where not even a failure can be written, it is no document's.
                met = [*met[-SAME_ERRORS:], _kind(error)]
                same = len(met) >= SAME_ERRORS and len(set(met[-SAME_ERRORS:])) == 1
                if same and not _passes(error) and self._hopeless is not outcomes[0].work:
                    await self._isolate(outcomes, error)
                    return
                self._refused(outcomes, error)
                await asyncio.sleep(PAUSE_S)
            except Exception as error:  # noqa: BLE001 - a fault of ours that one document sets off must not stop the rest
                await self._isolate(outcomes, error)
                return
        self.trouble = self.trouble_logged = None
        self.encoder_away = False
        COMMITS.inc()
        PASSAGES.inc(len(batch.passage_vectors))
        self._applied(outcomes, batch, committed, (time.monotonic() - began) * 1000)

    def _refused(self, outcomes: list[Outcome], error: Exception) -> None:
        """A batch could not be committed, and will be tried again."""
        self.trouble = f"{type(error).__name__}: {error}"
        self.trouble_logged = told(error)
        self.encoder_away = isinstance(error, EncoderServerDown) and not isinstance(error, EncoderRefused)
        now, kind = time.monotonic(), _kind(error)
        if now - self._logged.get(kind, -REPEAT_S) < REPEAT_S:
            return
        self._logged[kind] = now
        if self.encoder_away:
            encoder = self._encoder.identity
            log.warning("encoder_away", encoder=encoder.name, dim=encoder.dim, error=error)
        else:
            log.error("commit_failed", error=error, documents=len(outcomes), retry_s=PAUSE_S)

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
        work, found = outcomes[0].work, outcomes[0].extractions
        if isinstance(work.task, Learned) and len(found) > 1:
            for number, (id, extraction) in enumerate(found.items(), 1):
                final = outcomes[0].final and number == len(found)
                await self._commit([replace(outcomes[0], extractions={id: extraction}, final=final)])
            return
        if self._hopeless is work:
            raise error  # not even its failure can be written: this is no document's fault
        reason = f"internal error: {error!r}; see the log"
        if isinstance(work.task, Learned):
            log.error("passage_spoils_commit", passage=next(iter(found), None), error=error, exc_info=error)
            instead = self._unlearned(outcomes[0], reason)
        else:
            log.error("document_spoils_commit", uri=work.key, error=error, exc_info=error)
            instead = self._spoiled(work, reason)
        self._hopeless = work
        await self._commit([instead])
        self._hopeless = None

    def _unlearned(self, outcome: Outcome, reason: str) -> Outcome:
        """The outcome of an extraction that cannot be committed: its passage is marked as one that could not be read."""
        marked = {}
        for id in outcome.extractions:
            present = self._store.extractor_of(id)
            before = failure_of(present)
            if is_unread(present) or before is not None:  # an older extraction is better than none and stays
                failure = Failure(before.attempts + 1 if before is not None else 1, reason)
                marked[id] = Extracted(id, failure_mark(failure), triples=self._store.extracted(id))
        return replace(outcome, extractions=marked)

    async def _extract(self, passages: list[PassageText]) -> list[Extracted]:
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
