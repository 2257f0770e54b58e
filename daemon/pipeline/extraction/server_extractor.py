"""Passages read by the model's server before their document goes on: where nothing is committed yet, as in hippod-worker."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from daemon.pipeline.extraction.model_outage import ModelOutage, Outage
from memory.llm.errors import ModelDown, ModelError
from memory.openie.llm.extractor import NamedEntities
from memory.openie.registry import PassageReader
from store.types import Extraction, ExtractionOutcome, PassageText

log = structlog.get_logger()


class ServerExtractor:
    """A `PassageExtractor`, on the event loop. While the server is away it waits; a passage that the model cannot handle
    comes back as failed, alone."""

    def __init__(self, name: str, reader: PassageReader, probe: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self._reader = reader
        self._reading = 0
        self._model = ModelOutage(probe, lambda: self._reading)
        self._entities: dict[str, NamedEntities] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._model.run(), name="model")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    @property
    def outage(self) -> Outage | None:
        """What reading waits for, if it does."""
        return self._model.current

    def note_call(self, outcome: str, good: bool) -> None:
        """A call to the model ended."""
        self._model.note_call(outcome, good)

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        """All at once: the limiter decides how many calls are made."""
        self._reading += len(passages)
        try:
            return await asyncio.gather(*(self._read(passage) for passage in passages))
        finally:
            self._reading -= len(passages)

    async def _read(self, passage: PassageText) -> Extraction:
        read_again = False
        while True:
            await self._model.up.wait()
            try:
                # The first of two calls is kept while the second is tried again.
                return await self._reader.read(passage, self._entities.get, self._entities.__setitem__)
            except ModelDown as error:
                if await self._model.confirm():
                    continue
                if error.unavailable and not read_again:  # it has come back meanwhile
                    read_again = True
                    continue
                reason = str(error)
            except ModelError as error:
                reason = str(error)
            finally:
                if self._model.current is None:
                    self._entities.pop(passage.id, None)
            log.warning("passage_failed", passage=passage.id, attempts=1)
            return Extraction(passage.id, self.name, status=ExtractionOutcome.FAILED, attempts=1, error=reason)
