"""Opens the memory and builds all parts that use it, each registered to be taken down in reverse order."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from typing import TypeVar

import structlog

from daemon.api.event_hub import EventHub
from daemon.api.ports import MemoryPorts
from daemon.app.opened_encoder import configured_encoder, keep_passage_prefix, load_opened_encoder
from daemon.app.reparse import ProgramWatch, cut_files_anew
from daemon.config.store_settings import choose_encoder
from daemon.contract.status import MemoryUse
from daemon.model_factory import Models, calibration_for, parser_pool
from daemon.observe.resource_use import anonymous_bytes
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
from daemon.services.documents.pending_notes import PendingNotes
from daemon.services.extraction import ExtractionService, extractor_note
from daemon.services.freshness import ClientPositions, Freshness
from daemon.services.graph import GraphService
from daemon.services.passage_languages import LanguageWatch
from daemon.services.progress import ProgressBoard
from daemon.services.provenance import Provenance
from daemon.services.query import QueryService
from daemon.services.reencoding import Reencoding
from daemon.services.scheduled_backup import ScheduledBackup
from daemon.services.scopes import ScopeService
from daemon.services.status import RunningParts
from daemon.services.transfer import TransferService
from daemon.sources.registry import SOURCE_KINDS, owners
from memory.types import Encoder
from store.checkpoint.files import CheckpointTimeout
from store.log.store_lock import StoreLock
from store.log.store_summary import summary_of_store
from store.reencode.new_vectors import target_of
from store.store import Store
from store.types import Calibration

PIPELINE_STOP_SHARE, CHECKPOINT_STOP_SHARE, SCHEDULE_STOP_SHARE = 0.6, 0.6, 0.2
"""Maximum shares of `[daemon] stop_timeout_s` for each part; a part rarely takes its full share."""

T = TypeVar("T")
log = structlog.get_logger()


class OpeningStep:
    """The present step of opening, which the service manager shows."""

    def __init__(self, notifier: Notifier) -> None:
        self.notifier = notifier
        self.step: str | None = None

    def at(self, step: str | None) -> None:
        self.step = step
        if step is not None:
            self.notifier.status(f"starting: {step}")


class Memory(RunningParts):
    """The memory and all parts that use it. `open` builds the parts in steps; their tasks are not started yet."""

    def __init__(self, stack: AsyncExitStack, active: ActiveConfig) -> None:
        """`stack` closes the parts in reverse order of their opening."""
        self._stack = stack
        self._active = active
        self._config = active.config
        self._stop_began: float | None = None
        self.split = self._config.passages.split
        self.hard_links = {}

    async def open(self, lock: StoreLock, events: EventHub, opening: OpeningStep, reencode: bool = False) -> "Memory":
        """Loads the encoder, opens the store, and builds the parts. With `reencode`, the store's encoder may be missing."""
        self.pool = parser_pool(self._config.parsing)
        self._stack.push_async_callback(self.pool.children.close)
        self.pool.children.start()
        await self._open_store(lock, opening, reencode)
        self._build_queries()
        await self._build_pipeline(events)
        self._build_services()
        self._schedule_jobs()
        self._register_stop()
        return self

    async def _open_store(self, lock: StoreLock, opening: OpeningStep, reencode: bool) -> None:
        """Runs in a thread, because loading a model and reading a store take seconds to minutes."""
        config, loop = self._config, asyncio.get_running_loop()
        opener = ThreadPoolExecutor(1, thread_name_prefix="open")
        try:
            summary = await loop.run_in_executor(opener, summary_of_store, config.store.path)
            choice = choose_encoder(config, summary)
            opening.at(f"loading the encoder {choice.opened.encoder.model}")
            absent_allowed = reencode or target_of(config.store.path) is not None
            loading = loop.run_in_executor(opener, load_opened_encoder, choice, summary, absent_allowed)
            self._encoder, self._choice = await loading
            identity = self._encoder.identity
            log.info("encoder_loaded", encoder=identity.name, dim=identity.dim)
            self._bytes_before_store = anonymous_bytes()
            self._calibration = await loop.run_in_executor(opener, calibration_for, self._encoder, summary)
            opening.at(f"opening the store {config.store.path}")
            with frozen_objects():
                rule = config.synonym_rule(self._calibration)
                self.store = await loop.run_in_executor(
                    opener, Store, config.store.path, identity, rule, lock, self._calibration
                )
        finally:
            opener.shutdown(wait=False)
        store = self.store
        self._stack.callback(store.close)
        self._stack.push_async_callback(
            lambda: asyncio.to_thread(write_last_checkpoint, store, self._stop_time(CHECKPOINT_STOP_SHARE))
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
        if (choice := self._choice).replacement is not None:
            command = "hippoctl reencode"
            log.warning("encoder_differs", content=choice.content, configured=choice.configured, command=command)

    def _build_queries(self) -> None:
        active, encoder = self._active, self._encoder
        self._models = Models(self._config, self.store, lambda: active.config)
        self._stack.push_async_callback(self._models.close)
        self.costs = self._models.ledger
        self.untagged_languages = self._models.untagged_languages
        self._languages = LanguageWatch(encoder.identity.name, self.untagged_languages)
        self.scopes = ScopeService(self.store, active.labels)
        self._queries = QueryService(
            self.store,
            encoder,
            active.retrieval,
            active.mode,
            self._models.filter,
            active.filtering,
            entities=self._models.entities,
            scopes=self.scopes,
            pending_note=lambda scope: self._pending_notes.note(scope),
            weak_below=self._calibration.weak_below,
        )
        self._stack.callback(self._queries.close)

    async def _build_pipeline(self, events: EventHub) -> None:
        config, store, models = self._config, self.store, self._models
        self._worker = models.worker_extractor(self.pool)
        self.extraction_queue = models.extraction_queue(store, self._worker)
        self._extractor = models.commit_extractor(self._worker)
        self.openie = self._extractor.name
        self._committed()
        await asyncio.to_thread(cut_files_anew, store, self.split)
        await asyncio.to_thread(keep_passage_prefix, store, self._encoder)
        self._reader = DocumentReader(self.pool, self.split)
        self.pipeline = Pipeline(
            store,
            self._encoder,
            self._extractor,
            self._reader,
            events.publish,
            config.parsing.workers,
            queue_limits(config),
            self._committed,
            self._queries.queried_recently,
            owners=owners(config.tables),
        )
        self._programs = ProgramWatch(store, self.pipeline.content_counts.commit, self.pool, config.parsing)
        await asyncio.to_thread(self._programs.check_at_start)
        self.memory_watch = MemoryWatch(
            self._active.memory_limit,
            self._bytes_before_store,
            lambda: store.snapshot().living_passages,
            self.pipeline.intake,
        )
        await self.memory_watch.check()  # the store alone may exceed the limit from the start
        self.sources = [kind.make(table, self) for kind in SOURCE_KINDS for table in config.tables(kind)]

    def _committed(self, passages: Sequence[str] = ()) -> None:
        self.extraction_queue.committed(passages)
        snapshot = self.store.snapshot()
        self._languages.check(snapshot)
        scale_mmap_threshold(max(snapshot.n_phrases, snapshot.n_triples))

    def _build_services(self) -> None:
        config, store, pipeline, models = self._config, self.store, self.pipeline, self._models
        queue, queries, scopes, sources = self.extraction_queue, self._queries, self.scopes, self.sources
        self.progress = ProgressBoard(pipeline.intake, queue)
        self.scheduler = Scheduler(config.schedule)
        self.states = partial(CurrentStates, store, pipeline, queue, partial(self.scheduler.next_run, "retry"))
        self.provenance = Provenance(pipeline.content_counts, models.present_names, queue.at_once, models.is_outdated)
        self.idle_reextraction = None
        if config.openie.reextract == "idle":
            self.idle_reextraction = IdleReextraction(
                store,
                pipeline,
                self._extractor,
                models.is_outdated,
                busy=lambda: bool(len(pipeline.intake) or len(queue) or queries.queried_recently()),
            )
            self.progress.list_queue("reextract", "passages", self.idle_reextraction)
        committer = pipeline.committer
        self.reencoding = Reencoding(
            store,
            committer,
            self.progress,
            configured_encoder(self._choice),
            self._switched,
            busy=lambda: queries.queried_recently() or (bool(len(pipeline.intake)) and committer.trouble is None),
        )
        self._pending_notes = PendingNotes(store, pipeline, queue, sources, scopes)
        positions = ClientPositions(store.folder)
        sessions = SessionService(store, lambda: self._active.config.retrieval.keep_sessions, scopes)
        self.ports = MemoryPorts(
            queries=queries,
            freshness=Freshness(store, pipeline, scopes, positions, sources),
            documents=DocumentService(store, pipeline, queue, self.states, scopes, positions, sources),
            transfer=TransferService(
                store,
                pipeline,
                scopes,
                self.progress,
                FreshBuild(store, self._reader, self._worker),
                self.pool.check_record_file,
            ),
            extractions=ExtractionService(
                store,
                queue,
                models.load_bulk_extractor(),
                extractor_note(config.openie.backend),
                models.estimator,
                self.provenance.left_s,
                models.ledger,
            ),
            reencoding=self.reencoding,
            graphs=GraphService(queries),
            sessions=sessions,
            asks=None
            if models.client is None
            else AskService(store, queries, models.client, sessions, self._pending_notes.note, self._active.deep),
            judge=None if models.judge is None else JudgeService(models.judge),
        )

    def _switched(self, encoder: Encoder, calibration: Calibration, since: int) -> None:
        """Makes all parts use `encoder` from the commit `since` on."""
        self._queries.use(encoder, calibration.weak_below, since)
        self.pipeline.committer.use(encoder)
        self._languages.use(encoder.identity.name)

    def _schedule_jobs(self) -> None:
        documents, scheduler = self.ports.documents, self.scheduler
        add_maintenance_jobs(
            scheduler,
            self.store,
            self._config.store.keep_versions,
            rescans=[source.rescan for source in self.sources],
            retries=[documents.retry_due, lambda: self._programs.check(documents.parse_again)],
            expire_sessions=self.ports.sessions.sweep,
        )
        backups = ScheduledBackup(
            self.store, lambda: self._active.config.schedule, self.progress, lambda: scheduler.stopping
        )
        scheduler.add("backup", backups.run, last_run=backups.last_run())

    def _register_stop(self) -> None:
        """Registers the stops in reverse order: sources are closed after the last commit."""
        push = self._stack.push_async_callback
        push(lambda: asyncio.to_thread(self.scheduler.stop, self._active.stop_timeout_s * SCHEDULE_STOP_SHARE))
        push(_together, [source.close for source in self.sources])
        push(lambda: self.pipeline.stop(max(0.0, self._stop_time(PIPELINE_STOP_SHARE) - time.monotonic())))
        push(self.extraction_queue.stop)
        push(self.ports.extractions.stop)
        push(self.reencoding.stop)
        push(_together, [source.stop for source in self.sources])
        self._stack.callback(self._stop_begins)

    def _stop_begins(self) -> None:
        self._stop_began = time.monotonic()

    def _stop_time(self, share: float) -> float:
        """Returns the monotonic time at which `share` of `[daemon] stop_timeout_s` has passed since the stop began."""
        began = time.monotonic() if self._stop_began is None else self._stop_began
        return began + self._active.stop_timeout_s * share

    @property
    def memory_use(self) -> MemoryUse:
        return self.memory_watch.use

    def ended_tasks(self) -> list["asyncio.Task[None]"]:
        """Returns the ended tasks of the pipeline and the extraction queue. These tasks should never end by themselves."""
        return [*self.pipeline.ended_tasks(), *self.extraction_queue.ended_tasks()]


async def unless_stopped(
    work: Coroutine[object, object, T], opening: OpeningStep, stop: asyncio.Task[bool]
) -> T | None:
    """Returns the result of `work`, or None if `stop` came first. Extends the service manager's start timeout while `work`
    runs."""
    task = asyncio.create_task(work)
    extending = asyncio.create_task(extend_start(opening.notifier, ThreadCheck("open", "open", lambda: opening.step)))
    await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
    extending.cancel()
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.wait([task])
    return None


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
