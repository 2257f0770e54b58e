"""Maintenance at intervals: tables compacted, checkpoints written, folders scanned, failures tried again.

Each job runs in a thread of the scheduler, one run of it at a time.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from daemon.config.sections import ScheduleTimes
from daemon.observe import metrics
from daemon.runtime.allocator import trim_heap
from store.store import Store

JobName = Literal["compact", "snapshot", "rescan", "retry", "backup"]
"""The jobs, named as their keys in `[schedule]`."""

COMPACT_FRAGMENTS = 64
"""A table of so many files is rewritten as a whole. The store itself merges the files of a few commits as they come."""
PURGES_PER_RETENTION = 24
"""How often within `[store] keep_versions` rows that are not needed any more are searched for: that reads whole tables."""
JITTER_SHARE = 0.1
"""Of an interval, by which a run is moved at random, so that several daemons of one machine do not run in step."""
JITTER_MAX_S = 60.0
OVERDUE_DELAY_S = 60.0
"""After a start, before a job that an earlier process should have run."""
CLOCK_CHECK_S = 30.0
CLOCK_SET_BACK_S = 10.0
"""A clock that is set back by more than this has the jobs planned anew."""
NEVER_S = 100 * 365 * 86400.0
WORKERS = 2
"""Jobs that run at once: a long compaction must not hold up a retry."""

log = structlog.get_logger()
# It warns of each run that is left out because the last one still goes on, which is as it should be, and of nothing else.
logging.getLogger("apscheduler.scheduler").setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job, for `status`. Times are Unix seconds; `None` for what has not happened or is not planned."""

    name: str
    interval_s: float
    """0: off."""
    next_run: float | None = None
    running: bool = False
    last_start: float | None = None
    last_end: float | None = None
    last_error: str | None = None


