"""One life of the daemon: open, follow, serve, stop."""

import asyncio
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from consumers.parsing import Limits
from consumers.splitting import SplitSettings
from daemon.api.hub import EventHub
from daemon.api.ports import Ports
from daemon.api.server import ApiServer
from daemon.api.settings import ApiSettings
from daemon.api.settings import Limits as ApiLimits
from daemon.config import Config, ConfigError, diff_reload, load_config, read_token, unsupported
from daemon.logs import mask, set_level
from daemon.maintenance import plan_jobs
from daemon.models import Models, server_encoder
from daemon.notify import Notifier
from daemon.pipeline.backlog import Backlog
from daemon.pipeline.extraction import Later as LaterExtraction
from daemon.pipeline.extraction import RulesInWorkers
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.reading import Followed, Reader
from daemon.schedule import Schedule
from daemon.services.asks import AskService
from daemon.services.documents import DocumentService
from daemon.services.extractions import ExtractionService
from daemon.services.folders import FollowedFolder
from daemon.services.graph import GraphService
from daemon.services.later import Later
from daemon.services.progress import Memory, ProgressService, Source
from daemon.services.queries import QueryService
from daemon.services.sessions import SessionService
from daemon.services.transfer import TransferService
from daemon.workers import WorkerPool
from memory.encoder import make_encoder
from memory.openie.rules import RulesExtractor
from memory.retrieval import RetrievalSettings
from memory.types import Encoder
from store.lock import StoreLock
from store.plan import SynonymRule
from store.store import Store

SLOW_COMMIT_S = 120.0

if TYPE_CHECKING:
    from daemon.services.kafka import FollowedTopics

LINES_BYTES = 64 * 1024 * 1024
"""JSON lines are parsed as they arrive, so a body of them may be larger than `[api] request_bytes`, up to this."""

log = structlog.get_logger()


class Live:
    """The configuration in force; a reload replaces it."""

    def __init__(self, config: Config, file: Path | None) -> None:
        self.config = config
        self._file = file

    def retrieval(self) -> RetrievalSettings:
        settings = self.config.retrieval
        return RetrievalSettings(**{field.name: getattr(settings, field.name) for field in fields(RetrievalSettings)})

    def mode(self) -> str:
        return self.config.retrieval.mode

    def filtering(self) -> tuple[str, float]:
        """Which filter, and its time limit in seconds."""
        return self.config.retrieval.filter, self.config.retrieval.filter_timeout_s

    def reload(self, schedule: Schedule, api: ApiServer) -> None:
        """Takes over what can change; logs what cannot. A bad file changes nothing."""
        try:
            new = load_config(self._file)
            if problems := unsupported(new):
                raise ConfigError(problems)
        except ConfigError as error:
            log.error("reload_refused", error=str(error))
            return
        live, restart = diff_reload(self.config, new)
        set_level(new.daemon.log_level)
        schedule.reload(new.schedule)
        if new.api.token_file is not None and self.config.api.token_file is not None:
            mask(read_token(new.api.token_file))
            api.use_token_file(new.api.token_file)
        self.config = self.config.model_copy(
            update={
                "retrieval": new.retrieval,
                "schedule": new.schedule,
                "daemon": new.daemon,
                "api": self.config.api.model_copy(update={"token_file": new.api.token_file}),
            }
        )
        log.info("reloaded", changed=live, needs_restart=restart)


