"""A run of the daemon: listen, open the memory, follow the sources, serve, stop.

`run` builds all parts in order. Each part is complete once it is built; an exit stack takes the parts down in reverse order.
`status_line` is the line of `systemctl status` about the present work.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from daemon.api.endpoints import Endpoints
from daemon.api.event_hub import EventHub
from daemon.api.listen import inherited_socket
from daemon.api.ports import StartupGate, StartupPorts
from daemon.api.server import ApiServer
from daemon.app.gauges import Gauges
from daemon.app.open_memory import Memory, OpeningStep, unless_stopped
from daemon.config import Config
from daemon.config_types.path_validators import read_token
from daemon.observe import metrics
from daemon.observe.logs import mask
from daemon.page import routes as page_routes
from daemon.page.login import LoginMiddleware
from daemon.pipeline.commit.committer import Committer
from daemon.runtime.derived_settings import api_settings
from daemon.runtime.reload import ActiveConfig, serve_reloads
from daemon.runtime.self_probe import HEALTH_REQUEST, Send, first_query, send_request
from daemon.runtime.service_manager import Notifier, inherited_address
from daemon.runtime.signals_and_exit import handle_signals, start_exit_timer
from daemon.runtime.watchdog import ProbeCheck, ThreadCheck, check_interval_s, watch
from daemon.services.answering.sessions import SessionService
from daemon.services.documents.document_labels import sees
from daemon.services.documents.document_service import DocumentService
from daemon.services.extraction import ExtractionService
from daemon.services.query import QueryService
from daemon.services.reencoding import Reencoding
from daemon.services.status import RunningParts, StatusService
from store.log.store_lock import StoreLock

if TYPE_CHECKING:
    from daemon.mcp.server import McpApp

WELL = ("starting", "scanning", "watching", "joining", "following")
"""States of a source that need no attention; also `polling`, if configured."""
API_STOP_SHARE = 0.3
"""Maximum share of `[daemon] stop_timeout_s` for stopping the API."""
SERVICES: Mapping[str, type] = {
    "documents": DocumentService,
    "extractions": ExtractionService,
    "reencoding": Reencoding,
    "sessions": SessionService,
}

log = structlog.get_logger()


async def run(config: Config, lock: StoreLock, file: Path | None, reencode: bool = False) -> None:
    """Runs the daemon; returns after a clean stop. With `reencode`, also starts a re-encoding, like `hippoctl reencode`.

    Raises StoreError or ListenError if it cannot start.
    """
    began = time.monotonic()
    requests = handle_signals()
    notifier = Notifier()
    async with AsyncExitStack() as stack:
        notifier.status("starting: creating the socket")
        active = ActiveConfig(config, file)
        early = await _listen(stack, active, began)
        async with _announced_stop(early, active, notifier):
            stop = asyncio.create_task(requests.stop.wait())
            opening = OpeningStep(notifier)
            work = Memory(stack, active).open(lock, early.ports.events, opening, reencode)
            memory = await unless_stopped(work, opening, stop)
            if memory is None:
                return
            # Start the pipeline before requests: documents that arrive while the inbox is read would be processed twice.
            memory.pipeline.start()
            memory.extraction_queue.start(memory.pipeline.commit_extractions)
            early.gate.open(memory.ports)
            notifier.status("starting: the first query")
            await first_query(early.send, memory.ports.queries.encoder.remote, stop)
            for source in memory.sources:
                source.start()
            memory.scheduler.start()
            memory.reencoding.resume()
            if reencode:
                _run_in_background(stack, memory.reencoding.begin())
            early.ports.status.ready(memory)
            metrics.at_scrape(Gauges(memory))
            probes = _probes(memory.ports.queries, early.send, check_interval_s(notifier))
            for probe in probes:
                _run_in_background(stack, probe.run())
            status = partial(status_line, memory)
            notifier.ready(status())
            took_ms = round((time.monotonic() - began) * 1000)
            log.info("ready", took_ms=took_ms, documents=sum(memory.store.states().values()))
            permanent = {
                "memory watch": memory.memory_watch.run(),
                "clock": memory.scheduler.follow_clock(),
                "reloads": serve_reloads(requests.reload, active, memory.scheduler, early.api, notifier, status),
            }
            if memory.idle_reextraction is not None:
                permanent["reextraction"] = memory.idle_reextraction.run()
            tasks = [_run_in_background(stack, work, name) for name, work in permanent.items()]

            def ended_tasks() -> list[asyncio.Task[None]]:
                return [*memory.ended_tasks(), *(task for task in tasks if task.done())]

            commits = ThreadCheck("commit", "commit", partial(_commit_step, memory.pipeline.committer))
            await watch(stop, memory.pipeline, ended_tasks, [commits, *probes], notifier, status)


# Before the memory is open.


@dataclass(frozen=True, slots=True)
class _EarlyParts:
    """The parts that answer requests while the memory is still opening."""

    api: ApiServer
    gate: StartupGate
    ports: StartupPorts
    send: Send
    tcp_apps: "dict[str, McpApp]"

    async def stop(self, timeout_s: float) -> None:
        """Refuses new requests and finishes accepted ones while the memory is still open."""
        for app in self.tcp_apps.values():
            await app.stop()
        await self.api.stop(timeout_s)


async def _listen(stack: AsyncExitStack, active: ActiveConfig, began: float) -> _EarlyParts:
    """Opens the socket (and TCP). `status` and events are answered at once; other requests wait for the memory."""
    config = active.config
    if config.api.token_file is not None:
        mask(read_token(config.api.token_file))
    gate = StartupGate()
    llm = config.llm.model if config.llm.configured else None
    status = StatusService(f"{config.encoder.backend}/{config.encoder.model}", config.openie.backend, llm)
    ports = StartupPorts(status, EventHub(), partial(sees, active.labels))
    inherited = inherited_socket(os.environ)
    address = str(config.api.socket) if inherited is None else inherited_address(inherited, config.api)
    tcp_apps = await _start_mcp(config, address)
    api = ApiServer(
        ports,
        gate,
        api_settings(config),
        inherited,
        more_routes=[page_routes.add_routes, add_service_routes],
        tcp_middleware=[LoginMiddleware],
        tcp_apps=tcp_apps,
    )
    await api.start()
    stack.callback(lambda: log.info("stopped", uptime_s=round(time.monotonic() - began, 1)))
    return _EarlyParts(api, gate, ports, partial(send_request, address), tcp_apps)


async def _start_mcp(config: Config, socket: str) -> "dict[str, McpApp]":
    """Returns the MCP server by its path on TCP; {} without TCP. The server sends its requests to hippod's own `socket`."""
    if config.api.tcp is None:
        return {}
    from daemon.mcp.server import MCP_PATH, McpApp  # the SDK takes 30 MB, so it is loaded only if used

    app = McpApp(socket, write=config.mcp.write)
    await app.start()
    return {MCP_PATH: app}


