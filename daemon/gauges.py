"""What is looked at when Prometheus asks: queues, sizes on disk, ages. Nothing here is counted as it happens."""

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from daemon import metrics
from daemon.pipeline.backlog import Backlog
from daemon.pipeline.pipeline import Pipeline
from daemon.schedule import Schedule
from store.saved import PREFIX, newest
from store.store import Store

if TYPE_CHECKING:
    from daemon.services.kafka import FollowedTopics

SIZED_S = 30.0
"""Sizes on disk are measured anew after this time: a large store has thousands of files."""

PARTS = {"inbox": "inbox", "openie.jsonl": "paid answers", "lock": "other", "head": "other"}


class Gauges:
    """Called at each scrape, in any thread."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        backlog: Backlog,
        schedule: Schedule,
        topics: "Sequence[FollowedTopics]",
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._backlog = backlog
        self._schedule = schedule
        self._topics = topics
        self._sized = -SIZED_S
        self._sizing = threading.Lock()

    def __call__(self) -> None:
        self._queues()
        self._jobs()
        self._snapshot()
        with self._sizing:
            if time.monotonic() - self._sized >= SIZED_S:
                self._sizes()
                self._sized = time.monotonic()

    def _queues(self) -> None:
        inbox, ready = self._pipeline.inbox_room, self._pipeline.committer.ready
        rooms = {"inbox": ((inbox.items, inbox.bytes), inbox.most), "ready": ((ready.items, ready.bytes), ready.most)}
        for topics in self._topics:
            rooms[f"kafka {topics.name}"] = (topics.backlog.held, topics.backlog.most)
        for name, (held, most) in rooms.items():
            metrics.QUEUE.labels(name).set(held[0])
            metrics.QUEUE_BYTES.labels(name).set(held[1])
            metrics.QUEUE_MOST.labels(name).set(most[0])
            metrics.QUEUE_MOST_BYTES.labels(name).set(most[1])
        metrics.QUEUE.labels("intake").set(len(self._pipeline.intake))
        metrics.QUEUE.labels("extraction").set(len(self._backlog))
        metrics.WAITING.set(len(self._backlog))
        # Trouble that nothing waits for is over, or was a passage's own.
        metrics.MODEL_DOWN.set(self._backlog.outage is not None and len(self._backlog) > 0)
        committer = self._pipeline.committer
        metrics.COMMIT_TROUBLE.set(committer.trouble is not None and not committer.encoder_away)

    def _jobs(self) -> None:
        for job in self._schedule.status():
            if job.last_end is not None and job.last_error is None:
                metrics.JOB_DONE.labels(job.name).set(job.last_end)

    def _snapshot(self) -> None:
        place = newest(self._store.folder)
        if place is None:
            return
        try:
            metrics.SNAPSHOT_TIME.set(place.stat().st_mtime)
        except OSError:  # replaced by a newer one just now
            return
        metrics.SNAPSHOT_COMMIT.set(int(place.name[len(PREFIX) :]))

    def _sizes(self) -> None:
        sizes = dict.fromkeys(("inbox", "snapshot", "paid answers", "other"), 0)
        try:
            entries = list(os.scandir(self._store.folder))
        except OSError:
            return
        for entry in entries:
            if entry.name.endswith(".lance"):
                part = f"table {entry.name.removesuffix('.lance')}"
            elif entry.name.startswith("snapshot"):
                part = "snapshot"
            else:
                part = PARTS.get(entry.name, "other")
            sizes[part] = sizes.get(part, 0) + size_of(Path(entry.path))
        for part, size in sizes.items():
            metrics.STORE_BYTES.labels(part).set(size)
        try:
            found = os.statvfs(self._store.folder)
        except OSError:
            return
        metrics.DISK_FREE.set(found.f_bavail * found.f_frsize)


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a directory, as far as they can be seen."""
    try:
        if not path.is_dir():
            return path.stat().st_size
    except OSError:
        return 0
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += (Path(folder) / name).stat().st_size
            except OSError:  # replaced just now
                continue
    return total