async def run(config: Config, lock: StoreLock, file: Path | None) -> None:
    """Returns after a clean stop. Raises StoreError or ListenError where it cannot start."""
    began = time.monotonic()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    notifier = Notifier()
    events = EventHub()
    live = Live(config, file)
    progress = ProgressService(f"{config.encoder.backend}/{config.encoder.model}", config.openie.backend)
    queries, documents, transfer, asks, extractions, graphs, sessions = (Later() for _ in range(7))
    if config.api.token_file is not None:
        mask(read_token(config.api.token_file))
    answering = asks if config.llm.base_url and config.llm.model else None
    ports = Ports(queries, documents, progress, events, transfer, answering, extractions, graphs, sessions)
    api = ApiServer(ports, _api_settings(config))
    await api.start()
    daemon = _Daemon(config, lock, live, events)
    try:
        opening = asyncio.create_task(daemon.open())
        stop = asyncio.create_task(stopping.wait())
        await asyncio.wait([opening, stop], return_when=asyncio.FIRST_COMPLETED)
        if opening.done():
            memory = opening.result()
            queries.become(daemon.queries)
            documents.become(DocumentService(memory.store, memory.pipeline, memory.backlog))
            extractions.become(daemon.extractions)
            assert daemon.sessions is not None
            sessions.become(daemon.sessions)
            if daemon.queries is not None:
                graphs.become(GraphService(memory.store, daemon.queries))
            if daemon.queries is not None and daemon.models.client is not None:
                asks.become(AskService(memory.store, daemon.queries, daemon.models.client, daemon.sessions))
            transfer.become(TransferService(memory.store, memory.pipeline))
            progress.worker_pids = lambda: daemon.pool.pids
            progress.memory = memory
            loop.add_signal_handler(signal.SIGHUP, _reload, live, daemon.schedule, api, notifier)
            await daemon.start()
            notifier.ready(f"following {len(memory.sources)} sources")
            log.info("ready", took_ms=round((time.monotonic() - began) * 1000), documents=len(memory.store.documents()))
            await _watch(stop, memory.pipeline, notifier)
        else:
            opening.cancel()
    finally:
        progress.stopping = True
        notifier.stopping()
        timeout = live.config.daemon.stop_timeout_s
        log.info("stopping", timeout_s=timeout)
        await daemon.stop(timeout * 0.6)
        await api.stop(timeout * 0.3)
        log.info("stopped", uptime_s=round(time.monotonic() - began, 1))


def _reload(live: Live, schedule: Schedule, api: ApiServer, notifier: Notifier) -> None:
    notifier.reloading()
    live.reload(schedule, api)
    notifier.ready()


async def _watch(stop: asyncio.Task[bool], pipeline: Pipeline, notifier: Notifier) -> None:
    """Waits for the stop, feeding the service manager's watchdog while the pipeline and this loop move."""
    interval = notifier.watchdog_interval_s or 5.0
    while not stop.done():
        await asyncio.wait([stop], timeout=interval)
        _complain_if_stuck(pipeline)
        if pipeline.alive():
            notifier.watchdog()
        elif not stop.done():
            log.critical("pipeline_ended", hint="this is a bug; hippod stops so that its supervisor starts it anew")
            raise RuntimeError("the pipeline ended by itself")


def _complain_if_stuck(pipeline: Pipeline) -> None:
    """A batch that takes minutes is slow hardware or a fault; either way somebody must be able to see it."""
    since = pipeline.committer.busy_since
    if since is not None and (waited := time.monotonic() - since) > SLOW_COMMIT_S:
        log.warning("commit_slow", took_ms=round(waited * 1000), pending=len(pipeline.intake))


def _api_settings(config: Config) -> ApiSettings:
    api = config.api
    limits = ApiLimits(
        json_bytes=api.request_bytes, lines_bytes=max(api.request_bytes, LINES_BYTES), queries=api.concurrent_queries
    )
    return ApiSettings(api.socket, api.mode_bits, api.group, api.tcp_address, api.token_file, limits)


