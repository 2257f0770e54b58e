"""One life of the daemon: open, follow, serve, stop."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from consumers.parsing import Limits
from consumers.splitting import SplitSettings
from daemon import metrics
from daemon.activation import taken_address
from daemon.allocator import fit
from daemon.api.hub import EventHub
from daemon.api.listen import inherited
from daemon.api.ports import Asks, Documents, Extractions, Graphs, Overviews, Ports, Queries, SessionKeeping, Transfer
from daemon.api.server import ApiServer
from daemon.config import Config, read_token
from daemon.contract import Filter, Mode, QueryRequest, Route
from daemon.gauges import Gauges
from daemon.interpreter import lasting
from daemon.last_resort import arm
from daemon.limits import api_settings, queue_limits
from daemon.liveness import HEALTH, Liveness, Part, Probe, Thread, answers
from daemon.logs import mask
from daemon.maintenance import plan_jobs
from daemon.mcp import mounted
from daemon.models import Models, server_encoder
from daemon.notify import Notifier
from daemon.pipeline.backlog import Backlog
from daemon.pipeline.committer import Committer
from daemon.pipeline.extraction import Later as LaterExtraction
from daemon.pipeline.extraction import RulesInWorkers
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.reading import Followed, Reader
from daemon.reloading import Live, Reloads
from daemon.schedule import Schedule
from daemon.services.asks import AskService
from daemon.services.documents import DocumentService
from daemon.services.extractions import ExtractionService
from daemon.services.folders import FollowedFolder
from daemon.services.graph import GraphService
from daemon.services.later import Later, Opening
from daemon.services.overview import OverviewService
from daemon.services.progress import Memory, ProgressService, Source
from daemon.services.queries import QueryService
from daemon.services.sessions import SessionService
from daemon.services.transfer import TransferService
from daemon.standing import standing
from daemon.watch import ask_for_time, still_s, tick_s, watch
from daemon.workers import WorkerPool
from memory.encoder import make_encoder
from memory.openie.rules import RulesExtractor
from memory.types import Encoder
from store.lock import StoreLock
from store.plan import SynonymRule
from store.store import Store

if TYPE_CHECKING:
    from daemon.services.kafka import FollowedTopics

Reach = Callable[[bytes], Awaitable[int | None]]
"""Sends a request to hippod's own socket; the status of the answer, None where nothing can be said."""

log = structlog.get_logger()


async def run(config: Config, lock: StoreLock, file: Path | None) -> None:
    """Returns after a clean stop. Raises StoreError or ListenError where it cannot start."""
    began = time.monotonic()
    stopping = asyncio.Event()
    reloads = Reloads()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    loop.add_signal_handler(signal.SIGHUP, reloads.ask)
    notifier = Notifier()
    notifier.status("starting: making the socket")
    events = EventHub()
    live = Live(config, file)
    progress = ProgressService(f"{config.encoder.backend}/{config.encoder.model}", config.openie.backend)
    opening = Opening()
    queries, documents, transfer = Later(opening, Queries), Later(opening, Documents), Later(opening, Transfer)
    asks, extractions, graphs = Later(opening, Asks), Later(opening, Extractions), Later(opening, Graphs)
    sessions, overviews = Later(opening, SessionKeeping), Later(opening, Overviews)
    if config.api.token_file is not None:
        mask(read_token(config.api.token_file))
    answering = asks if config.llm.base_url and config.llm.model else None
    ports = Ports(queries, documents, progress, events, transfer, answering, extractions, graphs, sessions, overviews)
    given = inherited(os.environ)
    address = str(config.api.socket) if given is None else taken_address(given, config.api)
    agents = await mounted(config, address)
    reach = partial(answers, address, ours=given is None)
    api = ApiServer(ports, api_settings(config), given, tcp_apps=agents)
    await api.start()
    daemon = _Daemon(config, lock, live, events, notifier)
    beside: list[asyncio.Task[None]] = []
    code = 1
    try:
        stop = asyncio.create_task(stopping.wait())
        memory = await _opened(daemon, stop, notifier)
        if memory is not None:
            assert daemon.queries is not None
            queries.become(daemon.queries)
            documents.become(DocumentService(memory.store, memory.pipeline, memory.backlog))
            extractions.become(daemon.extractions)
            assert daemon.sessions is not None
            sessions.become(daemon.sessions)
            graphs.become(GraphService(daemon.queries))
            overviews.become(OverviewService(memory.store))
            if daemon.models.client is not None:
                asks.become(AskService(memory.store, daemon.queries, daemon.models.client, daemon.sessions))
            transfer.become(TransferService(memory.store, memory.pipeline))
            opening.finished()
            notifier.status("starting: the first query")
            await _first_query(reach, config, stop)
            progress.worker_pids = lambda: daemon.pool.pids
            progress.memory = memory
            metrics.at_scrape(Gauges(memory.store, memory.pipeline, memory.backlog, daemon.schedule, daemon.topics))
            await daemon.start()
            probes = _probes(daemon.queries, config, reach, tick_s(notifier))
            beside = [asyncio.create_task(probe.run()) for probe in probes]
            doing = partial(standing, memory)
            notifier.ready(doing())
            log.info("ready", took_ms=round((time.monotonic() - began) * 1000), documents=len(memory.store.documents()))
            beside.append(asyncio.create_task(reloads.run(live, daemon.schedule, api, notifier, doing)))
            parts: list[Part] = [Thread("commit", "commit", partial(_step, memory.pipeline.committer, config)), *probes]
            await watch(stop, memory.pipeline, notifier, Liveness(parts, still_s(notifier)), doing)
        code = 0
    finally:
        progress.stopping = True
        timeout = live.config.daemon.stop_timeout_s
        notifier.stopping("stopping: finishing the commit under way, handing back what waits")
        notifier.extend_timeout(timeout + 5)
        log.info("stopping", timeout_s=timeout)
        arm(timeout, code)
        opening.given_up()
        api.stopping()
        for task in beside:
            task.cancel()
        await daemon.stop(timeout * 0.6)
        await asyncio.gather(*(mount.stop() for mount in agents.values()))
        await api.stop(timeout * 0.3)
        log.info("stopped", uptime_s=round(time.monotonic() - began, 1))


