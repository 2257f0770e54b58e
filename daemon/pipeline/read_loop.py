"""Takes work from the intake, reads it, extracts what can be extracted at once, and hands the changes to the committer."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable

import structlog

from consumers.failure_codes import FailureCode
from consumers.types import FileChanged
from daemon.observe.metrics import timed
from daemon.pipeline.commit.commit_queue import CommitQueue
from daemon.pipeline.extraction.extractors import PassageExtractor
from daemon.pipeline.incoming.intake import Intake
from daemon.pipeline.parse_task import DocumentReader, failed_change
from daemon.pipeline.work_items import AddedDocument, DocumentChange, Work
from daemon.workers.pool import SetAside, WorkerFailed
from store.store import Store
from store.types import Batch, Extraction, State

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
        self._reading: Counter[str] = Counter()
        """Work that is being read, by source, apart from what is slow."""
        self._set_aside: asyncio.Queue[Work] = asyncio.Queue()

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

    async def run_starved(self) -> None:
        """While all others are busy, reads one piece of work of each source that none of them works for, until cancelled: the
        long documents of one source must not take all readers."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._all_busy.wait()
                work = None if self._intake.paused else self._intake.take(not_from=self._reading)
                if work is None:
                    await self._intake.changed()
                    continue
                self._reading[work.source] += 1  # the task begins later
                group.create_task(self._read_starved(work, work.source))

    async def _read_starved(self, work: Work, source: str) -> None:
        try:
            await self._read_or_fail(work)
        finally:
            self._count_reading(source, -1)

    async def run_slow(self) -> None:
        """Reads what is slow, one document of each source at a time, until cancelled."""
        waiting: dict[str, deque[Work]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                work = await self._set_aside.get()
                if work.source in waiting:
                    waiting[work.source].append(work)
                else:
                    waiting[work.source] = deque([work])
                    group.create_task(self._read_slow(work.source, waiting))

    async def _read_slow(self, source: str, waiting: dict[str, deque[Work]]) -> None:
        while waiting[source]:
            work = waiting[source].popleft()
            if self._intake.is_superseded(work) and not work.seen:
                self._make_way(work)
            else:
                await self._read_or_fail(work)
        del waiting[source]

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
        if not work.slow and self._is_suspected(work):
            work.slow = True
            self._set_aside.put_nowait(work)
            return
        source = work.source if not work.slow else None
        if source is not None:
            self._count_reading(source, 1)
        try:
            await self._read(work)
        except SetAside:
            log.info("slow_document", uri=work.key, source=work.source)
            work.slow = True
            self._set_aside.put_nowait(work)
        except Exception as error:  # whatever one document does to its parser or to us, the others go on
            log.error("reading_failed", uri=work.key, error=error, exc_info=not isinstance(error, WorkerFailed))
            if isinstance(error, WorkerFailed):
                failed = failed_change(work, str(error), error.code)
            else:
                failed = failed_change(work, f"internal error: {error!r}; see the log", FailureCode.INTERNAL)
            await self._commits.put(failed)
        finally:
            if source is not None:
                self._count_reading(source, -1)

    def _count_reading(self, source: str, by: int) -> None:
        self._reading[source] += by
        if not self._reading[source]:
            del self._reading[source]

    def _is_suspected(self, work: Work) -> bool:
        """Whether it took longer than it may when it was last parsed."""
        if not isinstance(work.task, FileChanged | AddedDocument):
            return False
        document = self._store.document(work.key)
        return document is not None and document.state is State.FAILED and document.code == FailureCode.TIME.value

    async def _read(self, work: Work) -> None:
        async for change in self._reader.read(work):
            while change.texts and self._intake.paused and (work.seen or not self._intake.is_superseded(work)):
                await self._intake.changed()
            if self._intake.is_superseded(work) and not work.seen:
                self._make_way(work)
                return
            if change.texts:
                change.extractions |= await self._extract(change)
            await self._commits.put(change)

    def _make_way(self, work: Work) -> None:
        """`work` is not read, as later work for its key waits."""
        log.debug("superseded", uri=work.key)
        self._intake.hand_over(work)
        self._finish(work)

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
