"""`status` and `wait`: report the daemon's state, and wait until everything is indexed."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import psutil

from daemon.contract.advice import encoder_advice, extractor_advice
from daemon.contract.scope import Scope
from daemon.contract.status import (
    BAD_SOURCE_STATES,
    PAUSED,
    DaemonState,
    Edges,
    MemoryUse,
    SourceStatus,
    Status,
    SynonymRecall,
)
from daemon.errors import STORE_LOST, Conflict, NotReady, TimedOut
from daemon.pipeline.extraction.queue import ExtractionQueue
from daemon.services.documents.document_states import CurrentStates, DocumentCounts
from daemon.services.extraction import extraction_status
from daemon.services.passage_languages import PassageLanguages, indistinct_phrases
from daemon.services.progress import ProgressBoard
from daemon.services.provenance import Provenance
from daemon.services.reencoding import Reencoding
from daemon.services.scopes import ScopeService
from daemon.sources.base import Source, SourceParts
from store.errors import StoreFolderLost
from store.maintenance.synonym_recall import RecallMeasurement
from store.snapshot import Snapshot

HIDDEN_TROUBLE = "hippod's log has the reason"
"""Replaces the reason for restricted clients: it may name a document."""


class RunningParts(SourceParts, ABC):
    """The parts of the daemon on which `status` reports once the memory is open. `openie` is the extractor's name."""

    sources: Sequence[Source]
    reencoding: Reencoding
    openie: str
    extraction_queue: ExtractionQueue
    states: Callable[[], CurrentStates]
    untagged_languages: frozenset[str]
    """Languages for which the extractor lacks taggers."""
    progress: ProgressBoard
    scopes: ScopeService
    provenance: Provenance

    @property
    @abstractmethod
    def memory_use(self) -> MemoryUse:
        """Memory use at the last check."""

    @property
    def encoder(self) -> str:
        """The name of the encoder that made the vectors."""
        return self.pipeline.committer.encoder.identity.name

    @property
    def paused(self) -> str | None:
        """Why hippod accepts no work that could enlarge the memory; None if it accepts all work."""
        return self.pipeline.intake.paused

    def trouble(self) -> str | None:
        """Returns why commits are impossible at present; None if they work. Accesses the disk."""
        try:
            self.store.check_folder()
        except StoreFolderLost as error:
            return str(error)
        trouble = self.pipeline.committer.trouble
        return None if trouble is None else trouble.reason

    def source_status(self, source: Source, pending: int) -> SourceStatus:
        """Returns the source's status: `paused` if the source works but the memory limit is reached."""
        found = source.status(pending)
        if self.paused is None or found.state in BAD_SOURCE_STATES:
            return found
        return found.model_copy(update={"state": PAUSED, "detail": self.paused})


def _synonym_recall(found: RecallMeasurement | None) -> SynonymRecall | None:
    if found is None:
        return None
    return SynonymRecall(commit=found.commit, phrases=found.phrases, pairs=found.pairs, recall=found.share)


def _memory_use(memory: RunningParts) -> MemoryUse:
    use = memory.memory_use
    full_in_s = None if use.full_in_s is None else float(round(use.full_in_s))
    return use.model_copy(update={"full_in_s": full_in_s, "paused": memory.paused})


