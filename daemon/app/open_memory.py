"""Opens the memory and builds all parts that use it, each registered to be taken down in reverse order."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog

from consumers.splitting import SplitSettings
from daemon.api.event_hub import EventHub
from daemon.api.ports import MemoryPorts
from daemon.app.opened_encoder import keep_passage_prefix, load_opened_encoder, wanted_encoder
from daemon.app.reparse import ProgramWatch, cut_files_anew
from daemon.config import Config
from daemon.config.store_settings import EncoderChoice, choose_encoder
from daemon.costs.ledger import CostLedger
from daemon.model_factory import Models, calibration_for, parser_pool
from daemon.observe.resource_use import anonymous_bytes
from daemon.parser_pool.pool import ParserPool
from daemon.pipeline.document_reader import DocumentReader
from daemon.pipeline.extraction.idle_reextraction import IdleReextraction
from daemon.pipeline.fresh_build import FreshBuild
from daemon.pipeline.pipeline import Pipeline
from daemon.runtime.derived_settings import queue_limits
from daemon.runtime.memory_watch import MemoryWatch
from daemon.runtime.process_tuning import frozen_objects, scale_mmap_threshold
from daemon.runtime.reload import ActiveConfig
from daemon.runtime.scheduler import Scheduler, add_maintenance_jobs
from daemon.runtime.service_manager import Notifier
from daemon.runtime.watchdog import ThreadCheck, extend_start
from daemon.services.answering.ask import AskService
from daemon.services.answering.judging import JudgeService
from daemon.services.answering.sessions import SessionService
from daemon.services.documents.document_service import DocumentService
from daemon.services.documents.document_states import CurrentStates
from daemon.services.documents.unread import UnreadDocuments
from daemon.services.extraction import ExtractionService, extractor_note
from daemon.services.freshness import ClientPositions, Freshness
from daemon.services.graph import GraphService
from daemon.services.passage_languages import LanguageWatch
from daemon.services.progress import ProgressBoard
from daemon.services.query import QueryService
from daemon.services.reencoding import Reencoding
from daemon.services.scopes import ScopeService
from daemon.services.status import Provenance, RunningParts
from daemon.services.transfer import ScheduledBackup, TransferService
from daemon.sources.base import SourceParts
from daemon.sources.registry import SOURCE_KINDS, owners
from memory.types import Encoder
from store.checkpoint.files import CheckpointTimeout
from store.log.log_summary import summary_of_store
from store.log.store_lock import StoreLock
from store.reencode.new_vectors import target_of
from store.store import Store
from store.types import Calibration

PIPELINE_STOP_SHARE, CHECKPOINT_STOP_SHARE, SCHEDULE_STOP_SHARE = 0.6, 0.6, 0.2
"""Maximum shares of `[daemon] stop_timeout_s` for each part; a part rarely takes its full share."""

T = TypeVar("T")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(RunningParts):
    """The memory and all parts that use it. Its tasks are not started yet."""

    pool: ParserPool
    scheduler: Scheduler
    ports: MemoryPorts
    memory_watch: MemoryWatch
    costs: CostLedger
    idle_reextraction: IdleReextraction | None
    """None if `[openie] reextract` is off."""

    def ended_tasks(self) -> list["asyncio.Task[None]"]:
        """Returns the ended tasks of the pipeline and the extraction queue. None of them should end by itself."""
        return [*self.pipeline.ended_tasks(), *self.extraction_queue.ended_tasks()]


class OpeningStep:
    """The present step of opening, which the service manager shows."""

    def __init__(self, notifier: Notifier) -> None:
        self.notifier = notifier
        self.step: str | None = None

    def at(self, step: str | None) -> None:
        self.step = step
        if step is not None:
            self.notifier.status(f"starting: {step}")


class StopClock:
    """The time at which the stop began, and the remaining time."""

    def __init__(self, active: ActiveConfig) -> None:
        self._active = active
        self._began: float | None = None

    def start(self) -> None:
        self._began = time.monotonic()

    def until(self, share: float) -> float:
        """Returns the moment (monotonic) at which `share` of `[daemon] stop_timeout_s` has passed."""
        began = time.monotonic() if self._began is None else self._began
        return began + self._active.stop_timeout_s * share

    def left_s(self, share: float) -> float:
        return max(0.0, self.until(share) - time.monotonic())


async def unless_stopped(
    work: Coroutine[object, object, T], opening: OpeningStep, stop: asyncio.Task[bool]
) -> T | None:
    """Returns the result of `work`, or None if `stop` came first. Extends the service manager's start timeout meanwhile."""
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
    stack: AsyncExitStack,
    active: ActiveConfig,
    lock: StoreLock,
    events: EventHub,
    opening: OpeningStep,
    reencode: bool = False,
) -> Memory:
    """Loads the model, opens the store, and builds the parts. With `reencode`, the store's encoder may be missing."""
    config = active.config
    pool = parser_pool(config.parsing)
    stack.push_async_callback(pool.children.close)
    pool.children.start()
    clock = StopClock(active)
    encoder, choice, store, weak_below, before = await _open_store(stack, config, lock, opening, clock, reencode)
    models = Models(config, store, lambda: active.config)
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
        weak_below=weak_below,
    )
    stack.callback(queries.close)

    worker = models.worker_extractor(pool)
    extraction_queue = models.extraction_queue(store, worker)
    extractor = models.commit_extractor(worker)

    def committed(passages: Sequence[str] = ()) -> None:
        extraction_queue.committed(passages)
        snapshot = store.snapshot()
        languages.check(snapshot)
        scale_mmap_threshold(max(snapshot.n_phrases, snapshot.n_triples))

    languages = LanguageWatch(encoder.identity.name, models.untagged_languages)

    committed()
    split = SplitSettings(config.passages.max_tokens, config.passages.min_tokens)
    await asyncio.to_thread(cut_files_anew, store, split)
    await asyncio.to_thread(keep_passage_prefix, store, encoder)
    reader = DocumentReader(pool, split)
    pipeline = Pipeline(
        store,
        encoder,
        extractor,
        reader,
        events.publish,
        config.parsing.workers,
        queue_limits(config),
        committed,
        queries.asked_recently,
        owners=owners(config.tables),
    )
    programs = ProgramWatch(store, pipeline.content_counts.commit, pool, config.parsing)
    await asyncio.to_thread(programs.check_at_start)
    memory_watch = MemoryWatch(active.memory_limit, before, lambda: store.snapshot().living_passages, pipeline.intake)
    await memory_watch.check()  # the store alone may exceed the limit from the start
    parts = SourceParts(store, pipeline, pool, split)
    sources = [kind.make(table, parts) for kind in SOURCE_KINDS for table in config.tables(kind)]
    progress = ProgressBoard(pipeline.intake, extraction_queue)
    positions = ClientPositions(store.folder)
    unread = UnreadDocuments(store, pipeline, extraction_queue, sources, scopes)
    sessions = SessionService(store, lambda: active.config.retrieval.keep_sessions, scopes)
    scheduler = Scheduler(config.schedule)
    states = partial(CurrentStates, store, pipeline, extraction_queue, partial(scheduler.next_run, "retry"))
    documents = DocumentService(store, pipeline, extraction_queue, states, scopes, positions, sources)
    provenance = Provenance(pipeline.content_counts, models.present_names, extraction_queue.at_once, models.is_outdated)
    extractions = ExtractionService(
        store,
        extraction_queue,
        models.load_bulk_extractor(),
        extractor_note(config.openie.backend),
        models.estimator,
        provenance.left_s,
        models.ledger,
    )
    idle_reextraction = None
    if config.openie.reextract == "idle":
        idle_reextraction = IdleReextraction(
            store,
            pipeline,
            extractor,
            models.is_outdated,
            busy=lambda: bool(len(pipeline.intake) or len(extraction_queue) or queries.asked_recently()),
        )
        progress.list_queue("reextract", "passages", idle_reextraction)
    committer = pipeline.committer

    def switched(encoder: Encoder, calibration: Calibration, since: int) -> None:
        queries.use(encoder, calibration.weak_below, since)
        committer.use(encoder)
        languages.use(encoder.identity.name)

    reencoding = Reencoding(
        store,
        committer,
        progress,
        wanted_encoder(choice),
        switched,
        busy=lambda: queries.asked_recently() or (bool(len(pipeline.intake)) and committer.trouble is None),
    )
    add_maintenance_jobs(
        scheduler,
        store,
        config.store.keep_versions,
        rescans=[source.rescan for source in sources],
        retries=[documents.retry_due, lambda: programs.check(documents.read_again)],
        expire_sessions=sessions.sweep,
    )
    backups = ScheduledBackup(store, lambda: active.config.schedule, progress, lambda: scheduler.stopping)
    scheduler.add("backup", backups.run, last_run=backups.last_run())

    # Registered in reverse order of stopping: sources are closed after the last commit.
    stack.push_async_callback(lambda: asyncio.to_thread(scheduler.stop, active.stop_timeout_s * SCHEDULE_STOP_SHARE))
    stack.push_async_callback(_together, [source.close for source in sources])
    stack.push_async_callback(lambda: pipeline.stop(clock.left_s(PIPELINE_STOP_SHARE)))
    stack.push_async_callback(extraction_queue.stop)
    stack.push_async_callback(extractions.stop)
    stack.push_async_callback(reencoding.stop)
    stack.push_async_callback(_together, [source.stop for source in sources])
    stack.callback(clock.start)

    ports = MemoryPorts(
        queries=queries,
        freshness=Freshness(store, pipeline, scopes, positions, sources),
        documents=documents,
        transfer=TransferService(
            store, pipeline, scopes, progress, FreshBuild(store, reader, worker), pool.check_record_file
        ),
        extractions=extractions,
        reencoding=reencoding,
        graphs=GraphService(queries),
        sessions=sessions,
        asks=None
        if models.client is None
        else AskService(store, queries, models.client, sessions, unread.note, active.deep),
        judge=None if models.judge is None else JudgeService(models.judge),
    )
    return Memory(
        store=store,
        pipeline=pipeline,
        sources=sources,
        reencoding=reencoding,
        openie=extractor.name,
        untagged_languages=models.untagged_languages,
        extraction_queue=extraction_queue,
        states=states,
        progress=progress,
        scopes=scopes,
        memory_use=lambda: memory_watch.use,
        provenance=provenance,
        pool=pool,
        scheduler=scheduler,
        ports=ports,
        memory_watch=memory_watch,
        costs=models.ledger,
        idle_reextraction=idle_reextraction,
    )