@asynccontextmanager
async def _announced_stop(early: _EarlyParts, active: ActiveConfig, notifier: Notifier) -> AsyncIterator[None]:
    """On exit, for any reason, announces the stop to clients and the service manager, and starts the stop timer."""
    code = 1
    try:
        yield
        code = 0
    finally:
        early.ports.status.stop()
        timeout_s = active.stop_timeout_s
        notifier.stopping("stopping: finishing the present commit")
        notifier.extend_timeout(timeout_s + 5)
        log.info("stopping", timeout_s=timeout_s)
        start_exit_timer(timeout_s, code)
        early.gate.give_up()
        # Stop requests before closing the parts that they need: a running query would lose its threads.
        await early.stop(timeout_s * API_STOP_SHARE)


# While the daemon runs.


def _run_in_background(
    stack: AsyncExitStack, work: Coroutine[object, object, None], name: str | None = None
) -> asyncio.Task[None]:
    """Runs `work` until the daemon stops."""
    task = asyncio.create_task(work, name=name)
    stack.callback(task.cancel)
    return task


def _probes(queries: QueryService, send: Send, pause_s: float) -> list[ProbeCheck]:
    """Returns probes of the socket and the query threads. Threads that wait for an embedding server cannot be probed."""

    async def queries_move() -> None:
        if not queries.encoder.remote:
            await queries.moves()

    return [
        ProbeCheck("api", partial(send, HEALTH_REQUEST), pause_s),
        ProbeCheck("queries", queries_move, pause_s),
    ]


def _commit_step(committer: Committer) -> object | None:
    """Returns the commit thread's step; None while it is idle or waits for a server, which has its own time limit."""
    step = committer.step
    return None if step is not None and step[0] == "encode" and committer.encoder.remote else step


def add_service_routes(endpoints: Endpoints) -> None:
    for port, service in SERVICES.items():
        endpoints.add_service(port, service)


def status_line(memory: RunningParts) -> str:
    """Returns the present work, most urgent first, without content of documents.

    Uses counters only, because it is called every few seconds.
    """
    committer, extraction_queue = memory.pipeline.committer, memory.extraction_queue
    waiting = len(memory.pipeline.intake)
    parts = []
    if committer.trouble is not None:
        what = "cannot encode" if committer.trouble.event == "encoder_unreachable" else "cannot commit"
        parts.append(f"{what}, trying again: {committer.trouble.loggable[:200]}")
    if memory.paused is not None:
        parts.append(memory.paused)
    if waiting:
        step = f" (step: {committer.step[0]})" if committer.step is not None else ""
        parts.append(f"indexing, {count(waiting, 'document')} pending{step}")
    if len(extraction_queue):
        waits_for = extraction_queue.waits_for
        why = f": {waits_for.loggable[:200]}" if waits_for is not None else ""
        verb = "waits" if len(extraction_queue) == 1 else "wait"
        parts.append(f"{count(len(extraction_queue), 'passage')} {verb} for the model{why}")
    for source in memory.sources:
        status = source.status(0)
        detail = getattr(status, "detail", None)
        if status.state not in WELL and (status.state != "polling" or detail):
            parts.append(
                f"{status.kind} {status.name} is {status.state}" + (f" ({str(detail)[:100]})" if detail else "")
            )
    snapshot = memory.store.snapshot()
    holds = f"{count(snapshot.living_passages, 'passage')}, following {count(len(memory.sources), 'source')}"
    parts.append(f"{'' if parts else 'up to date '}at commit {snapshot.commit}: {holds}")
    return "; ".join(parts)


def count(number: int, thing: str) -> str:
    """Formats a count: `1 passage`, `2 passages`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
