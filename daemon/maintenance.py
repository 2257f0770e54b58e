"""What is done at intervals: tables compacted, folders compared, failures tried again."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

import structlog

from daemon.allocator import give_back
from daemon.schedule import Schedule
from daemon.services.documents import DocumentService
from daemon.services.folders import FollowedFolder
from store.store import Store

log = structlog.get_logger(__name__)
FRAGMENTS = 64
"""Files from which a table is rewritten as a whole. Those of a few commits are merged by the store itself as they come."""

PURGES = 24
"""How often within `[store] keep_versions` is looked for what nobody needs any more: that reads whole tables."""


def plan_jobs(
    schedule: Schedule,
    store: Store,
    folders: Sequence[FollowedFolder],
    documents: DocumentService,
    keep_versions_s: float,
    sweep: Callable[[], None],
) -> None:
    """Names the jobs of `[schedule]`; `sweep` clears sessions.

    They run in the schedule's threads; call this on the event loop.
    """
    loop = asyncio.get_running_loop()

    def retry() -> None:
        loop.call_soon_threadsafe(documents.retry_due, time.time())

    def rescan() -> None:
        for folder in folders:
            folder.rescan()

    purged = -math.inf

    def compact() -> None:
        nonlocal purged
        store.compact(FRAGMENTS)
        if time.monotonic() - purged >= keep_versions_s / PURGES:
            store.purge(timedelta(seconds=keep_versions_s))
            purged = time.monotonic()
            if store.renew():
                log.info("memory_renewed")
        give_back()
        sweep()

    schedule.add("compact", compact)

    def snapshot() -> None:
        if store.save():
            store.measure()

    schedule.add("snapshot", snapshot)
    schedule.add("rescan", rescan)
    schedule.add("retry", retry)
