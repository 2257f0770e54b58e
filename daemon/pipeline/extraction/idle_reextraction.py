"""Extracts again from passages whose extraction is outdated, while hippod has nothing else to do (`[openie] reextract`).

An older version of the rules made it, or this version with or without an extra that is now installed or removed. There is no
record of progress: the store says which extractor has read a passage. The old triples stay until the commit that replaces them.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import islice

import structlog

from daemon.parser_pool.pool import ParserFailed
from daemon.pipeline.extraction.extractors import PassageExtractor
from daemon.pipeline.incoming.burst import Burst
from daemon.pipeline.pipeline import Pipeline
from store.store import Store
from store.types import Extraction, ExtractionOutcome, ExtractionState, PassageText

BATCH_PASSAGES = 32
"""Passages of one commit. Fresh documents wait for at most the encoding of a slice of it."""
IDLE_CHECK_S = 0.5
MAX_WAIT_S = 60.0
"""A batch waits at most this long for an idle moment, so that an upgrade ends on a machine that is never idle."""
RECHECK_S = 600.0
"""Pause after everything has been read. Afterwards only a passage that returns with an old extraction can be outdated."""

log = structlog.get_logger()


class IdleReextraction:
    """Runs in the background (`run`). Its length is the number of passages that remain."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        extractor: PassageExtractor,
        outdated_name: Callable[[str], bool],
        busy: Callable[[], bool],
    ) -> None:
        """`outdated_name` takes an extractor's name. `busy` returns whether other work is going on."""
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
            except Exception as error:  # an internal error here must not stop anything else
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
            await self._until_idle()
            batch = list(islice(self._waiting, BATCH_PASSAGES))
            found = await self._extract([passage for id in batch if (passage := self._passage(id)) is not None])
            if found:
                await self._pipeline.commit_extractions({each.passage: each for each in found})
            for _ in batch:
                self._waiting.popleft()
            self.burst.done += len(batch)
        log.info("reextraction_ended", passages=self.burst.done, failed=len(self._failed))

    def _passage(self, id: str) -> PassageText | None:
        """Returns a passage, None if meanwhile no document needs it or it has been extracted again."""
        needed = self.is_outdated(self._store.extraction_state(id)) and self._store.documents_to_extract(id)
        return self._store.passage(id) if needed else None

    async def _extract(self, passages: list[PassageText]) -> list[Extraction]:
        """Extracts from passages; one by one if that fails, to find those that cause the failure."""
        if not passages:
            return []
        try:
            return await self._extractor.extract(passages)
        except ParserFailed as error:
            if len(passages) > 1:
                return [found for each in passages for found in await self._extract([each])]
            log.error("extraction_failed", passage=passages[0].id, error=error)
            self._failed.add(passages[0].id)
            return []

    async def _until_idle(self) -> None:
        waited_s = 0.0
        while self._busy() and waited_s < MAX_WAIT_S:
            await asyncio.sleep(IDLE_CHECK_S)
            waited_s += IDLE_CHECK_S