async def _opened(daemon: "_Daemon", stop: asyncio.Task[bool], notifier: Notifier) -> Memory | None:
    """The memory, None where hippod was told to stop before it was open."""
    opening = asyncio.create_task(daemon.open())
    patience = asyncio.create_task(ask_for_time(notifier, Thread("open", "open", lambda: daemon.opening)))
    await asyncio.wait([opening, stop], return_when=asyncio.FIRST_COMPLETED)
    patience.cancel()
    if opening.done():
        return opening.result()
    opening.cancel()
    await asyncio.wait([opening])
    return None


async def _first_query(reach: Reach, config: Config, stop: asyncio.Task[bool]) -> None:
    """Shows that queries are answered on the socket, and has the encoder make ready what only its first text does.

    A server's embeddings were asked for when it was opened and may be away: then names and words are what can be asked.
    """
    mode = Mode.BM25 if config.encoder.backend == "openai" else None
    body = QueryRequest(query="what is there", k=1, mode=mode, filter=Filter.NONE).model_dump_json(exclude_none=True)
    head = f"POST {Route.QUERY} HTTP/1.1\r\nHost: hippod\r\nConnection: close\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    while not stop.done():
        status = await reach(request)
        if status in (200, None):
            return
        if status != 503:  # 503: those who waited take all places, and come first
            raise RuntimeError(f"the first query was answered with {status}; see the log")
        await asyncio.wait([stop], timeout=0.1)


def _probes(queries: QueryService, config: Config, reach: Reach, pause_s: float) -> list[Probe]:
    """What is asked while hippod serves. Threads that wait for a server's embeddings are no sign of anything."""
    probes = [Probe("api", partial(reach, HEALTH), pause_s)]
    return probes if config.encoder.backend == "openai" else [*probes, Probe("queries", queries.moves, pause_s)]


def _step(committer: Committer, config: Config) -> object | None:
    """What the commit thread is at, None where it rests or waits for a server, which has a time limit of its own."""
    step = committer.step
    return None if step is not None and step[0] == "encode" and config.encoder.backend == "openai" else step


class _Daemon:
    """What is opened at start and closed at stop, in order."""

    def __init__(self, config: Config, lock: StoreLock, live: Live, events: EventHub, notifier: Notifier) -> None:
        self._config = config
        self._notifier = notifier
        self.opening: str | None = None
        """What opening is at."""
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
        loop = asyncio.get_running_loop()
        opener = ThreadPoolExecutor(1, thread_name_prefix="open")
        try:
            self._at(f"loading the encoder {config.encoder.model}")
            encoder: Encoder = await loop.run_in_executor(opener, _encoder, config)
            log.info("encoder_loaded", encoder=encoder.identity.name, dim=encoder.identity.dim)
            rule = SynonymRule(config.graph.synonym_threshold, config.graph.synonym_max)
            self._at(f"opening the store {config.store.path}")
            with lasting():
                store = self._store = await loop.run_in_executor(
                    opener, Store, config.store.path, encoder.identity, rule, self._lock
                )
        finally:
            opener.shutdown(wait=False)
        self._at(None)
        snapshot = store.snapshot()
        log.info(
            "store_opened",
            commit=snapshot.commit,
            passages=snapshot.living_passages,
            recovered=store.recovered,
            found_format=store.found_format,
            started_from=store.started,
        )
        rules = RulesInWorkers(self.pool, RulesExtractor.name)
        name = self.models.extraction_name(RulesExtractor.name)
        extractor = self.models.at_commit(rules, name)
        follows = {str(each.path): Followed(os.fsencode(each.path), each.follow_symlinks) for each in config.folder}
        split = SplitSettings(config.passages.max_tokens, config.passages.min_tokens)
        reader = Reader(self.pool, split, follows.get)
        pipeline = self._pipeline = Pipeline(
            store, encoder, extractor, reader, self._events.publish, config.parsing.workers, queue_limits(config)
        )
        backlog = self._backlog = self.models.backlog(store, rules, name, pipeline.learn)

        def committed(held: Sequence[str] = ()) -> None:
            backlog.committed(held)
            now = store.snapshot()
            fit(max(now.n_phrases, now.n_triples))

        committed()
        pipeline.on_commit = committed
        pipeline.others_alive = backlog.alive
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

    def _at(self, step: str | None) -> None:
        self.opening = step
        if step is not None:
            self._notifier.status(f"starting: {step}")

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
