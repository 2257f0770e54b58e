"""One life of the daemon: listen, open the memory, follow the sources, serve, stop.

`run` builds everything in order; each part is complete once it is made, and an exit stack takes the parts down in reverse.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import structlog

from consumers.parsing import Limits
from consumers.splitting import SplitSettings
from daemon.api.event_hub import EventHub
from daemon.api.listen import inherited_socket
from daemon.api.ports import MemoryPorts, StartupPorts
from daemon.api.server import ApiServer
from daemon.api.startup_gate import StartupGate
from daemon.config import Config, read_token
from daemon.model_factory import Models, load_encoder
from daemon.observe import metrics
from daemon.observe.gauges import Gauges
from daemon.observe.languages import LanguageWatch
from daemon.observe.logs import mask
from daemon.observe.status_line import status_line
from daemon.pipeline.committer import Committer
from daemon.pipeline.document_reader import DocumentReader
from daemon.pipeline.extraction_queue import ExtractionQueue
from daemon.pipeline.pipeline import Pipeline
from daemon.runtime import signals
from daemon.runtime.allocator import scale_mmap_threshold
from daemon.runtime.force_exit import start_exit_timer
from daemon.runtime.gc import frozen_objects
from daemon.runtime.limits import api_settings, queue_limits
from daemon.runtime.own_socket import HEALTH_REQUEST, Send, first_query, send_request
from daemon.runtime.reload import ActiveConfig, serve_reloads
from daemon.runtime.scheduler import Scheduler, add_maintenance_jobs
from daemon.runtime.sd_notify import Notifier
from daemon.runtime.socket_activation import taken_address
from daemon.runtime.watchdog import ProbeCheck, ThreadCheck, check_interval_s, extend_start, watch
from daemon.services.answering.ask import AskService
from daemon.services.answering.sessions import SessionService
from daemon.services.documents import DocumentService
from daemon.services.extraction import ExtractionService
from daemon.services.graph import GraphService
from daemon.services.overview import OverviewService
from daemon.services.query import QueryService
from daemon.services.status import OpenMemory, StatusService
from daemon.services.transfer import TransferService
from daemon.sources.base import Source, SourceParts
from daemon.sources.registry import SOURCE_KINDS
from daemon.workers.pool import WorkerPool
from memory.encoder.registry import BACKENDS as ENCODERS
from memory.types import Encoder
from store.checkpoint.files import CheckpointTimeout
from store.log.store_lock import StoreLock
from store.store import Store
from store.types import SynonymRule

if TYPE_CHECKING:
    from daemon.mcp.http import McpApp

PIPELINE_STOP_SHARE, SNAPSHOT_STOP_SHARE, SCHEDULE_STOP_SHARE, API_STOP_SHARE = 0.6, 0.6, 0.2, 0.3
"""Of `[daemon] stop_timeout_s`, the most that each may take to stop; seldom does one take all of it."""

T = TypeVar("T")
log = structlog.get_logger()


async def run(config: Config, lock: StoreLock, file: Path | None) -> None:
    """Returns after a clean stop. Raises StoreError or ListenError where it cannot start."""
    began = time.monotonic()
    requests = signals.handle()
    notifier = Notifier()
    async with AsyncExitStack() as stack:
        notifier.status("starting: making the socket")
        active = ActiveConfig(config, file)
        front = await _listen(stack, active, began)
        async with _announced_stop(front, active, notifier):
            stop = asyncio.create_task(requests.stop.wait())
            opening = _Opening(notifier)
            memory = await _unless_stopped(_open_memory(stack, active, lock, front.events, opening), opening, stop)
            if memory is None:
                return
            front.gate.open(memory.ports)
            notifier.status("starting: the first query")
            await first_query(front.send, config, stop)
            _start(memory)
            front.progress.ready(memory.reported, lambda: memory.pool.pids)
            metrics.at_scrape(
                Gauges(memory.store, memory.pipeline, memory.extraction_queue, memory.scheduler, memory.sources)
            )
            probes = _probes(memory.queries, config, front.send, check_interval_s(notifier))
            for probe in probes:
                _run_beside(stack, probe.run())
            status = partial(status_line, memory.reported)
            notifier.ready(status())
            took_ms = round((time.monotonic() - began) * 1000)
            log.info("ready", took_ms=took_ms, documents=len(memory.store.documents()))
            _run_beside(stack, serve_reloads(requests.reload, active, memory.scheduler, front.api, notifier, status))
            commits = ThreadCheck("commit", "commit", partial(_commit_step, memory.pipeline.committer, config))
            await watch(stop, memory.pipeline, memory.tasks_alive, [commits, *probes], notifier, status)


# What listens before the memory is open.


@dataclass(frozen=True, slots=True)
class _Front:
    """What answers from the first moment."""

    api: ApiServer
    gate: StartupGate
    events: EventHub
    progress: StatusService
    send: Send


async def _listen(stack: AsyncExitStack, active: ActiveConfig, began: float) -> _Front:
    """Makes the socket (and the TCP side): `status` and events are answered at once, what needs the memory waits."""
    config = active.config
    if config.api.token_file is not None:
        mask(read_token(config.api.token_file))
    events, gate = EventHub(), StartupGate()
    progress = StatusService(f"{config.encoder.backend}/{config.encoder.model}", config.openie.backend)
    given = inherited_socket(os.environ)
    address = str(config.api.socket) if given is None else taken_address(given, config.api)
    tcp_apps = await _start_mcp(config, address)
    api = ApiServer(StartupPorts(progress, events), gate, api_settings(config), given, tcp_apps=tcp_apps)
    await api.start()
    stack.callback(lambda: log.info("stopped", uptime_s=round(time.monotonic() - began, 1)))
    stack.push_async_callback(lambda: api.stop(active.stop_timeout_s * API_STOP_SHARE))
    for app in tcp_apps.values():
        stack.push_async_callback(app.stop)
    return _Front(api, gate, events, progress, partial(send_request, address, owned=given is None))


async def _start_mcp(config: Config, socket: str) -> "dict[str, McpApp]":
    """The MCP server for agents, by its path on TCP; none where TCP is not configured. It calls hippod's own `socket`."""
    if config.api.tcp is None:
        return {}
    from daemon.mcp.http import PATH, McpApp  # the SDK takes 30 MB: it is loaded only where it is used

    app = McpApp(socket, write=config.mcp.write)
    await app.start()
    return {PATH: app}


