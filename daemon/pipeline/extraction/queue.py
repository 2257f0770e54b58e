"""Queues committed passages for the extractor, runs extractions concurrently, commits the results, and retries failures.

An outage of the model is normal: it stops extraction, but not the daemon. Passages keep waiting, and `status` shows why and
since when (`daemon.pipeline.outage`). A passage that the model cannot handle is marked as failed (`failures`).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

import structlog

from daemon.contract.status import ExtractionEstimate
from daemon.costs.daily_budget import DailyBudget
from daemon.costs.estimate import SAMPLE_PASSAGES, ExtractedSample, log_estimate
from daemon.observe.metrics import WAITING, timed
from daemon.parser_pool.pool import ParserFailed
from daemon.pipeline.backpressure import Burst
from daemon.pipeline.extraction.failed_passages import (
    FailedPassages,
    PassageFailure,
    awaits_extractor,
    failed_extraction,
    failed_now,
    is_failed,
)
from daemon.pipeline.extraction.journal import ExtractionJournal
from daemon.pipeline.outage import ModelOutage, Outage
from memory.llm.errors import ModelDown, ModelError
from store.store import Store
from store.types import Extraction, ExtractionOutcome, ExtractionState, PassageText

COMMIT_BATCH_PASSAGES = 96
COMMIT_GATHER_S = 0.2
"""Time for which extractions are gathered for one commit."""
MAX_UNCOMMITTED_PASSAGES = 8 * COMMIT_BATCH_PASSAGES
"""Maximum passages that are extracted but not committed; at this number, extraction waits."""

ESTIMATES_AT = (SAMPLE_PASSAGES, 10 * SAMPLE_PASSAGES)
"""Sample sizes (passages extracted since the start) at which the cost of the waiting passages is logged."""

log = structlog.get_logger()

ReadPassage = Callable[[PassageText], Awaitable[Extraction]]
CommitExtractions = Callable[[Mapping[str, Extraction]], Awaitable[None]]
EstimateCost = Callable[[int, ExtractedSample], ExtractionEstimate | None]
"""Estimates the cost of a number of passages from a sample of extracted passages."""


class ExtractionQueue:
    """The passages to extract. Use on the event loop only. `read` extracts a passage. `probe` returns if the model answers.

    If `bulk_only`, the queue extracts nothing: `backfill` takes passages (`next_passages`) and returns the results
    (`add_found`, `add_failure`).
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
        budget: DailyBudget | None = None,
        estimate: EstimateCost = lambda _passages, _sample: None,
        present_names: Collection[str] = (),
    ) -> None:
        """`name` is the extractor's name. Extractions by an extractor in `present_names` are also up to date. `at_once` is the
        number of concurrent extractions. `free` means that extraction calls no model; `start` then also queues passages on
        which another extractor failed. While `budget` is used up, extraction waits."""
        self.name = name
        self._present_names = {name, *present_names}
        self.bulk_only = bulk_only
        self._free = free
        self._store = store
        self._read = read
        self._journal = journal
        self.at_once = at_once
        self._budget = budget
        self._estimate = estimate
        self._sample = ExtractedSample()
        """Passages extracted since the start."""
        self.model = ModelOutage(probe, self.__len__)
        self._waiting: OrderedDict[str, int] = OrderedDict()
        """Number of failed attempts per waiting passage, in the order of extraction."""
        self._active: set[str] = set()
        self._read_again: set[str] = set()
        """Passages to retry because the model refused a call but answered the probe that followed."""
        self._found: dict[str, Extraction] = {}
        """Extractions and failures that are not committed yet."""
        self._failed = FailedPassages(store)
        self.burst = Burst()
        """Counts the passages committed or failed since the queue was last empty."""
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, commit_extractions: CommitExtractions) -> None:
        """Resumes the work of an earlier run (waiting passages, journalled answers, failures), and starts the tasks.

        `commit_extractions` must return after the commit of the extractions.
        """
        for id in self._store.passages_by_extraction(awaits_extractor):
            self._waiting[id] = 0
        self._failed.load()
        if self._free:
            self.enqueue(self._store.passages_by_extraction(self._is_failure_of_another))
        # Journalled answers about passages that the store does not contain yet come from `hippod --estimate`.
        known = {id for id in self._journal.passages() if self._store.passage(id) is not None}
        self._journal.drop(lambda id: id in known and not self._is_needed(id))
        for id in known & self._journal.extractions.keys():
            extraction = self._journal.extractions[id]
            self._waiting.pop(id, None)
            self._failed.discard(id)
            self._found[id] = extraction
        if self._found:
            log.info("paid_extractions_recovered", passages=len(self._found))
        self._tasks = [asyncio.create_task(self._read_on(), name=f"extract {n}") for n in range(self.at_once)]
        self._tasks.append(asyncio.create_task(self._commit_on(commit_extractions), name="extractions"))
        self._tasks.append(asyncio.create_task(self.model.run(), name="model"))

    def ended_tasks(self) -> list[asyncio.Task[None]]:
        """Returns the tasks that have ended unexpectedly. Extraction or its commits have then stopped."""
        return [task for task in self._tasks if task.done()]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._journal.close()

    def _is_done(self, state: ExtractionState | None) -> bool:
        """Whether the present extractor has processed the passage."""
        return state is not None and state.status is ExtractionOutcome.DONE and state.extractor in self._present_names

    def _is_failure_of_another(self, state: ExtractionState | None) -> bool:
        return state is not None and is_failed(state) and state.extractor not in self._present_names

    def _is_needed(self, id: str) -> bool:
        return bool(self._store.documents_to_extract(id)) and not self._is_done(self._store.extraction_state(id))

    # Input.

    def committed(self, passages: Iterable[str]) -> None:
        """Queues a commit's passages that have no extraction or only one by a stand-in; restores earlier failures.

        `passages` are the passages of the written documents, except passages whose triples the documents supply. The cost
        depends only on the size of the commit: an unneeded passage is queued only when a document needs it again.
        """
        waiting = []
        for id in passages:
            state = self._store.extraction_state(id)
            if awaits_extractor(state) and self._store.documents_to_extract(id):
                waiting.append(id)
            elif is_failed(state) and id not in self._failed and not self._is_queued(id):
                self._failed.take_from_store(id)
        self._journal.committed(self._failed.sweep())
        self.enqueue(waiting)

    def _is_queued(self, id: str) -> bool:
        return id in self._waiting or id in self._active or id in self._found

    def enqueue(self, ids: Iterable[str], attempts: int = 0) -> int:
        """Appends passages to the queue; returns the number of passages that were not in it."""
        count = 0
        if not len(self):
            self.burst = Burst()
        for id in ids:
            if not self._is_queued(id):  # an uncommitted failure stays a failure
                self._failed.discard(id)
                self._waiting[id] = attempts
                count += 1
        self._notify()
        return count

    async def unread(self) -> list[str]:
        """Returns the needed passages that the present extractor has not processed and that are not in the queue."""
        ids = await asyncio.to_thread(self._store.passages_by_extraction, lambda state: not self._is_done(state))
        return [id for id in ids if not self._is_queued(id)]

    def retry(self, is_due: Callable[[str, float | None], bool]) -> list[str]:
        """Retries the failed passages for which `is_due(id, time of the next attempt)` is true; returns their ids."""
        failed = self._failed.matching(is_due)
        for id, attempts in failed:
            self.enqueue([id], attempts)
        return [id for id, _ in failed]

    # Reports.

    @property
    def waits_for(self) -> Outage | None:
        """The reason why extraction does not run: an outage, or the used-up daily budget. None if it runs."""
        outage = self.model.current
        if outage is not None or not len(self) or (reason := self.waits_for_budget()) is None:
            return outage
        since = self._budget.paused_since if self._budget is not None else None
        return Outage("budget", reason, since or 0.0, reason)

    def waits_for_budget(self) -> str | None:
        """Returns the reason to wait if the daily budget is used up, else None."""
        return None if self._budget is None else self._budget.exhausted()

    async def affordable(self) -> None:
        """Returns once the daily budget allows another extraction."""
        if self._budget is not None:
            await self._budget.available()

    def estimate(self) -> ExtractionEstimate | None:
        """Returns the estimated cost of the waiting passages; None if no passage waits, or if too few passages were extracted
        so far."""
        waiting = len(self._waiting) + len(self._active)
        if not waiting or self._sample.passages < SAMPLE_PASSAGES:
            return None
        return self._estimate(waiting, self._sample)

    def unfinished(self) -> list[str]:
        """Returns the passages that are not extracted, and those whose extraction is not committed."""
        return [*self._active, *self._waiting, *self._found]

    def journalled(self) -> list[Extraction]:
        """Returns the journalled extractions, which are not committed yet."""
        return list(self._journal.extractions.values())

    def failures(self) -> dict[str, PassageFailure]:
        """Returns the failures of passages whose extraction is needed by a document."""
        return self._failed.living()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._active) + len(self._found)

    async def drained(self) -> None:
        """Returns once all passages that are now in the queue are committed or failed; at once if only `backfill` extracts."""
        left = set(self.unfinished()) if not self.bulk_only else set()
        while left:
            await self._change()
            await asyncio.sleep(COMMIT_GATHER_S)  # comparing the sets at each change would be quadratic
            left &= set(self.unfinished())

    # Processing.

    async def _read_on(self) -> None:
        while True:
            await self.model.up.wait()
            await self.affordable()
            if self.bulk_only or not self._waiting or len(self._found) >= MAX_UNCOMMITTED_PASSAGES:
                await self._change()
                continue
            id, attempts = self._waiting.popitem(last=False)
            passage = self._store.passage(id)
            if passage is None or not self._store.documents_to_extract(id):
                self._notify()  # no document needs the passage now; a later commit may need it
                continue
            self._active.add(id)
            try:
                await self._read_one(passage, attempts)
            finally:
                self._active.discard(id)
                self._notify()

    async def _read_one(self, passage: PassageText, attempts: int) -> None:
        try:
            if (found := self._journal.extractions.get(passage.id)) is None:
                with timed("extract"):
                    found = await self._read(passage)
                self._add_to_sample(found)
            self.add_found(found)
            self._read_again.discard(passage.id)
            return
        except ModelDown as error:
            away = await self.model.confirm()
            # If the model refused the call but answers the probe, it has recovered: the passage is not the cause. Assume this
            # only once per passage, because a proxy may refuse the same passage every time.
            back = not away and error.unavailable and passage.id not in self._read_again
            if back:
                self._read_again.add(passage.id)
            if away or back:
                self._waiting[passage.id] = attempts
                self._waiting.move_to_end(passage.id, last=False)
                return
            reason = str(error)
        except (ModelError, ParserFailed) as error:
            reason = str(error)
        except Exception as error:  # a bug that one passage triggers must not stop other passages
            log.error("extraction_failed", passage=passage.id, exc_info=True)
            reason = f"internal error: {type(error).__name__}; see the log"
        self._fail(passage.id, attempts + 1, reason)

    def _add_to_sample(self, extraction: Extraction) -> None:
        """Adds an extraction to the sample; logs an estimate when the sample reaches a size in `ESTIMATES_AT`."""
        self._sample.add(extraction)
        if self._sample.passages in ESTIMATES_AT and (estimate := self.estimate()) is not None:
            log_estimate(estimate, self._sample.passages)

    async def extract_sample(self, ids: Sequence[str]) -> ExtractedSample:
        """Extracts passages for an estimate, without committing the extractions. The journal keeps the extractions, so these
        passages need no further call of the model, even after a restart. Raises ModelError if no passage can be extracted."""
        sample, failures = ExtractedSample(), list[ModelError]()

        async def extract(id: str) -> None:
            passage = self._store.passage(id)
            if passage is None:
                return
            try:
                found = self._journal.extractions.get(id) or await self._read(passage)
            except ModelError as error:
                failures.append(error)
                return
            self._journal.found(found)
            sample.add(found)

        await asyncio.gather(*(extract(id) for id in ids))
        if failures and not sample.passages:
            raise failures[0]
        return sample

    def add_found(self, extraction: Extraction) -> None:
        """Adds a passage's extraction to the next commit."""
        self._journal.found(extraction)
        self._found[extraction.passage] = extraction
        self._waiting.pop(extraction.passage, None)
        self._notify()

    def add_failure(self, id: str, reason: str) -> None:
        """Adds the failure of a passage that `backfill` could not extract."""
        self._fail(id, self._waiting.pop(id, 0) + 1, reason)
        self._notify()

    def _fail(self, id: str, attempts: int, reason: str) -> None:
        # Do not log the reason, which may quote the passage: only `ls` shows it.
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
                self._failed.take_from_store(id)  # if the commit stored a failure instead of the extraction
            self._journal.committed(done)
            for id, extraction in batch.items():
                if self._found.get(id) is extraction:
                    del self._found[id]
                    self.burst.done += 1
            self._notify()

    async def _change(self) -> None:
        await self._changed.wait()

    def _notify(self) -> None:
        """Wakes all tasks that wait for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def all_committed(self) -> None:
        """Returns once all extractions found so far are committed."""
        while self._found:
            await self._change()

    def next_passages(self, count: int) -> Sequence[PassageText]:
        """Returns the next passages of the queue. They stay in the queue until `add_found` or `add_failure`.

        Drops passages that no document needs now: a later commit may queue them again.
        """
        passages, unneeded = list[PassageText](), list[str]()
        for id in self._waiting:
            if len(passages) == count:
                break
            passage = self._store.passage(id) if self._store.documents_to_extract(id) else None
            if passage is None:
                unneeded.append(id)
            else:
                passages.append(passage)
        for id in unneeded:
            del self._waiting[id]
        if unneeded:
            self._notify()
        return passages
