"""Extracts passages with the model's server before their document continues, for hippod-worker, which commits nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from daemon.costs.daily_budget import DailyBudget
from daemon.pipeline.extraction.model_outage import ModelOutage
from memory.llm.errors import ModelDown, ModelError
from memory.openie.llm.extractor import NamedEntities
from memory.openie.registry import PassageReader
from store.types import Extraction, ExtractionOutcome, PassageText

log = structlog.get_logger()


class ServerExtractor:
    """A `PassageExtractor` that waits during outages of the server, and while the daily budget is used up.

    A passage that the model cannot handle is returned as failed; the others are not affected. Use on the event loop only.
    """

    def __init__(
        self, name: str, reader: PassageReader, probe: Callable[[], Awaitable[None]], budget: DailyBudget
    ) -> None:
        self.name = name
        self._budget = budget
        self._reader = reader
        self._reading = 0
        self.model = ModelOutage(probe, lambda: self._reading)
        self._entities: dict[str, NamedEntities] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self.model.run(), name="model")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        """Extracts all passages concurrently; the limiter bounds the number of calls."""
        self._reading += len(passages)
        try:
            return await asyncio.gather(*(self._read(passage) for passage in passages))
        finally:
            self._reading -= len(passages)

    async def _read(self, passage: PassageText) -> Extraction:
        read_again = False
        while True:
            await self.model.up.wait()
            await self._budget.available()
            try:
                # The entities of the first call are kept while the second call is retried.
                return await self._reader.read(passage, self._entities.get, self._entities.__setitem__)
            except ModelDown as error:
                if await self.model.confirm():
                    continue
                if error.unavailable and not read_again:  # the model has recovered
                    read_again = True
                    continue
                reason = str(error)
            except ModelError as error:
                reason = str(error)
            finally:
                if self.model.current is None:
                    self._entities.pop(passage.id, None)
            log.warning("passage_failed", passage=passage.id, attempts=1)
            return Extraction(passage.id, self.name, status=ExtractionOutcome.FAILED, attempts=1, error=reason)