@asynccontextmanager
async def _announced_stop(front: _Front, active: ActiveConfig, notifier: Notifier) -> AsyncIterator[None]:
    """At its end, whatever ends it, clients and the service manager are told that hippod stops, and the time for it runs."""
    code = 1
    try:
        yield
        code = 0
    finally:
        front.progress.stop()
        timeout_s = active.stop_timeout_s
        notifier.stopping("stopping: finishing the commit under way, handing back what waits")
        notifier.extend_timeout(timeout_s + 5)
        log.info("stopping", timeout_s=timeout_s)
        start_exit_timer(timeout_s, code)
        front.gate.give_up()
        front.api.stopping()


# What needs the store.


@dataclass(frozen=True, slots=True)
class _OpenMemory:
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

    def tasks_alive(self) -> bool:
        return self.pipeline.alive() and self.extraction_queue.alive()


class _Opening:
    """The step that opening is at; the service manager is told of each."""

    def __init__(self, notifier: Notifier) -> None:
        self.notifier = notifier
        self.step: str | None = None

    def at(self, step: str | None) -> None:
        self.step = step
        if step is not None:
            self.notifier.status(f"starting: {step}")


class _StopClock:
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


async def _unless_stopped(work: Coroutine[object, object, T], opening: _Opening, stop: asyncio.Task[bool]) -> T | None:
    """What `work` returns, None where hippod was told to stop before. The service manager is asked for time meanwhile."""
    task = asyncio.create_task(work)
    extending = asyncio.create_task(extend_start(opening.notifier, ThreadCheck("open", "open", lambda: opening.step)))
    await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
    extending.cancel()
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.wait([task])
    return None


