"""The passages that are committed and wait for the extractor: read many at once, committed as they come, tried again.

An outage of the model is normal. It stops the reading, not the daemon: passages go on waiting, and `status` says for what and
since when (`model_outage`). A passage that the model cannot handle is marked as failed, alone (`failures`).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import structlog

from daemon.observe.metrics import WAITING, timed
from daemon.pipeline.extraction.failed_passages import (
    FailedPassages,
    PassageFailure,
    awaits_extractor,
    failed_extraction,
    failed_now,
    is_failed,
)
from daemon.pipeline.extraction.journal import ExtractionJournal
from daemon.pipeline.extraction.model_outage import ModelOutage, Outage
from daemon.pipeline.incoming.burst import Burst
from daemon.workers.pool import WorkerFailed
from memory.llm.errors import ModelDown, ModelError
from store.store import Store
from store.types import Extraction, ExtractionOutcome, ExtractionState, PassageText

COMMIT_BATCH_PASSAGES = 96
COMMIT_GATHER_S = 0.2
"""A commit takes what has come within this time."""
MAX_UNCOMMITTED_PASSAGES = 8 * COMMIT_BATCH_PASSAGES
"""Passages that may be read and not committed: beyond, reading waits."""

log = structlog.get_logger()

ReadPassage = Callable[[PassageText], Awaitable[Extraction]]
CommitExtractions = Callable[[Mapping[str, Extraction]], Awaitable[None]]


class ExtractionQueue:
    """On the event loop. `read` is the extractor, `probe` returns when its model answers.

    `bulk_only`: nothing is read here; `backfill` asks for the
    passages (`next_passages`) and hands in what it found (`add_found`, `add_failure`).
    """

    def __init__(
        self,
        store: Store,
        name: str,
        read: ReadPassage,
        journal: ExtractionJournal,
        at_once: int,
        probe: Callable[[], Awaitable[None]] | None = None,
        bulk_only: bool = False,
        free: bool = False,
    ) -> None:
        """`name`: the extractor's. `at_once`: how many passages are read at the same time. `free`: no model is called, so
        passages that another extractor has failed on are read at the start."""
        self.name = name
        self.bulk_only = bulk_only
        self._free = free
        self._store = store
        self._read = read
        self._journal = journal
        self._at_once = at_once
        self._model = ModelOutage(probe, self.__len__)
        self._announced: set[str] = set()
        self._waiting: OrderedDict[str, int] = OrderedDict()
        """Attempts that failed before, by passage, in the order of reading."""
        self._active: set[str] = set()
        self._read_again: set[str] = set()
        """Passages whose call was not taken, though the model answered right after."""
        self._found: dict[str, Extraction] = {}
        """What is read, or has failed, and is not committed."""
        self._failed = FailedPassages(store)
        self.burst = Burst()
        """What was read and committed, or failed, since nothing waited."""
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, commit_extractions: CommitExtractions) -> None:
        """Takes up what an earlier run left: unread passages, answers in the journal, failures.

        `commit_extractions` returns once what was found is committed.
        """
        for id in self._store.passages_by_extraction(awaits_extractor):
            self._waiting[id] = 0
        self._failed.load()
        if self._free:
            self.enqueue(self._store.passages_by_extraction(self._is_failure_of_another))
        self._journal.drop(lambda id: not self._is_needed(id))
        for id, extraction in self._journal.extractions.items():
            self._waiting.pop(id, None)
            self._failed.discard(id)
            self._found[id] = extraction
        if self._found:
            log.info("paid_extractions_recovered", passages=len(self._found))
        self._tasks = [asyncio.create_task(self._read_on(), name=f"extract {n}") for n in range(self._at_once)]
        self._tasks.append(asyncio.create_task(self._commit_on(commit_extractions), name="extractions"))
        self._tasks.append(asyncio.create_task(self._model.run(), name="model"))

    def ended_tasks(self) -> list[asyncio.Task[None]]:
        """The parts that run no more: nothing would be read, or committed, without one of them."""
        return [task for task in self._tasks if task.done()]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._journal.close()

    def _is_done(self, state: ExtractionState | None) -> bool:
        """Whether the present extractor has read the passage."""
        return state is not None and state.status is ExtractionOutcome.DONE and state.extractor == self.name

    def _is_failure_of_another(self, state: ExtractionState | None) -> bool:
        return state is not None and is_failed(state) and state.extractor != self.name

    def _is_needed(self, id: str) -> bool:
        return bool(self._store.documents_to_extract(id)) and not self._is_done(self._store.extraction_state(id))

    # What comes in.

    def announce(self, ids: Iterable[str]) -> None:
        """Passages that are about to be committed and are to be read then."""
        self._announced.update(ids)

    def committed(self, passages: Iterable[str]) -> None:
        """A commit has come: what it made known may be read.

        `passages` are those of the documents that it wrote, except those with triples from these documents. An announced
        passage that no document needs read is forgotten: it is announced again, or among `passages`, when a document does. So
        the cost follows the commit.
        """
        announced, self._announced = self._announced, set()
        ready = [id for id in announced if self._store.documents_to_extract(id)]
        ready += [id for id in passages if id not in announced and self._came_back(id)]
        self._journal.committed(self._failed.sweep())
        self.enqueue(id for id in ready if awaits_extractor(self._store.extraction_state(id)))

    def _came_back(self, id: str) -> bool:
        """Whether a passage that was not announced is to be read, as only a stand-in has read it.

        An earlier failure is listed again. A passage that no extractor has read is announced before it is committed.
        """
        state = self._store.extraction_state(id)
        if is_failed(state) and id not in self._failed and not self._is_queued(id):
            self._failed.take_from_store(id)
        return state is not None and awaits_extractor(state)

    def _is_queued(self, id: str) -> bool:
        return id in self._waiting or id in self._active or id in self._found

    def enqueue(self, ids: Iterable[str], attempts: int = 0) -> int:
        """Puts passages at the end of the queue; returns how many were not in it."""
        count = 0
        if not len(self):
            self.burst = Burst()
        for id in ids:
            if not self._is_queued(id):  # a failure that is not committed yet stays one
                self._failed.discard(id)
                self._waiting[id] = attempts
                count += 1
        self._notify()
        return count

    async def enqueue_all(self) -> int:
        """Every living passage that the present extractor has not read; returns how many."""
        ids = await asyncio.to_thread(self._store.passages_by_extraction, lambda state: not self._is_done(state))
        return self.enqueue(ids)

    def retry(self, wanted: Callable[[str, float | None], bool]) -> list[str]:
        """Tries failed passages again, those `wanted` by id and time of the next try; returns them."""
        failed = self._failed.matching(wanted)
        for id, attempts in failed:
            self.enqueue([id], attempts)
        return [id for id, _ in failed]

    # What it reports.

    @property
    def outage(self) -> Outage | None:
        """What reading waits for, if it does."""
        return self._model.current

    def note_call(self, outcome: str, good: bool) -> None:
        """A call to the model ended."""
        self._model.note_call(outcome, good)

    def unfinished(self) -> list[str]:
        """Passages that are not read, or read and not committed."""
        return [*self._active, *self._waiting, *self._found]

    def failures(self) -> dict[str, PassageFailure]:
        """Passages of documents that could not be read."""
        return self._failed.living()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._active) + len(self._found)

    async def drained(self) -> None:
        """Returns once all that is here now is read and committed, or has failed. At once where only `backfill` reads."""
        left = set(self.unfinished()) if not self.bulk_only else set()
        while left:
            await self._change()
            await asyncio.sleep(COMMIT_GATHER_S)  # many changes at once: comparing sets at each would be quadratic
            left &= set(self.unfinished())

    # What happens to it.

    async def _read_on(self) -> None:
        while True:
            await self._model.up.wait()
            if self.bulk_only or not self._waiting or len(self._found) >= MAX_UNCOMMITTED_PASSAGES:
                await self._change()
                continue
            id, attempts = self._waiting.popitem(last=False)
            passage = self._store.passage(id)
            if passage is None or not self._store.documents_to_extract(id):
                self._announced.add(id)  # no document needs it any more; it may come back
                self._notify()
                continue
            self._active.add(id)
            try:
                await self._read_one(passage, attempts)
            finally:
                self._active.discard(id)
                self._notify()

    async def _read_one(self, passage: PassageText, attempts: int) -> None:
        try:
            with timed("extract"):
                found = await self._read(passage)
            self.add_found(found)
            self._read_again.discard(passage.id)
            return
        except ModelDown as error:
            away = await self._model.confirm()
            # Where it took no call and answers now, it has come back meanwhile, and the passage is not at fault. Believed once
            # of a passage: a proxy may answer so to one alone.
            back = not away and error.unavailable and passage.id not in self._read_again
            if back:
                self._read_again.add(passage.id)
            if away or back:
                self._waiting[passage.id] = attempts
                self._waiting.move_to_end(passage.id, last=False)
                return
            reason = str(error)
        except (ModelError, WorkerFailed) as error:
            reason = str(error)
        except Exception as error:  # whatever one passage does to us, the others go on
            log.error("extraction_failed", passage=passage.id, exc_info=True)
            reason = f"internal error: {type(error).__name__}; see the log"
        self._fail(passage.id, attempts + 1, reason)

    def add_found(self, extraction: Extraction) -> None:
        """What was found in a passage, to be committed."""
        self._journal.found(extraction)
        self._found[extraction.passage] = extraction
        self._waiting.pop(extraction.passage, None)
        self._notify()

    def add_failure(self, id: str, reason: str) -> None:
        """A passage that `backfill` could not read."""
        self._fail(id, self._waiting.pop(id, 0) + 1, reason)
        self._notify()

    def _fail(self, id: str, attempts: int, reason: str) -> None:
        # Why is in `ls` alone: a server may quote the passage in its refusal.
        log.warning("passage_failed", passage=id, attempts=attempts)
        self._failed.add(id, failed_now(attempts, reason))
        failure = failed_extraction(self._store, id, self.name, attempts, reason)
        if failure is not None:
            self._found[id] = failure
        else:
            self.burst.done += 1

    async def _commit_on(self, commit_extractions: CommitExtractions) -> None:
        while True:
            WAITING.set(len(self))
            if not self._found:
                await self._change()
                continue
            if len(self._found) < COMMIT_BATCH_PASSAGES and (self._active or self._waiting):
                await asyncio.sleep(COMMIT_GATHER_S)
            batch = dict(list(self._found.items())[: 4 * COMMIT_BATCH_PASSAGES])
            await commit_extractions(batch)
            done = [id for id, found in batch.items() if found.status is ExtractionOutcome.DONE]
            for id in done:
                self._failed.take_from_store(id)  # where what was found in it could not be committed
            self._journal.committed(done)
            for id, extraction in batch.items():
                if self._found.get(id) is extraction:
                    del self._found[id]
                    self.burst.done += 1
            self._notify()

    async def _change(self) -> None:
        await self._changed.wait()

    def _notify(self) -> None:
        """Wakes those who wait for a change now, none who begin to wait later."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def all_committed(self) -> None:
        """Returns once all that was found is committed."""
        while self._found:
            await self._change()

    def next_passages(self, count: int) -> Sequence[PassageText]:
        """The next passages in the queue, which stay in it until `add_found` or `add_failure`."""
        texts = (self._store.passage(id) for id in list(self._waiting)[:count])
        return [text for text in texts if text is not None]
