"""Asynchronous extraction for the pipeline: takes a batch of passages, returns one extraction for each."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from daemon.parser_pool.pool import ParserFailed, ParserPool
from memory.openie.registry import WorkerBackend
from store.types import Extraction, ExtractionOutcome, PassageText


class PassageExtractor(Protocol):
    """Extracts names and triples from passages, off the event loop."""

    @property
    def name(self) -> str: ...

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        """Returns at most one extraction per passage. A passage without one is committed without triples."""
        ...


class PooledExtractor:
    """Runs an OpenIE backend in worker processes, because its Python code would delay queries."""

    def __init__(self, pool: ParserPool, backend: WorkerBackend) -> None:
        self._pool = pool
        self._backend = backend.name
        self.name = backend.extractor_name("")

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        return await self._pool.extract(self._backend, passages)


async def extract_each(
    extractor: PassageExtractor,
    passages: Sequence[PassageText],
    failed: Callable[[PassageText, ParserFailed], Iterable[Extraction]],
) -> list[Extraction]:
    """Extracts from the passages; one by one if the extractor's process is lost, so that the others are not affected.

    `failed` is called for each passage that cannot be extracted, and returns what takes its place.
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
    """Leaves the extraction to the model after the commit, so that a slow or unavailable model delays no document.

    `stand_in` supplies triples until then.
    """

    def __init__(self, name: str, stand_in: PassageExtractor | None) -> None:
        self.name = name
        self._stand_in = stand_in

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        found = [] if self._stand_in is None else await self._stand_in.extract(passages)
        return [replace(each, status=ExtractionOutcome.STAND_IN) for each in found]
