"""Gauges computed when Prometheus scrapes: queues, sizes on disk, ages. Counters are incremented where the events happen."""

import os
import threading
import time
from pathlib import Path

from daemon.app.open_memory import Memory
from daemon.costs.ledger import FILE as COSTS
from daemon.model_factory import JOURNAL
from daemon.observe import metrics
from daemon.observe.resource_use import bytes_below
from store.checkpoint.files import PREFIX, UNFINISHED, newest
from store.lance.layout import TABLE_SUFFIX
from store.log.write_ahead_log import FOLDER as LOG

SIZE_INTERVAL_S = 30.0
"""Seconds for which measured disk sizes are reused: a large store has thousands of files."""

STORE_PARTS = {LOG: "log", "inbox": "inbox", JOURNAL: "paid answers", COSTS: "costs"}


class Gauges:
    """Updates the gauges. Called at each scrape, in any thread."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._store = memory.store
        self._sized_at = -SIZE_INTERVAL_S
        self._sizing = threading.Lock()

    def __call__(self) -> None:
        self._queues()
        self._jobs()
        self._model_costs()
        self._checkpoint()
        with self._sizing:
            if time.monotonic() - self._sized_at >= SIZE_INTERVAL_S:
                self._sizes()
                self._sized_at = time.monotonic()

    def _queues(self) -> None:
        pipeline, waiting = self._memory.pipeline, self._memory.extraction_queue
        inbox, room = pipeline.inbox.capacity, pipeline.committer.queue.room.values()
        ready = sum(lane.items for lane in room), sum(lane.bytes for lane in room)
        limits = sum(lane.limits[0] for lane in room), sum(lane.limits[1] for lane in room)
        queues = {"inbox": ((inbox.items, inbox.bytes), inbox.limits), "ready": (ready, limits)}
        for source in self._memory.sources:
            if (usage := source.usage()) is not None:
                queues[f"{source.kind} {source.name}"] = usage
        for name, (used, limits) in queues.items():
            metrics.QUEUE.labels(name).set(used[0])
            metrics.QUEUE_BYTES.labels(name).set(used[1])
            metrics.QUEUE_LIMIT.labels(name).set(limits[0])
            metrics.QUEUE_LIMIT_BYTES.labels(name).set(limits[1])
        metrics.QUEUE.labels("intake").set(len(pipeline.intake))
        metrics.QUEUE.labels("extraction").set(len(waiting))
        metrics.WAITING.set(len(waiting))
        # If the queue is empty, the outage is over or concerned a single passage.
        metrics.MODEL_DOWN.set(waiting.model.current is not None and len(waiting) > 0)
        metrics.SCOPES.set(self._store.scopes.count)
        metrics.SCOPE_BYTES.set(self._store.scopes.bytes)
        metrics.PAST_COMMITS.set(self._store.past_count)
        metrics.PAST_BYTES.set(self._store.past_bytes)
        trouble = pipeline.committer.trouble
        metrics.COMMIT_TROUBLE.set(trouble is not None and trouble.event != "encoder_unreachable")

    def _jobs(self) -> None:
        for job in self._memory.scheduler.status():
            if job.last_end is not None and job.last_error is None:
                metrics.JOB_DONE.labels(job.name).set(job.last_end)

    def _model_costs(self) -> None:
        for gauge in (metrics.CALLS_TODAY, metrics.TOKENS_TODAY, metrics.MONEY_TODAY):
            gauge.clear()
        for key, spent in self._memory.costs.entries(since=self._memory.costs.day):
            labels = key.source or "", key.purpose
            metrics.CALLS_TODAY.labels(*labels).set(spent.calls)
            metrics.MONEY_TODAY.labels(*labels).set(spent.money)
            metrics.TOKENS_TODAY.labels(*labels, "prompt").set(spent.prompt)
            metrics.TOKENS_TODAY.labels(*labels, "completion").set(spent.completion)
        metrics.BUDGET_USED_UP.set(self._memory.extraction_queue.waits_for_budget() is not None)

    def _checkpoint(self) -> None:
        place = newest(self._store.folder)
        if place is None:
            return
        try:
            metrics.CHECKPOINT_TIME.set(place.stat().st_mtime)
        except OSError:  # a newer checkpoint has just replaced it
            return
        metrics.CHECKPOINT_COMMIT.set(int(place.name[len(PREFIX) :]))

    def _sizes(self) -> None:
        sizes = dict.fromkeys((*STORE_PARTS.values(), "checkpoint", "other"), 0)
        try:
            entries = list(os.scandir(self._store.folder))
        except OSError:
            return
        for entry in entries:
            if entry.name.endswith(TABLE_SUFFIX):
                part = f"table {entry.name.removesuffix(TABLE_SUFFIX)}"
            elif entry.name.startswith((PREFIX, UNFINISHED)):
                part = "checkpoint"
            else:
                part = STORE_PARTS.get(entry.name, "other")
            sizes[part] = sizes.get(part, 0) + bytes_below(Path(entry.path))
        for part, size in sizes.items():
            metrics.STORE_BYTES.labels(part).set(size)
        try:
            found = os.statvfs(self._store.folder)
        except OSError:
            return
        metrics.DISK_FREE.set(found.f_bavail * found.f_frsize)
