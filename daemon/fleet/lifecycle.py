"""The life cycle of hippod-worker: load, join the group, process messages, stop.

A separate address serves its `/healthz` and `/metrics`.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

import structlog
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from daemon.api.listen import bind_tcp, bind_unix
from daemon.api.middleware.connection import HttpServerConfig
from daemon.api.server import HttpListener
from daemon.api.settings import ApiLimits
from daemon.config import Config
from daemon.fleet.worker import Worker
from daemon.model_factory import Models, load_encoder, parser_pool
from daemon.observe import metrics
from daemon.pipeline.extraction.extractors import ServerExtractor
from daemon.runtime.service_manager import Notifier
from daemon.runtime.signals_and_exit import handle_signals, start_exit_timer

SOCKET_MODE = 0o660
STOP_TIMEOUT_S = 1.5

log = structlog.get_logger()


class HealthServer:
    """Serves from `start` to `stop`. `/healthz` returns 503 if a part of the worker has failed for good; otherwise 200, with
    the reason if the worker waits."""

    def __init__(self, worker: Worker, listen: str) -> None:
        self._worker = worker
        self._listen = listen
        self._socket = Path(listen) if listen.startswith("/") else None
        app = Starlette(routes=[Route("/healthz", self._health), Route("/metrics", self._metrics)])
        self._listener = HttpListener(HttpServerConfig(app, ApiLimits()))
        self.port: int | None = None
        """The TCP port, after `start`; None on a Unix socket."""

    async def start(self) -> None:
        """Starts serving. Raises ListenError if it cannot listen."""
        if self._socket is not None:
            bound = bind_unix(self._socket, SOCKET_MODE, None)
        else:
            host, _, port = self._listen.rpartition(":")
            bound = bind_tcp(host.strip("[]"), int(port))
            self.port = bound.getsockname()[1]
        await self._listener.begin(bound)

    async def stop(self) -> None:
        await self._listener.end(STOP_TIMEOUT_S)
        if self._socket is not None:
            self._socket.unlink(missing_ok=True)

    async def _health(self, _request: Request) -> Response:
        worker = self._worker
        lags = {f"{topic}/{number}": lag for (topic, number), lag in worker.lags().items()}
        state = "broken" if worker.broken else "waiting" if worker.problem else "ready"
        answer = {"state": state, "problem": worker.problem, "in_flight": worker.in_flight.counts[0], "lag": lags}
        return JSONResponse(answer, 503 if worker.broken else 200)

    async def _metrics(self, _request: Request) -> Response:
        metrics.PARTITION_LAG.clear()
        for (topic, number), lag in self._worker.lags().items():
            metrics.PARTITION_LAG.labels(topic, str(number)).set(lag)
        messages, size = self._worker.in_flight.counts
        metrics.QUEUE.labels("messages").set(messages)
        metrics.QUEUE_BYTES.labels("messages").set(size)
        return Response(metrics.render(None), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def run(config: Config) -> None:
    """Runs a worker; returns after a clean stop. Raises ListenError or EncoderUnavailable if it cannot start."""
    began = time.monotonic()
    requests, notifier = handle_signals(), Notifier()
    async with AsyncExitStack() as stack:
        section = config.worker
        pool = parser_pool(config.parsing)
        stack.push_async_callback(pool.children.close)
        pool.children.start()
        notifier.status(f"starting: loading the encoder {config.encoder.model}")
        encoder = await asyncio.to_thread(load_encoder, config) if section.encode else None
        models = Models(config)
        stack.push_async_callback(models.close)
        extractor = models.reading_extractor(pool)
        if isinstance(extractor, ServerExtractor):
            extractor.start()
            stack.callback(extractor.stop)
        worker = Worker(section, pool, config.passages.split, extractor, encoder)
        if section.listen is not None:
            health = HealthServer(worker, section.listen)
            await health.start()
            stack.push_async_callback(health.stop)
        stack.push_async_callback(worker.close)
        worker.start()
        notifier.ready(f"reading {', '.join(section.topics)} into {section.output}")
        log.info("worker_ready", took_ms=round((time.monotonic() - began) * 1000), source=section.settings.name)
        await requests.stop.wait()
        log.info("stopping", timeout_s=config.daemon.stop_timeout_s)
        notifier.stopping("stopping: handing the partitions back")
        start_exit_timer(config.daemon.stop_timeout_s, 0)
    log.info("stopped", uptime_s=round(time.monotonic() - began, 1))
