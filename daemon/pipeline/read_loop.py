"""Takes work from the intake, parses it, runs local extraction, and queues the changes for the commit."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import structlog

from consumers.failure_codes import FailureCode
from consumers.types import FileChanged
from daemon.observe.metrics import timed
from daemon.parser_pool.pool import ParserFailed, SetAside
from daemon.pipeline.commit.commit_queue import CommitQueue
from daemon.pipeline.document_changes import failed_change, internal_reason
from daemon.pipeline.document_reader import DocumentReader
from daemon.pipeline.extraction.extractors import PassageExtractor
from daemon.pipeline.incoming.intake import Intake
from daemon.pipeline.work_items import AddedDocument, DocumentChange, RetryFile, Work
from store.store import Store
from store.types import Batch, Extraction, State

EXTRACT_SLICE_PASSAGES = 16
"""Passages per call of an extractor. So fresh passages wait for at most this many other passages."""

log = structlog.get_logger()


async def _no_wait() -> None: ...


class ReadingLoop:
    """Processes the work of the intake in several concurrent loops (`runs`), but items with the same key one after the
    other."""

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
        """Number of work items being parsed by source, except slow documents."""
        self._set_aside: asyncio.Queue[Work] = asyncio.Queue()

    def runs(self, readers: int) -> dict[str, Coroutine[Any, Any, None]]:
        """Returns the loops to run until cancelled, by name: `readers` loops for any work, and loops for work that must not
        wait."""
        return {
            **{f"read {number}": self._run() for number in range(readers)},
            # So fresh work waits neither for a long document nor for bulk capacity in the commit queue.
            "read fresh": self._run_when(self._all_busy.wait, partial(self._intake.take, fresh_only=True)),
            "read starved": self._run_starved(),
            "read slow": self._run_slow(),
            # One document at a time, while no other work waits.
            "read pictures": self._run_when(_no_wait, self._intake.take_ocr),
            # While the intake is paused, all other loops may be waiting for memory in the middle of a long document. The intake
            # then returns only work that cannot enlarge the memory.
            "read freeing": self._run_when(self._intake.until_paused, self._intake.take),
        }

    async def _run(self) -> None:
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

    async def _run_when(self, when: Callable[[], Awaitable[object]], take: Callable[[], Work | None]) -> None:
        """Each time `when` returns, processes the work that `take` returns."""
        while True:
            await when()
            work = take()
            if work is None:
                await self._intake.changed()
                continue
            await self._read_or_fail(work)

    async def _run_starved(self) -> None:
        """While all readers are busy, processes one work item of each source that has none in progress.

        So long documents of one source do not block other sources.
        """
        async with asyncio.TaskGroup() as group:
            while True:
                await self._all_busy.wait()
                work = None if self._intake.paused else self._intake.take(not_from=self._reading)
                if work is None:
                    await self._intake.changed()
                    continue
                self._reading[work.source] += 1  # before the task starts, so that no second item is taken
                group.create_task(self._read_starved(work, work.source))

    async def _read_starved(self, work: Work, source: str) -> None:
        try:
            await self._read_or_fail(work)
        finally:
            self._count_reading(source, -1)

    async def _run_slow(self) -> None:
        """Processes slow documents, one at a time for each source."""
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
                self._supersede(work)
            else:
                await self._read_or_fail(work)
        del waiting[source]

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
                self._supersede(work)
                return
            log.info("slow_document", uri=work.key, source=work.source)
            work.slow = True
            self._set_aside.put_nowait(work)
        except Exception as error:  # a document that breaks its parser or hippod must not stop other documents
            log.error("reading_failed", uri=work.key, error=error, exc_info=not isinstance(error, ParserFailed))
            if isinstance(error, ParserFailed):
                failed = failed_change(work, str(error), error.code)
            else:
                failed = failed_change(work, internal_reason(error), FailureCode.INTERNAL)
            await self._commits.put(failed)
        finally:
            if source is not None:
                self._count_reading(source, -1)

    def _count_reading(self, source: str, by: int) -> None:
        self._reading[source] += by
        if not self._reading[source]:
            del self._reading[source]

    def _is_suspected(self, work: Work) -> bool:
        """Returns whether the document exceeded the time limit when it was last parsed."""
        if not isinstance(work.task, FileChanged | RetryFile | AddedDocument):
            return False
        document = self._store.document(work.key)
        return document is not None and document.state is State.FAILED and document.code == FailureCode.TIME.value

    async def _read(self, work: Work) -> None:
        async for change in self._reader.read(work, lambda: self._intake.is_superseded(work)):
            while change.texts and self._intake.paused and (work.seen or not self._intake.is_superseded(work)):
                await self._intake.changed()
            if work.failed:
                return
            if self._intake.is_superseded(work) and not work.seen:
                self._supersede(work)
                return
            if change.texts:
                change.extractions |= await self._extract(change)
            if change.awaits_ocr and change.final:
                self._intake.put_ocr(work)
            await self._commits.put(change)

    def _supersede(self, work: Work) -> None:
        """Drops `work` in favour of later work for its key."""
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
