"""OpenIE as the pipeline asks for it: a batch of passages in, one extraction each out, off the event loop."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from daemon.pipeline.marks import STAND_IN
from daemon.workers import WorkerPool
from store.types import Extraction as Extracted
from store.types import PassageText


class Extraction(Protocol):
    """An extractor that may take its time."""

    @property
    def name(self) -> str: ...

    async def extract(self, passages: Sequence[PassageText]) -> list[Extracted]:
        """At most one extraction a passage; a passage without one is committed without triples."""
        ...


class RulesInWorkers:
    """The `rules` extractor in the worker processes: tagging holds the interpreter, and a query must not wait for it."""

    def __init__(self, pool: WorkerPool, name: str) -> None:
        self._pool = pool
        self.name = name

    async def extract(self, passages: Sequence[PassageText]) -> list[Extracted]:
        asked = [{"id": p.id, "title": p.title, "text": p.text} for p in passages]
        answers = await self._pool.extract_rules(asked)
        return [
            Extracted(
                passage=passage.id,
                extractor=self.name,
                entities=tuple(answer["entities"]),
                triples=tuple((s, p, o) for s, p, o in answer["triples"]),
                took_ms=float(answer.get("took_ms", 0.0)),
            )
            for passage, answer in zip(passages, answers, strict=True)
        ]


class Later:
    """Passages are committed at once and read by a model afterwards: a slow or absent model delays no document.

    `stand_in` gives them triples until then; `announce` is told which passages wait.
    """

    def __init__(self, name: str, stand_in: Extraction | None) -> None:
        self.name = name
        self.announce: Callable[[Iterable[str]], None] = lambda _ids: None
        self._stand_in = stand_in

    async def extract(self, passages: Sequence[PassageText]) -> list[Extracted]:
        self.announce(passage.id for passage in passages)
        if self._stand_in is None:
            return []
        found = await self._stand_in.extract(passages)
        return [replace(each, extractor=f"{STAND_IN}{each.extractor}") for each in found]
