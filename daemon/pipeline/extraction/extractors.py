"""OpenIE as the pipeline asks for it: a batch of passages in, one extraction each out, off the event loop."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from daemon.workers.pool import WorkerPool
from memory.openie.registry import WorkerBackend
from store.types import Extraction, ExtractionOutcome, PassageText


class PassageExtractor(Protocol):
    """An extractor that may take its time."""

    @property
    def name(self) -> str: ...

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        """At most one extraction a passage; a passage without one is committed without triples."""
        ...


class PooledExtractor:
    """An OpenIE backend in the worker processes: it computes in Python, and a query must not wait for that."""

    def __init__(self, pool: WorkerPool, backend: WorkerBackend) -> None:
        self._pool = pool
        self._backend = backend.name
        self.name = backend.extractor_name("")

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        asked = [{"id": p.id, "title": p.title, "text": p.text} for p in passages]
        answers = await self._pool.extract(self._backend, asked)
        return [
            Extraction(
                passage=passage.id,
                extractor=self.name,
                entities=tuple(answer["entities"]),
                triples=tuple((s, p, o) for s, p, o in answer["triples"]),
                took_ms=float(answer.get("took_ms", 0.0)),
            )
            for passage, answer in zip(passages, answers, strict=True)
        ]


class DeferredExtractor:
    """Passages are committed at once and read by a model afterwards: a slow or absent model delays no document.

    `stand_in` gives them triples until then; `announce` is called with the passages that wait.
    """

    def __init__(self, name: str, stand_in: PassageExtractor | None, announce: Callable[[Iterable[str]], None]) -> None:
        self.name = name
        self._announce = announce
        self._stand_in = stand_in

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        self._announce(passage.id for passage in passages)
        if self._stand_in is None:
            return []
        found = await self._stand_in.extract(passages)
        return [replace(each, status=ExtractionOutcome.STAND_IN) for each in found]
