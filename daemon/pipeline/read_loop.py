"""Takes work from the intake, reads it, extracts what can be extracted at once, and hands the changes to the committer."""

import asyncio
from collections.abc import Callable

import structlog

from consumers.failure_codes import FailureCode
from daemon.observe.metrics import timed
from daemon.pipeline.commit.commit_queue import CommitQueue
from daemon.pipeline.extraction.extractors import PassageExtractor
from daemon.pipeline.incoming.intake import Intake
from daemon.pipeline.parse_task import DocumentReader, failed_change
from daemon.pipeline.work_items import DocumentChange, Work
from daemon.workers.pool import WorkerFailed
from store.store import Store
from store.types import Batch, Extraction

EXTRACT_SLICE_PASSAGES = 16
"""Passages that an extractor gets at a time: what is fresh waits no longer for one than these take."""

log = structlog.get_logger()


class ReadingLoop:
    """`run` may run several times at once: work for one key is taken by one of them at a time."""

    def __init__(
        self,
        store: Store,
        intake: Intake,
        reader: DocumentReader,
        extractor: PassageExtractor,
        commits: CommitQueue,
        finish: Callable[[Work], None],
    ) -> None:
        """`finish` is called with work that is not worth doing any more."""
        self._store = store
        self._intake = intake
        self._reader = reader
        self._extractor = extractor
        self._commits = commits
        self._finish = finish
        self._idle = 0
        self._all_busy = asyncio.Event()

    async def run(self) -> None:
        """Reads until cancelled."""
        self._idle += 1
        while True:
            work = self._intake.take()
            if work is None:
                await self._intake.changed()
                continue
            self._idle -= 1
            if not self._idle:
                self._all_busy.set()
            try:
                await self._read_or_fail(work)
            finally:
                self._idle += 1
                self._all_busy.clear()

    async def run_fresh(self) -> None:
        """Reads what is fresh while all others are busy, until cancelled: so that it waits neither for a long document nor
        for room in the bulk lane of the queue."""
        while True:
            await self._all_busy.wait()
            work = self._intake.take(fresh_only=True)
            if work is None:
                await self._intake.changed()
                continue
            await self._read_or_fail(work)

    async def run_freeing(self) -> None:
        """While the intake is paused, does what makes the memory no larger: all others may wait for room, in the midst of a
        long document. Until cancelled."""
        while True:
            await self._intake.until_paused()
            work = self._intake.take()
            if work is None:
                await self._intake.changed()
                continue
            await self._read_or_fail(work)

    async def _read_or_fail(self, work: Work) -> None:
        try:
            await self._read(work)
        except Exception as error:  # whatever one document does to its parser or to us, the others go on
            log.error("reading_failed", uri=work.key, error=error, exc_info=not isinstance(error, WorkerFailed))
            if isinstance(error, WorkerFailed):
                failed = failed_change(work, str(error), error.code)
            else:
                failed = failed_change(work, f"internal error: {error!r}; see the log", FailureCode.INTERNAL)
            await self._commits.put(failed)

    async def _read(self, work: Work) -> None:
        async for change in self._reader.read(work):
            while change.texts and self._intake.paused and (work.seen or not self._intake.is_superseded(work)):
                await self._intake.changed()
            if self._intake.is_superseded(work) and not work.seen:
                log.debug("superseded", uri=work.key)
                self._intake.hand_over(work)
                self._finish(work)
                return
            if change.texts:
                change.extractions |= await self._extract(change)
            await self._commits.put(change)

    async def _extract(self, change: DocumentChange) -> dict[str, Extraction]:
        unread = self._store.unextracted(
            Batch(tuple(change.documents), (), tuple(change.texts.values()), tuple(change.extractions.values()))
        )
        if not unread:
            return {}
        found: dict[str, Extraction] = {}
        for start in range(0, len(unread), EXTRACT_SLICE_PASSAGES):
            part = unread[start : start + EXTRACT_SLICE_PASSAGES]
            with timed("extract"):
                found |= {each.passage: each for each in await self._extractor.extract(part)}
        return found