class _Daemon:
    """What is opened at start and closed at stop, in order."""

    def __init__(self, config: Config, lock: StoreLock, live: Live, events: EventHub) -> None:
        self._config = config
        self._lock = lock
        self._live = live
        self._events = events
        self.pool = WorkerPool(
            config.parsing.workers,
            config.parsing.memory_bytes,
            config.parsing.time_limit_s,
            limits=Limits(),
        )
        self.schedule = Schedule(config.schedule)
        self.folders: list[FollowedFolder] = []
        self.topics: list[FollowedTopics] = []
        self.queries: QueryService | None = None
        self.sessions: SessionService | None = None
        self.models = Models(config)
        self.extractions: ExtractionService | None = None
        self._backlog: Backlog | None = None
        self._pipeline: Pipeline | None = None
        self._store: Store | None = None

    async def open(self) -> Memory:
        """Loads the model, opens the store, and puts the parts together; nothing runs yet."""
        config = self._config
        self.pool.start()
        with ThreadPoolExecutor(1, thread_name_prefix="open") as opener:
            loop = asyncio.get_running_loop()
            encoder: Encoder = await loop.run_in_executor(opener, _encoder, config)
            log.info("encoder_loaded", encoder=encoder.identity.name, dim=encoder.identity.dim)
            rule = SynonymRule(config.graph.synonym_threshold, config.graph.synonym_max)
            store = self._store = await loop.run_in_executor(
                opener, Store, config.store.path, encoder.identity, rule, self._lock
            )
        snapshot = store.snapshot()
        log.info(
            "store_opened",
            commit=snapshot.commit,
            passages=snapshot.living_passages,
            recovered=store.recovered,
            started_from=store.started,
        )
        rules = RulesInWorkers(self.pool, RulesExtractor.name)
        name = self.models.extraction_name(RulesExtractor.name)
        extractor = self.models.at_commit(rules, name)
        follows = {str(each.path): Followed(os.fsencode(each.path), each.follow_symlinks) for each in config.folder}
        split = SplitSettings(config.passages.max_tokens, config.passages.min_tokens)
        reader = Reader(self.pool, split, follows.get)
        pipeline = self._pipeline = Pipeline(
            store, encoder, extractor, reader, self._events.publish, readers=config.parsing.workers
        )
        backlog = self._backlog = self.models.backlog(store, rules, name, pipeline.learn)
        pipeline.on_commit = backlog.committed
        if isinstance(extractor, LaterExtraction):
            extractor.announce = backlog.announce
        self.extractions = ExtractionService(store, backlog, self.models.bulk())
        positions = store.positions
        self.folders = [FollowedFolder(folder, pipeline, positions) for folder in config.folder]
        if config.kafka:
            from daemon.services.kafka import FollowedTopics  # the client is loaded where topics are followed

            self.topics = [FollowedTopics(kafka, store, pipeline, self.pool, split) for kafka in config.kafka]
        self.queries = QueryService(
            store, encoder, self._live.retrieval, self._live.mode, self.models.filter, self._live.filtering
        )
        self.sessions = SessionService(store, lambda: self._live.config.retrieval.keep_sessions)
        sources: list[Source] = [*self.folders, *self.topics]
        return Memory(store, pipeline, sources, encoder.identity.name, extractor.name, backlog)

    async def start(self) -> None:
        """Sets everything going."""
        assert self._pipeline is not None
        assert self._store is not None
        assert self._backlog is not None
        assert self.sessions is not None
        self._pipeline.start()
        self._backlog.start()
        for folder in self.folders:
            folder.start()
        for topics in self.topics:
            topics.start()
        retry = DocumentService(self._store, self._pipeline, self._backlog)
        plan_jobs(
            self.schedule, self._store, self.folders, retry, self._config.store.keep_versions, self.sessions.sweep
        )
        self.schedule.start()

    async def stop(self, timeout_s: float) -> None:
        """Takes no new work, lets the commit under way finish, closes the store."""
        await asyncio.gather(*(asyncio.to_thread(folder.stop) for folder in self.folders))
        if self.extractions is not None:
            await self.extractions.stop()
        if self._backlog is not None:
            await self._backlog.stop()
        if self._pipeline is not None:
            await self._pipeline.stop(timeout_s)
        await asyncio.gather(*(topics.stop() for topics in self.topics))
        await asyncio.to_thread(self.schedule.stop, timeout_s / 3)
        await self.pool.close()
        if self.queries is not None:
            self.queries.close()
        await self.models.close()
        if self._store is not None:
            self._store.close()


def _encoder(config: Config) -> Encoder:
    encoder = config.encoder
    if encoder.backend == "openai":
        return server_encoder(config)
    return make_encoder(encoder.backend, encoder.model, encoder.batch_size, encoder.device)
