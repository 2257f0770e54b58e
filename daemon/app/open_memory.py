"""Opens the memory and puts together all that works on it, each part registered to be taken down in reverse."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog

from consumers.parsing import Limits
from consumers.splitting import SplitSettings
from daemon.api.event_hub import EventHub
from daemon.api.service_protocols import MemoryPorts
from daemon.config import Config
from daemon.model_factory import Models, load_encoder
from daemon.observe.memory_use import anonymous_bytes
from daemon.pipeline.extraction.queue import ExtractionQueue
from daemon.pipeline.parse_task import DocumentReader
from daemon.pipeline.pipeline import Pipeline
from daemon.runtime.allocator import scale_mmap_threshold
from daemon.runtime.capacity_limits import queue_limits
from daemon.runtime.gc import frozen_objects
from daemon.runtime.memory_watch import MemoryWatch
from daemon.runtime.reload import ActiveConfig
from daemon.runtime.scheduler import Scheduler, add_maintenance_jobs
from daemon.runtime.sd_notify import Notifier
from daemon.runtime.watchdog import ThreadCheck, extend_start
from daemon.services.answering.ask import AskService
from daemon.services.answering.judging import JudgeService
from daemon.services.answering.sessions import SessionService
from daemon.services.backups import ScheduledBackup
from daemon.services.client_positions import ClientPositions
from daemon.services.documents.document_service import DocumentService
from daemon.services.documents.document_states import DocumentStates
from daemon.services.documents.unread import UnreadDocuments
from daemon.services.extraction import ExtractionService, extractor_note
from daemon.services.freshness import Freshness
from daemon.services.graph import GraphService
from daemon.services.indistinct_phrases import LanguageWatch
from daemon.services.overview import OverviewService
from daemon.services.progress import ProgressBoard
from daemon.services.query import QueryService
from daemon.services.scopes import ScopeService
from daemon.services.status import OpenMemory
from daemon.services.transfer import TransferService
from daemon.sources.base import Source, SourceParts
from daemon.sources.registry import SOURCE_KINDS, owners
from daemon.workers.pool import WorkerPool
from memory.types import Encoder
from store.checkpoint.files import CheckpointTimeout
from store.log.store_lock import StoreLock
from store.store import Store
from store.types import SynonymRule

PIPELINE_STOP_SHARE, SNAPSHOT_STOP_SHARE, SCHEDULE_STOP_SHARE = 0.6, 0.6, 0.2
"""Of `[daemon] stop_timeout_s`, the most that each may take to stop; seldom does one take all of it."""

T = TypeVar("T")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory and all that works on it. Nothing runs yet."""

    store: Store
    pool: WorkerPool
    pipeline: Pipeline
    extraction_queue: ExtractionQueue
    queries: QueryService
    sources: Sequence[Source]
    scheduler: Scheduler
    ports: MemoryPorts
    reported: OpenMemory
    memory_watch: MemoryWatch

    def ended_tasks(self) -> list["asyncio.Task[None]"]:
        """Those of the pipeline and of the extraction queue that run no more; none of them ends by itself."""
        return [*self.pipeline.ended_tasks(), *self.extraction_queue.ended_tasks()]


class OpeningStep:
    """The present step of opening; each is shown by the service manager."""

    def __init__(self, notifier: Notifier) -> None:
        self.notifier = notifier
        self.step: str | None = None

    def at(self, step: str | None) -> None:
        self.step = step
        if step is not None:
            self.notifier.status(f"starting: {step}")


class StopClock:
    """When the stop began, and what is left of its time."""

    def __init__(self, active: ActiveConfig) -> None:
        self._active = active
        self._began: float | None = None

    def start(self) -> None:
        self._began = time.monotonic()

    def until(self, share: float) -> float:
        """The moment (monotonic) at which `share` of `[daemon] stop_timeout_s` will have passed."""
        began = time.monotonic() if self._began is None else self._began
        return began + self._active.stop_timeout_s * share

    def left_s(self, share: float) -> float:
        return max(0.0, self.until(share) - time.monotonic())


async def unless_stopped(
    work: Coroutine[object, object, T], opening: OpeningStep, stop: asyncio.Task[bool]
) -> T | None:
    """Returns what `work` returns, None where `stop` came first. The service manager is asked for more time meanwhile."""
    task = asyncio.create_task(work)
    extending = asyncio.create_task(extend_start(opening.notifier, ThreadCheck("open", "open", lambda: opening.step)))
    await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
    extending.cancel()
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.wait([task])
    return None


