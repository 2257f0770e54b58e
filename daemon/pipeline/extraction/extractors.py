"""Asynchronous extractors for the pipeline: each takes a batch of passages and returns one extraction per passage.

`daemon.parser_pool.pool.PooledExtractor` runs in the child processes. `ServerExtractor` calls the model's server before the
document is passed on; hippod-worker uses it because it commits nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import structlog

from daemon.costs.daily_budget import DailyBudget
from daemon.parser_pool.pool import ParserFailed
from daemon.pipeline.outage import ModelOutage
from memory.llm.errors import ModelDown, ModelError
from memory.openie.llm.extractor import NamedEntities
from memory.openie.registry import PassageReader
from store.types import Extraction, ExtractionOutcome, PassageText

log = structlog.get_logger()


class PassageExtractor(Protocol):
    """Extracts phrases and triples from passages, outside the event loop's thread."""

    @property
    def name(self) -> str: ...

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        """Returns at most one extraction per passage. A passage without an extraction is committed without triples."""
        ...


async def extract_each(
    extractor: PassageExtractor,
    passages: Sequence[PassageText],
    failed: Callable[[PassageText, ParserFailed], Iterable[Extraction]],
) -> list[Extraction]:
    """Extracts from all passages together. If the extractor's process is lost, extracts one by one, so that only the passage at
    fault fails.

    `failed` is called for each passage that cannot be extracted, and returns the extractions to use instead.
    """
    if not passages:
        return []
    try:
        return await extractor.extract(passages)
    except ParserFailed as error:
        if len(passages) == 1:
            return [*failed(passages[0], error)]
    return [found for each in passages for found in await extract_each(extractor, [each], failed)]


class DeferredExtractor:
    """Defers extraction by the model until after the commit, so that a slow or unavailable model delays no document.

    `stand_in` supplies triples until the model has extracted.
    """

    def __init__(self, name: str, stand_in: PassageExtractor | None) -> None:
        self.name = name
        self._stand_in = stand_in

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        found = [] if self._stand_in is None else await self._stand_in.extract(passages)
        return [replace(each, status=ExtractionOutcome.STAND_IN) for each in found]


class ServerExtractor:
    """A `PassageExtractor` that waits during outages of the server, and while the daily budget is used up.

    Returns a passage that the model cannot handle as failed, without affecting other passages. Use on the event loop only.
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
        """Extracts from all passages concurrently; the limiter bounds the number of calls."""
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
                # Keep the entities that the first call found while the second call is retried.
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
