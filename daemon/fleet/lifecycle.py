"""The life cycle of hippod-worker: load, join the group, process messages, stop."""

import asyncio
import time
from contextlib import AsyncExitStack

import structlog

from consumers.splitting import SplitSettings
from daemon.config import Config
from daemon.fleet.health import HealthServer
from daemon.fleet.worker import Worker
from daemon.model_factory import Models, load_encoder, parser_pool
from daemon.pipeline.extraction.server_extractor import ServerExtractor
from daemon.runtime import signals
from daemon.runtime.force_exit import start_exit_timer
from daemon.runtime.sd_notify import Notifier

log = structlog.get_logger()


async def run(config: Config) -> None:
    """Runs a worker; returns after a clean stop. Raises ListenError or EncoderUnavailable if it cannot start."""
    began = time.monotonic()
    requests, notifier = signals.handle(), Notifier()
    async with AsyncExitStack() as stack:
        section = config.worker
        pool = parser_pool(config.parsing)
        stack.push_async_callback(pool.close)
        pool.start()
        notifier.status(f"starting: loading the encoder {config.encoder.model}")
        encoder = await asyncio.to_thread(load_encoder, config) if section.encode else None
        models = Models(config)
        stack.push_async_callback(models.close)
        extractor = models.reading_extractor(pool)
        if isinstance(extractor, ServerExtractor):
            extractor.start()
            stack.callback(extractor.stop)
        split = SplitSettings(config.passages.max_tokens, config.passages.min_tokens)
        worker = Worker(section, pool, split, extractor, encoder)
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