async def open_memory(
    stack: AsyncExitStack, active: ActiveConfig, lock: StoreLock, events: EventHub, opening: OpeningStep
) -> Memory:
    """Loads the model, opens the store, and puts the parts together."""
    config = active.config
    pool = WorkerPool(config.parsing.workers, config.parsing.memory_bytes, config.parsing.time_limit_s, limits=Limits())
    stack.push_async_callback(pool.close)
    pool.start()
    clock = StopClock(active)
    encoder, store, before = await _open_store(stack, config, lock, opening, clock)
    models = Models(config)
    stack.push_async_callback(models.close)
    scopes = ScopeService(store, active.labels)
    queries = QueryService(
        store,
        encoder,
        active.retrieval,
        active.mode,
        models.filter,
        active.filtering,
        entities=models.entities,
        scopes=scopes,
        unread=lambda scope: unread.note(scope),
        fresh=lambda request: freshness.wait(request),
    )
    stack.callback(queries.close)

    worker = models.worker_extractor(pool)
    extraction_queue = models.extraction_queue(store, worker)
    extractor = models.commit_extractor(worker, extraction_queue)

    def committed(passages: Sequence[str] = ()) -> None:
        extraction_queue.committed(passages)
        snapshot = store.snapshot()
        languages.check(snapshot)
        scale_mmap_threshold(max(snapshot.n_phrases, snapshot.n_triples))

    languages = LanguageWatch(encoder.identity.name)

    committed()
    split = SplitSettings(config.passages.max_tokens, config.passages.min_tokens)
    pipeline = Pipeline(
        store,
        encoder,
        extractor,
        DocumentReader(pool, split),
        events.publish,
        config.parsing.workers,
        queue_limits(config),
        committed,
        queries.asked_recently,
        owners=owners(config.tables),
    )
    memory_watch = MemoryWatch(active.memory_limit, before, lambda: store.snapshot().living_passages, pipeline.intake)
    await memory_watch.check()  # what the store takes may be too much from the start
    parts = SourceParts(store, pipeline, pool, split)
    sources = [kind.make(table, parts) for kind in SOURCE_KINDS for table in config.tables(kind)]
    progress = ProgressBoard(pipeline.intake, extraction_queue)
    positions = ClientPositions(store.folder)
    freshness = Freshness(store, pipeline, scopes, positions, sources)
    unread = UnreadDocuments(store, pipeline, extraction_queue, sources, scopes)
    sessions = SessionService(store, lambda: active.config.retrieval.keep_sessions, scopes)
    scheduler = Scheduler(config.schedule)
    states = DocumentStates(store, pipeline, extraction_queue, partial(scheduler.next_run, "retry"))
    documents = DocumentService(store, pipeline, extraction_queue, states, scopes, positions, sources)
    extractions = ExtractionService(
        store, extraction_queue, models.load_bulk_extractor(), extractor_note(config.openie.backend)
    )
    add_maintenance_jobs(
        scheduler,
        store,
        config.store.keep_versions,
        rescans=[source.rescan for source in sources],
        retry_due=documents.retry_due,
        expire_sessions=sessions.sweep,
    )
    backups = ScheduledBackup(store, lambda: active.config.schedule, progress, lambda: scheduler.stopping)
    scheduler.add("backup", backups.run, backups.last_run())

    # In the order opposite to that of stopping: sources are closed once nothing is committed any more.
    stack.push_async_callback(lambda: asyncio.to_thread(scheduler.stop, active.stop_timeout_s * SCHEDULE_STOP_SHARE))
    stack.push_async_callback(_together, [source.close for source in sources])
    stack.push_async_callback(lambda: pipeline.stop(clock.left_s(PIPELINE_STOP_SHARE)))
    stack.push_async_callback(extraction_queue.stop)
    stack.push_async_callback(extractions.stop)
    stack.push_async_callback(_together, [source.stop for source in sources])
    stack.callback(clock.start)

    ports = MemoryPorts(
        queries=queries,
        documents=documents,
        transfer=TransferService(store, pipeline, scopes, progress),
        extractions=extractions,
        graphs=GraphService(queries),
        sessions=sessions,
        overviews=OverviewService(store, scopes),
        asks=None
        if models.client is None
        else AskService(store, queries, models.client, sessions, unread.note, active.deep),
        judge=None if models.client is None else JudgeService(models.client),
    )
    reported = OpenMemory(
        store,
        pipeline,
        sources,
        encoder.identity.name,
        extractor.name,
        extraction_queue,
        states,
        progress,
        scopes,
        lambda: memory_watch.use,
    )
    return Memory(store, pool, pipeline, extraction_queue, queries, sources, scheduler, ports, reported, memory_watch)


async def _open_store(
    stack: AsyncExitStack, config: Config, lock: StoreLock, opening: OpeningStep, clock: StopClock
) -> tuple[Encoder, Store, int]:
    """The encoder, the store, and how many bytes were held between the two.

    In a thread: loading a model and reading a store take seconds to minutes.
    """
    loop = asyncio.get_running_loop()
    opener = ThreadPoolExecutor(1, thread_name_prefix="open")
    try:
        opening.at(f"loading the encoder {config.encoder.model}")
        encoder = await loop.run_in_executor(opener, load_encoder, config)
        log.info("encoder_loaded", encoder=encoder.identity.name, dim=encoder.identity.dim)
        before = anonymous_bytes()
        rule = SynonymRule(config.graph.synonym_threshold, config.graph.synonym_variants)
        opening.at(f"opening the store {config.store.path}")
        with frozen_objects():
            store = await loop.run_in_executor(opener, Store, config.store.path, encoder.identity, rule, lock)
    finally:
        opener.shutdown(wait=False)
    stack.callback(store.close)
    stack.push_async_callback(lambda: asyncio.to_thread(leave_snapshot, store, clock.until(SNAPSHOT_STOP_SHARE)))
    opening.at(None)
    snapshot = store.snapshot()
    log.info(
        "store_opened",
        commit=snapshot.commit,
        passages=snapshot.living_passages,
        recovered=store.repaired_tables,
        found_format=store.found_format,
        started_from=store.opened_from,
    )
    return encoder, store, before


def leave_snapshot(store: Store, until: float) -> None:
    """Writes down what the next start would have to work out. It must be done by `until` (monotonic), or not at all."""
    began = time.monotonic()
    try:
        if store.write_checkpoint(lambda: time.monotonic() > until):
            log.info("checkpoint_written", took_ms=round((time.monotonic() - began) * 1000))
    except CheckpointTimeout:
        log.info("checkpoint_given_up", took_ms=round((time.monotonic() - began) * 1000))
    except (OSError, RuntimeError) as error:
        # A full disk, say. The tables have everything; the next start takes longer.
        log.warning("checkpoint_failed", error=error)


async def _together(stops: Sequence[Callable[[], Coroutine[object, object, object]]]) -> None:
    await asyncio.gather(*(stop() for stop in stops))