class Scheduler:
    """The jobs and when they run next. Safe to use from any thread."""

    def __init__(self, times: ScheduleTimes) -> None:
        self._times = times
        self._jobs: dict[str, Callable[[], object]] = {}
        self._states: dict[str, JobStatus] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._clock_offset_s = _clock_offset_s()
        self._scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(WORKERS)},
            # A run that comes late is still wanted, once.
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone="UTC",
        )

    def add(self, name: JobName, job: Callable[[], object], last_run: float | None = None) -> None:
        """Run `job` as often as `[schedule]` says. A job that raises is logged and runs again at its next time.

        `last_run`: when an earlier process ran it, in Unix seconds, where its interval may be longer than a process lives.
        """
        if name in self._jobs:
            raise ValueError(f"the job {name} is scheduled already")
        self._jobs[name] = job
        self._states[name] = JobStatus(name, getattr(self._times, name))
        self._plan(name, last_run)

    def start(self) -> None:
        self._scheduler.start()

    def reload(self, times: ScheduleTimes) -> None:
        """Use other intervals from now on; jobs whose interval stays keep their next run."""
        self._times = times
        for name, state in list(self._states.items()):
            if getattr(times, name) != state.interval_s:
                self._note(name, interval_s=getattr(times, name))
                self._plan(name)

    async def follow_clock(self) -> None:
        """Keeps the jobs to their intervals where the clock is set back, until cancelled."""
        while True:
            await asyncio.sleep(CLOCK_CHECK_S)
            self.replan_if_set_back()

    def replan_if_set_back(self) -> None:
        """Plans the jobs anew where the clock was set back: their times would come too late by as much."""
        before, self._clock_offset_s = self._clock_offset_s, _clock_offset_s()
        if before - self._clock_offset_s > CLOCK_SET_BACK_S:
            for name in list(self._jobs):
                self._plan(name)

    def status(self) -> list[JobStatus]:
        """All jobs, in the order they were added."""
        return [replace(state, next_run=self.next_run(name)) for name, state in list(self._states.items())]

    def next_run(self, name: str) -> float | None:
        """When the job runs next, in Unix seconds; None where it is switched off, or before the start."""
        state = self._states.get(name)
        # A job that was added before the start has no time yet.
        when = getattr(self._scheduler.get_job(name), "next_run_time", None)
        return when.timestamp() if when and state is not None and state.interval_s else None

    def stop(self, timeout_s: float) -> bool:
        """Start no more runs; wait for those under way. False: some were still running when the time was up."""
        with self._changed:
            self._stopping = True
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        with self._changed:
            return self._changed.wait_for(lambda: not any(s.running for s in self._states.values()), timeout_s)

    @property
    def stopping(self) -> bool:
        """Whether a job should end as soon as it can."""
        return self._stopping

    def _plan(self, name: str, last_run: float | None = None) -> None:
        # A job that is off stays planned, for a time that never comes: APScheduler 3 trips over a job that it has to
        # remove after its last run while it is being stopped.
        interval_s = self._states[name].interval_s
        seconds, jitter = (interval_s, min(interval_s * JITTER_SHARE, JITTER_MAX_S)) if interval_s else (NEVER_S, None)
        first = None
        if interval_s and last_run is not None:
            now = time.time()
            # A run in the future is one of a clock that was ahead.
            first = datetime.fromtimestamp(max(now + OVERDUE_DELAY_S, min(last_run, now) + interval_s), UTC)
        trigger = IntervalTrigger(seconds=seconds, jitter=jitter, timezone="UTC", start_date=first)
        self._scheduler.add_job(self._run, trigger, args=(name,), id=name, replace_existing=True)

    def _run(self, name: str) -> None:
        with self._changed:
            if self._stopping or self._states[name].running:
                return
            self._states[name] = replace(self._states[name], running=True, last_start=time.time())
        error = None
        began = time.perf_counter()
        try:
            self._jobs[name]()
        except Exception as raised:  # Whatever a job raises, the others and its next run must go on.
            error = f"{type(raised).__name__}: {raised}"
            metrics.JOB_FAILED.labels(name).inc()
            log.error("job_failed", task=name, error=raised, exc_info=True)
        finally:
            metrics.JOB.labels(name).observe(time.perf_counter() - began)
            self._note(name, running=False, last_end=time.time(), last_error=error)

    def _note(self, name: str, **changes: Any) -> None:
        with self._changed:
            self._states[name] = replace(self._states[name], **changes)
            self._changed.notify_all()


def _clock_offset_s() -> float:
    """Of the clock that can be set to the one that cannot. It grows while the machine sleeps, and falls where the clock is
    set back."""
    return time.time() - time.monotonic()


def add_maintenance_jobs(
    scheduler: Scheduler,
    store: Store,
    keep_versions_s: float,
    rescans: Sequence[Callable[[], None]],
    retry_due: Callable[[float], object],
    expire_sessions: Callable[[], None],
) -> None:
    """Adds the jobs of `[schedule]`. To be called on the event loop, where `retry_due` is called with the present time (Unix
    seconds); the others run in the scheduler's threads."""
    loop = asyncio.get_running_loop()
    purged_at = -math.inf

    def compact() -> None:
        nonlocal purged_at
        store.scopes.drop_idle()  # first: it needs no room on the disk
        store.compact(COMPACT_FRAGMENTS)
        if time.monotonic() - purged_at >= keep_versions_s / PURGES_PER_RETENTION:
            store.purge(timedelta(seconds=keep_versions_s))
            purged_at = time.monotonic()
            if store.rebuild_index():
                log.info("memory_renewed")
        trim_heap()
        expire_sessions()

    def snapshot() -> None:
        store.check_checkpoint()
        if store.write_checkpoint():
            store.measure_synonym_recall()

    def rescan() -> None:
        for rescan_folder in rescans:
            rescan_folder()

    def retry() -> None:
        loop.call_soon_threadsafe(retry_due, time.time())

    scheduler.add("compact", compact)
    scheduler.add("snapshot", snapshot)
    scheduler.add("rescan", rescan)
    scheduler.add("retry", retry)
