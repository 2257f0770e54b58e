"""`status` and `wait`: where the daemon stands, and when it has caught up."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import psutil

from daemon.api.errors import NotReady, TimedOut
from daemon.contract import BAD_SOURCE_STATES, DaemonState, Edges, SourceStatus, Status, SynonymRecall
from daemon.pipeline.backlog import Backlog
from daemon.pipeline.pipeline import Pipeline
from daemon.services.extractions import extraction_status, standing
from store.recall import Recall
from store.store import Store
from store.types import State


class Source(Protocol):
    """A source as `status` and `wait` see it."""

    def status(self, pending: int) -> SourceStatus: ...

    async def catch_up(self) -> None:
        """Returns once all that the source holds now has been handed to the pipeline."""
        ...


class Memory:
    """What there is to report on once the memory is open."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        sources: Sequence[Source],
        encoder: str,
        openie: str,
        backlog: Backlog,
    ) -> None:
        self.store = store
        self.pipeline = pipeline
        self.sources = sources
        self.encoder = encoder
        self.openie = openie
        self.backlog = backlog


def _recall(found: Recall | None) -> SynonymRecall | None:
    if found is None:
        return None
    return SynonymRecall(commit=found.commit, phrases=found.phrases, pairs=found.pairs, recall=found.share)


class ProgressService:
    """The `Progress` port. `state` is `starting` until `memory` is set."""

    def __init__(self, encoder: str, openie: str) -> None:
        self._began = time.monotonic()
        self._names = (encoder, openie)
        self._process = psutil.Process()
        self.memory: Memory | None = None
        self.stopping = False
        self.worker_pids: Callable[[], Sequence[int]] = lambda: ()

    def state(self) -> DaemonState:
        if self.stopping:
            return DaemonState.STOPPING
        return DaemonState.STARTING if self.memory is None else DaemonState.READY

    async def status(self) -> Status:
        memory = self.memory
        if memory is None:
            return Status(
                state=self.state(),
                commit=0,
                pending=0,
                failed=0,
                documents=0,
                passages=0,
                phrases=0,
                triples=0,
                edges=Edges(relation=0, context=0, synonym=0),
                encoder=self._names[0],
                openie=self._names[1],
                sources=[],
                uptime_s=self._uptime(),
                rss_bytes=self._rss(),
            )
        snapshot = memory.store.snapshot()
        edges = await asyncio.to_thread(lambda: snapshot.edges)
        states = memory.store.states()
        pending = memory.pipeline.intake.counts()
        reading = standing(memory.store, memory.backlog)
        unread, unreadable = await asyncio.to_thread(lambda: (len(reading.pending()), len(reading.failed())))
        return Status(
            state=self.state(),
            commit=snapshot.commit,
            pending=sum(pending.values()) + unread,
            failed=states.get(State.FAILED, 0) + unreadable,
            documents=states.get(State.INDEXED, 0),
            passages=snapshot.living_passages,
            phrases=snapshot.living_phrases,
            triples=snapshot.living_triples,
            edges=Edges(**edges),
            encoder=memory.encoder,
            openie=memory.openie,
            sources=[source.status(pending.get(source.status(0).name, 0)) for source in memory.sources],
            uptime_s=self._uptime(),
            rss_bytes=self._rss(),
            extraction=extraction_status(memory.backlog),
            trouble=memory.pipeline.committer.trouble,
            synonym_recall=_recall(memory.store.recall),
        )

    def _uptime(self) -> float:
        return round(time.monotonic() - self._began, 3)

    def _rss(self) -> int:
        """Resident memory of the daemon and its workers, in bytes."""
        total = int(self._process.memory_info().rss)
        for pid in self.worker_pids():
            try:
                total += int(psutil.Process(pid).memory_info().rss)
            except psutil.Error:
                continue  # it ended between the two lines
        return total

    async def wait(self, timeout_s: float | None) -> Status:
        if self.memory is None:
            raise NotReady("hippod is starting; wait again in a moment")
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(*(source.catch_up() for source in self.memory.sources))
                await self.memory.pipeline.drained()
                await self.memory.backlog.drained()
        except TimeoutError:
            left, unread = len(self.memory.pipeline.intake), len(self.memory.backlog)
            outage = self.memory.backlog.outage
            why = f", and {unread} passages wait for the model" if unread else ""
            why += f": {outage.reason}" if outage is not None else ""
            for source in (each.status(0) for each in self.memory.sources):
                if source.state in BAD_SOURCE_STATES:
                    detail = (source.model_extra or {}).get("detail")
                    why += f"; {source.name} is {source.state}" + (f" ({detail})" if detail else "")
            raise TimedOut(f"after {timeout_s:g} s {left} documents are still being indexed{why}") from None
        return await self.status()