async def _open_memory(
    stack: AsyncExitStack, active: ActiveConfig, lock: StoreLock, events: EventHub, opening: _Opening
) -> _OpenMemory:
    """Loads the model, opens the store, and puts the parts together."""
    config = active.config
    pool = WorkerPool(config.parsing.workers, config.parsing.memory_bytes, config.parsing.time_limit_s, limits=Limits())
    stack.push_async_callback(pool.close)
    pool.start()
    clock = _StopClock(active)
    encoder, store = await _open_store(stack, config, lock, opening, clock)
    models = Models(config)
    stack.push_async_callback(models.close)
    queries = QueryService(store, encoder, active.retrieval, active.mode, models.filter, active.filtering)
    stack.callback(queries.close)

    worker = models.worker_extractor(pool)
    extraction_queue = models.extraction_queue(store, worker)
    extractor = models.commit_extractor(worker, extraction_queue)

    def committed(passages: Sequence[str] = ()) -> None:
        extraction_queue.committed(passages)
        snapshot = store.snapshot()
        languages.look(snapshot)
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
    )
    parts = SourceParts(store, pipeline, pool, split)
    sources = [kind.make(table, parts) for kind in SOURCE_KINDS for table in config.tables(kind)]
    sessions = SessionService(store, lambda: active.config.retrieval.keep_sessions)
    documents = DocumentService(store, pipeline, extraction_queue)
    extractions = ExtractionService(store, extraction_queue, models.load_bulk_extractor())
    scheduler = Scheduler(config.schedule)
    add_maintenance_jobs(
        scheduler,
        store,
        config.store.keep_versions,
        rescans=[source.rescan for source in sources],
        retry_due=documents.retry_due,
        expire_sessions=sessions.sweep,
    )

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
        transfer=TransferService(store, pipeline),
        extractions=extractions,
        graphs=GraphService(queries),
        sessions=sessions,
        overviews=OverviewService(store),
        asks=None if models.client is None else AskService(store, queries, models.client, sessions),
    )
    reported = OpenMemory(store, pipeline, sources, encoder.identity.name, extractor.name, extraction_queue)
    return _OpenMemory(store, pool, pipeline, extraction_queue, queries, sources, scheduler, ports, reported)


async def _open_store(
    stack: AsyncExitStack, config: Config, lock: StoreLock, opening: _Opening, clock: _StopClock
) -> tuple[Encoder, Store]:
    """In a thread: loading a model and reading a store take seconds to minutes."""
    loop = asyncio.get_running_loop()
    opener = ThreadPoolExecutor(1, thread_name_prefix="open")
    try:
        opening.at(f"loading the encoder {config.encoder.model}")
        encoder = await loop.run_in_executor(opener, load_encoder, config)
        log.info("encoder_loaded", encoder=encoder.identity.name, dim=encoder.identity.dim)
        rule = SynonymRule(config.graph.synonym_threshold, config.graph.synonym_max)
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
    return encoder, store


def leave_snapshot(store: Store, until: float) -> None:
    """Writes down what the next start would have to work out. It must be done by `until` (monotonic), or not at all."""
    began = time.monotonic()
    try:
        if store.write_checkpoint(lambda: time.monotonic() > until):
            log.info("snapshot_left", took_ms=round((time.monotonic() - began) * 1000))
    except CheckpointTimeout:
        log.info("snapshot_given_up", took_ms=round((time.monotonic() - began) * 1000))
    except (OSError, RuntimeError) as error:
        # A full disk, say. The tables have everything; the next start takes longer.
        log.warning("snapshot_failed", error=error)


async def _together(stops: Sequence[Callable[[], Coroutine[object, object, object]]]) -> None:
    await asyncio.gather(*(stop() for stop in stops))


# What runs.


def _start(memory: _OpenMemory) -> None:
    """Sets everything going, the sources last but for the scheduler."""
    memory.pipeline.start()
    memory.extraction_queue.start(memory.pipeline.commit_extractions)
    for source in memory.sources:
        source.start()
    memory.scheduler.start()


def _run_beside(stack: AsyncExitStack, work: Coroutine[object, object, None]) -> None:
    """Runs `work` until the daemon stops."""
    stack.callback(asyncio.create_task(work).cancel)


def _probes(queries: QueryService, config: Config, send: Send, pause_s: float) -> list[ProbeCheck]:
    """The socket and the query threads. Threads that wait for a server's embeddings prove nothing, so they are not probed."""
    probes = [ProbeCheck("api", partial(send, HEALTH_REQUEST), pause_s)]
    if not ENCODERS[config.encoder.backend].needs_server:
        probes.append(ProbeCheck("queries", queries.moves, pause_s))
    return probes


def _commit_step(committer: Committer, config: Config) -> object | None:
    """What the commit thread works at; None while it rests, or waits for a server, which has a time limit of its own."""
    step = committer.step
    return None if step is not None and step[0] == "encode" and ENCODERS[config.encoder.backend].needs_server else step
