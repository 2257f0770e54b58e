"""Takes work from the intake, parses it, runs local extraction, and passes the changes to the committer."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable

import structlog

from consumers.failure_codes import FailureCode
from consumers.types import FileChanged
from daemon.observe.metrics import timed
from daemon.pipeline.commit.commit_queue import CommitQueue
from daemon.pipeline.document_reader import DocumentReader, failed_change
from daemon.pipeline.extraction.extractors import PassageExtractor
from daemon.pipeline.incoming.intake import Intake
from daemon.pipeline.work_items import AddedDocument, DocumentChange, Work
from daemon.workers.pool import SetAside, WorkerFailed
from store.store import Store
from store.types import Batch, Extraction, State

EXTRACT_SLICE_PASSAGES = 16
"""Passages given to an extractor at a time. Fresh passages wait for at most this many others."""

log = structlog.get_logger()


class ReadingLoop:
    """Processes the work in the intake. Several `run` tasks may run concurrently; each key is processed by one at a time."""

    def __init__(
        self,
        store: Store,
        intake: Intake,
        reader: DocumentReader,
        extractor: PassageExtractor,
        commits: CommitQueue,
        finish: Callable[[Work], None],
    ) -> None:
        """`finish` is called with superseded work."""
        self._store = store
        self._intake = intake
        self._reader = reader
        self._extractor = extractor
        self._commits = commits
        self._finish = finish
        self._idle = 0
        self._all_busy = asyncio.Event()
        self._reading: Counter[str] = Counter()
        """Number of pieces of work being parsed for each source, without slow documents."""
        self._set_aside: asyncio.Queue[Work] = asyncio.Queue()

    async def run(self) -> None:
        """Processes work until cancelled."""
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
        """Processes fresh work while all `run` tasks are busy, until cancelled.

        So fresh work waits neither for a long document nor for capacity in the bulk lane of the commit queue.
        """
        while True:
            await self._all_busy.wait()
            work = self._intake.take(fresh_only=True)
            if work is None:
                await self._intake.changed()
                continue
            await self._read_or_fail(work)

    async def run_starved(self) -> None:
        """While all `run` tasks are busy, processes one piece of work from each source that has none in progress.

        So the long documents of one source do not occupy all readers. Runs until cancelled.
        """
        async with asyncio.TaskGroup() as group:
            while True:
                await self._all_busy.wait()
                work = None if self._intake.paused else self._intake.take(not_from=self._reading)
                if work is None:
                    await self._intake.changed()
                    continue
                self._reading[work.source] += 1  # before the task starts, so that no second piece is taken
                group.create_task(self._read_starved(work, work.source))

    async def _read_starved(self, work: Work, source: str) -> None:
        try:
            await self._read_or_fail(work)
        finally:
            self._count_reading(source, -1)

    async def run_ocr(self) -> None:
        """Reads the pictures of documents that were parsed, one document at a time while no other work waits. Runs until
        cancelled."""
        while True:
            work = self._intake.take_ocr()
            if work is None:
                await self._intake.changed()
                continue
            await self._read_or_fail(work)

    async def run_slow(self) -> None:
        """Processes slow documents, one at a time for each source, until cancelled."""
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
        """While the intake is paused, processes the work that cannot enlarge the memory, until cancelled.

        All other tasks may be waiting for memory in the middle of a long document.
        """
        while True:
            await self._intake.until_paused()
            work = self._intake.take()
            if work is None:
                await self._intake.changed()
                continue
            await self._read_or_fail(work)

    async def _read_or_fail(self, work: Work) -> None:
        if not work.slow and not work.recognise and self._is_suspected(work):
            work.slow = True
            self._set_aside.put_nowait(work)
            return
        source = work.source if not work.slow else None
        if source is not None:
            self._count_reading(source, 1)
        try:
            await self._read(work)
        except SetAside:
            if work.recognise:
                self._make_way(work)
                return
            log.info("slow_document", uri=work.key, source=work.source)
            work.slow = True
            self._set_aside.put_nowait(work)
        except Exception as error:  # a document that breaks its parser or hippod must not stop the others
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
        """Returns whether the document exceeded its time limit when it was last parsed."""
        if not isinstance(work.task, FileChanged | AddedDocument):
            return False
        document = self._store.document(work.key)
        return document is not None and document.state is State.FAILED and document.code == FailureCode.TIME.value

    async def _read(self, work: Work) -> None:
        async for change in self._reader.read(work, lambda: self._intake.is_superseded(work)):
            while change.texts and self._intake.paused and (work.seen or not self._intake.is_superseded(work)):
                await self._intake.changed()
            if self._intake.is_superseded(work) and not work.seen:
                self._make_way(work)
                return
            if change.texts:
                change.extractions |= await self._extract(change)
            if change.awaits_ocr and change.final:
                self._intake.put_ocr(work)
            await self._commits.put(change)

    def _make_way(self, work: Work) -> None:
        """Drops `work` in favour of the later work for its key."""
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
