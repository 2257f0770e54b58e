"""Replaces outdated extractions while hippod is idle (`[openie] reextract`).

An extraction is outdated if an older version of the rules made it, or the present version before an extra was installed or
removed. Progress is not recorded, because the store names each passage's extractor. Old triples stay until they are replaced.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import islice

import structlog

from daemon.parser_pool.pool import ParserFailed
from daemon.pipeline.backpressure import Burst, until_idle
from daemon.pipeline.extraction.extractors import PassageExtractor, extract_each
from daemon.pipeline.pipeline import Pipeline
from store.store import Store
from store.types import ExtractionOutcome, ExtractionState, PassageText

BATCH_PASSAGES = 32
"""Passages per commit. A fresh document waits for the encoding of at most one slice of these passages."""
IDLE_CHECK_S = 0.5
MAX_WAIT_S = 60.0
"""Maximum wait of a batch for an idle moment. On a machine that is never idle, the work then still ends."""
RECHECK_S = 600.0
"""Interval of checks for passages that have returned with an outdated extraction."""

log = structlog.get_logger()


class IdleReextraction:
    """Runs in the background (`run`). `len` is the number of remaining passages."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        extractor: PassageExtractor,
        outdated_name: Callable[[str], bool],
        busy: Callable[[], bool],
    ) -> None:
        """`outdated_name` returns whether an extractor's name is outdated. `busy` returns whether other work is in progress."""
        self._store = store
        self._pipeline = pipeline
        self._extractor = extractor
        self._outdated_name = outdated_name
        self._busy = busy
        self._failed: set[str] = set()
        """Passages that the present rules cannot process; they keep their old triples until the next start."""
        self._waiting: deque[str] = deque()
        self.burst = Burst()

    def __len__(self) -> int:
        return len(self._waiting)

    def is_outdated(self, state: ExtractionState | None) -> bool:
        return state is not None and state.status is ExtractionOutcome.DONE and self._outdated_name(state.extractor)

    async def run(self) -> None:
        """Extracts until cancelled."""
        while True:
            try:
                await self.extract_all()
            except Exception as error:  # an internal error of this loop must not stop the daemon
                log.error("reextraction_failed", error=error, exc_info=True)
                self._waiting.clear()
            await asyncio.sleep(RECHECK_S)

    async def extract_all(self) -> None:
        """Extracts all passages that are outdated now."""
        outdated = await asyncio.to_thread(self._store.passages_by_extraction, self.is_outdated)
        self._waiting.extend(id for id in outdated if id not in self._failed)
        if not self._waiting:
            return
        self.burst = Burst()
        log.info("reextraction_began", passages=len(self._waiting), extractor=self._extractor.name)
        while self._waiting:
            await until_idle(self._busy, IDLE_CHECK_S, MAX_WAIT_S)
            batch = list(islice(self._waiting, BATCH_PASSAGES))
            passages = [passage for id in batch if (passage := self._passage(id)) is not None]
            found = await extract_each(self._extractor, passages, self._keep_old)
            if found:
                await self._pipeline.commit_extractions({each.passage: each for each in found})
            for _ in batch:
                self._waiting.popleft()
            self.burst.done += len(batch)
        log.info("reextraction_ended", passages=self.burst.done, failed=len(self._failed))

    def _passage(self, id: str) -> PassageText | None:
        """Returns a passage; None if no document needs it any more or it has been extracted again."""
        needed = self.is_outdated(self._store.extraction_state(id)) and self._store.documents_to_extract(id)
        return self._store.passage(id) if needed else None

    def _keep_old(self, passage: PassageText, error: ParserFailed) -> tuple[()]:
        log.error("extraction_failed", passage=passage.id, error=error)
        self._failed.add(passage.id)
        return ()