class StatusService:
    """The state is `starting` before `ready`, and `stopping` after `stop`."""

    def __init__(self, encoder: str, openie: str, llm: str | None) -> None:
        """`llm` is the model that answers questions, or None."""
        self._began = time.monotonic()
        self._names = (encoder, openie)
        self._llm = llm
        self._process = psutil.Process()
        self._memory: RunningParts | None = None
        self._stopping = False
        self._languages = PassageLanguages()

    def ready(self, memory: RunningParts) -> None:
        """Reports on `memory` from now on."""
        self._memory = memory

    def stop(self) -> None:
        self._stopping = True

    def state(self) -> DaemonState:
        if self._stopping:
            return DaemonState.STOPPING
        return DaemonState.STARTING if self._memory is None else DaemonState.READY

    async def status(self, scope: Scope | None = None) -> Status:
        if scope is not None and self._memory is not None:
            return await self._status_of(scope, self._memory)
        memory = self._memory
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
                llm=self._llm,
                sources=[],
                uptime_s=self._uptime(),
                rss_bytes=self._rss() if scope is None else 0,
            )
        snapshot = memory.store.snapshot()
        trouble = await asyncio.to_thread(memory.trouble) or memory.store.flush_trouble
        counted = await self._counted(memory, snapshot, memory.states().counts, memory.sources)
        languages = await asyncio.to_thread(self._languages.shares, snapshot)
        extractors, readers = await asyncio.to_thread(
            lambda: (memory.provenance.extractors(), memory.provenance.readers())
        )
        return counted.model_copy(
            update={
                "rss_bytes": self._rss(),
                "memory": _memory_use(memory),
                "progress": memory.progress.current(),
                "extraction": extraction_status(memory.extraction_queue),
                "trouble": trouble,
                "synonym_recall": _synonym_recall(memory.store.synonym_recall),
                "languages": languages,
                "encoder_advice": encoder_advice(
                    memory.encoder, snapshot.living_phrases, counted.indistinct_phrases, languages
                ),
                "extractor_advice": extractor_advice(memory.untagged_languages, languages),
                "extractors": extractors,
                "readers": readers,
                "encoders": memory.reencoding.shares(),
                "unapplied": memory.reencoding.unapplied,
            }
        )

    async def _status_of(self, scope: Scope, memory: RunningParts) -> Status:
        """Returns the status of a memory that contains only the scope's documents.

        Omits the size of the process, the progress of work, and sources that are not wholly in the scope, because these depend
        on other documents.
        """
        holds, whole = memory.scopes.holds(scope), memory.scopes.sources(scope)
        snapshot = (await asyncio.to_thread(memory.scopes.memory, scope)).snapshot
        sources = [each for each in memory.sources if whole(each.name)]
        counted = await self._counted(memory, snapshot, lambda: memory.states().counts_of(holds), sources)
        troubled = await asyncio.to_thread(memory.trouble) is not None
        # The reason why a source is paused reveals the size of the whole memory.
        shown = [
            each.model_copy(update={"detail": HIDDEN_TROUBLE}) if each.state == PAUSED else each
            for each in counted.sources
        ]
        return counted.model_copy(update={"trouble": HIDDEN_TROUBLE if troubled else None, "sources": shown})

    async def _counted(
        self, memory: RunningParts, snapshot: Snapshot, count: Callable[[], DocumentCounts], sources: Sequence[Source]
    ) -> Status:
        """Returns the part of the status that is computed alike for the whole memory and a scope, in threads: it may take
        long."""
        edges = await asyncio.to_thread(lambda: snapshot.edges)
        indistinct = await asyncio.to_thread(indistinct_phrases, snapshot)
        counts = await asyncio.to_thread(count)
        pending = memory.pipeline.intake.counts()
        return Status(
            state=self.state(),
            commit=snapshot.commit,
            pending=counts.pending,
            failed=counts.failed,
            left_out=counts.left_out,
            skipped=counts.skipped,
            documents=counts.indexed,
            passages=snapshot.living_passages,
            phrases=snapshot.living_phrases,
            triples=snapshot.living_statements,
            edges=Edges(**edges),
            encoder=memory.encoder,
            openie=memory.openie,
            llm=self._llm,
            sources=[memory.source_status(source, pending.get(source.name, 0)) for source in sources],
            uptime_s=self._uptime(),
            rss_bytes=0,
            indistinct_phrases=indistinct,
        )

    def _uptime(self) -> float:
        return round(time.monotonic() - self._began, 3)

    def _rss(self) -> int:
        """Returns the resident memory of the daemon and its child processes, in bytes."""
        total = int(self._process.memory_info().rss)
        for pid in () if self._memory is None else self._memory.pool.children.pids:
            try:
                total += int(psutil.Process(pid).memory_info().rss)
            except psutil.Error:
                continue  # the process has ended meanwhile
        return total

    async def wait(self, timeout_s: float | None, scope: Scope | None = None) -> Status:
        """Waits until the whole memory is indexed, even in a scope. Raises Conflict if the store's folder, perhaps with its
        data, is lost."""
        if self._memory is None:
            raise NotReady("hippod is starting; wait again in a moment")
        await self._check_folder(self._memory)
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(*(source.delivered() for source in self._memory.sources))
                await self._memory.pipeline.drained()
                await self._memory.extraction_queue.drained()
        except TimeoutError:
            if scope is not None:
                raise TimedOut(f"after {timeout_s:g} s documents are still being indexed") from None
            left, waiting = len(self._memory.pipeline.intake), len(self._memory.extraction_queue)
            waits_for = self._memory.extraction_queue.waits_for
            why = f", and {waiting} passages wait for the model" if waiting else ""
            why += f": {waits_for.reason}" if waits_for is not None else ""
            why += f"; {self._memory.paused}" if self._memory.paused is not None else ""
            trouble = await asyncio.to_thread(self._memory.trouble)
            why += f"; nothing can be committed: {trouble}" if trouble is not None else ""
            for source in (each.status(0) for each in self._memory.sources):
                if source.state in BAD_SOURCE_STATES:
                    detail = getattr(source, "detail", None)
                    why += f"; {source.name} is {source.state}" + (f" ({detail})" if detail else "")
            raise TimedOut(f"after {timeout_s:g} s {left} documents are still being indexed{why}") from None
        await self._check_folder(self._memory)
        return await self.status(scope)

    async def _check_folder(self, memory: RunningParts) -> None:
        try:
            await asyncio.to_thread(memory.store.check_folder)
        except StoreFolderLost as error:
            raise Conflict(STORE_LOST) from error