async def _open_store(
    stack: AsyncExitStack, config: Config, lock: StoreLock, opening: OpeningStep, clock: StopClock, reencode: bool
) -> tuple[Encoder, EncoderChoice, Store, float | None, int]:
    """Returns (encoder of the store's vectors, choice between this encoder and the configured one, store, cosine below which a
    match is weak, bytes in use before the store is opened).

    Runs in a thread, because loading a model and reading a store take seconds to minutes.
    """
    loop = asyncio.get_running_loop()
    opener = ThreadPoolExecutor(1, thread_name_prefix="open")
    try:
        summary = await loop.run_in_executor(opener, summary_of_store, config.store.path)
        choice = choose_encoder(config, summary)
        opening.at(f"loading the encoder {choice.opened.encoder.model}")
        absent_allowed = reencode or target_of(config.store.path) is not None
        loading = loop.run_in_executor(opener, load_opened_encoder, choice, summary, absent_allowed)
        encoder, choice = await loading
        log.info("encoder_loaded", encoder=encoder.identity.name, dim=encoder.identity.dim)
        before = anonymous_bytes()
        calibration = await loop.run_in_executor(opener, calibration_for, encoder, summary)
        opening.at(f"opening the store {config.store.path}")
        with frozen_objects():
            rule = config.synonym_rule(calibration)
            place = config.store.path, encoder.identity
            store = await loop.run_in_executor(opener, Store, *place, rule, lock, calibration)
    finally:
        opener.shutdown(wait=False)
    stack.callback(store.close)
    stack.push_async_callback(
        lambda: asyncio.to_thread(write_last_checkpoint, store, clock.until(CHECKPOINT_STOP_SHARE))
    )
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
    if choice.wanted is not None:
        command = "hippoctl reencode"
        log.warning("encoder_differs", content=choice.content, configured=choice.configured, command=command)
    return encoder, choice, store, calibration.weak_below, before


def write_last_checkpoint(store: Store, until: float) -> None:
    """Writes a checkpoint for the next start; gives up at `until` (monotonic)."""
    began = time.monotonic()
    try:
        if store.write_checkpoint(lambda: time.monotonic() > until):
            log.info("checkpoint_written", took_ms=round((time.monotonic() - began) * 1000))
    except CheckpointTimeout:
        log.info("checkpoint_given_up", took_ms=round((time.monotonic() - began) * 1000))
    except (OSError, RuntimeError) as error:
        # The disk may be full. The tables are complete; the next start takes longer.
        log.warning("checkpoint_failed", error=error)


async def _together(stops: Sequence[Callable[[], Coroutine[object, object, object]]]) -> None:
    await asyncio.gather(*(stop() for stop in stops))
