"""Runs maintenance jobs at intervals: compaction, checkpoints, scans, retries, backups.

Each job runs in a thread of the scheduler; runs of one job never overlap.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from daemon.config.sections import ScheduleTimes
from daemon.observe import metrics
from daemon.runtime.process_tuning import trim_heap
from store.store import Store
from store.upgrade_backup import remove_expired

JobName = Literal["compact", "snapshot", "rescan", "retry", "backup"]
"""The jobs, by their keys in `[schedule]`."""

PURGES_PER_RETENTION = 24
"""Number of purges per period of `[store] keep_versions`: each purge reads whole tables."""
JITTER_SHARE = 0.1
"""Maximum random shift of a run, as a share of the interval, so that several daemons on one machine do not run jobs
simultaneously."""
JITTER_MAX_S = 60.0
OVERDUE_DELAY_S = 60.0
"""Delay after the start before an overdue job of an earlier process runs."""
CLOCK_CHECK_S = 30.0
CLOCK_SET_BACK_S = 10.0
"""If the clock is set back by more than this, the jobs are rescheduled."""
NEVER_S = 100 * 365 * 86400.0
WORKERS = 2
"""Maximum concurrent jobs: a long compaction must not delay a retry."""

log = structlog.get_logger()
# APScheduler warns only about runs that it skips because the previous run has not ended, which is intended.
logging.getLogger("apscheduler.scheduler").setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The state of a job, for `status`. Times are Unix seconds; None for an event that has not happened or is not scheduled."""

    name: str
    interval_s: float
    """Interval in seconds; 0 means that the job is off."""
    next_run: float | None = None
    running: bool = False
    last_start: float | None = None
    last_end: float | None = None
    last_error: str | None = None


class Scheduler:
    """The jobs and their next runs. May be used from any thread."""

    def __init__(self, times: ScheduleTimes) -> None:
        self._times = times
        self._jobs: dict[str, tuple[Callable[[], object], ...]] = {}
        self._states: dict[str, JobStatus] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._clock_offset_s = _clock_offset_s()
        self._scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(WORKERS)},
            # Run a job once if several of its runs are overdue.
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone="UTC",
        )

    def add(self, name: JobName, *steps: Callable[[], object], last_run: float | None = None) -> None:
        """Schedules a job at its interval in `[schedule]`. An exception is logged; later `steps` and runs still follow.

        `last_run` is the time (Unix seconds) at which an earlier process ran the job, for intervals longer than a process's
        life.
        """
        if name in self._jobs:
            raise ValueError(f"the job {name} is scheduled already")
        self._jobs[name] = steps
        self._states[name] = JobStatus(name, getattr(self._times, name))
        self._plan(name, last_run)

    def start(self) -> None:
        self._scheduler.start()

    def reload(self, times: ScheduleTimes) -> None:
        """Applies new intervals. A job with an unchanged interval keeps its next run."""
        self._times = times
        for name, state in list(self._states.items()):
            if getattr(times, name) != state.interval_s:
                self._note(name, interval_s=getattr(times, name))
                self._plan(name)

    async def follow_clock(self) -> None:
        """Reschedules jobs whenever the clock is set back, until cancelled."""
        while True:
            await asyncio.sleep(CLOCK_CHECK_S)
            self.replan_if_set_back()

    def replan_if_set_back(self) -> None:
        """If the clock was set back, reschedules all jobs, which would otherwise start late by the clock's change."""
        before, self._clock_offset_s = self._clock_offset_s, _clock_offset_s()
        if before - self._clock_offset_s > CLOCK_SET_BACK_S:
            for name in list(self._jobs):
                self._plan(name)

    def status(self) -> list[JobStatus]:
        """Returns all jobs, in the order of `add`."""
        return [replace(state, next_run=self.next_run(name)) for name, state in list(self._states.items())]

    def next_run(self, name: str) -> float | None:
        """Returns the time of the job's next run in Unix seconds; None if the job is off or the scheduler has not started."""
        state = self._states.get(name)
        # Before the scheduler starts, a job has no `next_run_time`.
        when = getattr(self._scheduler.get_job(name), "next_run_time", None)
        return when.timestamp() if when and state is not None and state.interval_s else None

    def stop(self, timeout_s: float) -> bool:
        """Starts no more runs, and waits for running jobs. Returns False if a job still runs after `timeout_s`."""
        with self._changed:
            self._stopping = True
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        with self._changed:
            return self._changed.wait_for(lambda: not any(s.running for s in self._states.values()), timeout_s)

    @property
    def stopping(self) -> bool:
        """Whether running jobs should end as soon as possible."""
        return self._stopping

    def _plan(self, name: str, last_run: float | None = None) -> None:
        # Schedule a job that is off for a time that never comes. APScheduler 3 fails if it removes a job after its last run
        # during a shutdown.
        interval_s = self._states[name].interval_s
        seconds, jitter = (interval_s, min(interval_s * JITTER_SHARE, JITTER_MAX_S)) if interval_s else (NEVER_S, None)
        first = None
        if interval_s and last_run is not None:
            now = time.time()
            # A last run in the future was recorded while the clock was ahead.
            first = datetime.fromtimestamp(max(now + OVERDUE_DELAY_S, min(last_run, now) + interval_s), UTC)
        trigger = IntervalTrigger(seconds=seconds, jitter=jitter, timezone="UTC", start_date=first)
        self._scheduler.add_job(self._run, trigger, args=(name,), id=name, replace_existing=True)

    def _run(self, name: str) -> None:
        with self._changed:
            if self._stopping or self._states[name].running:
                return
            self._states[name] = replace(self._states[name], running=True, last_start=time.time())
        errors: list[str] = []
        began = time.perf_counter()
        try:
            for step in self._jobs[name]:
                try:
                    step()
                except Exception as raised:
                    errors.append(f"{type(raised).__name__}: {raised}")
                    log.error("job_failed", job=name, error=raised, exc_info=True)
        finally:
            if errors:
                metrics.JOB_FAILED.labels(name).inc()
            metrics.JOB.labels(name).observe(time.perf_counter() - began)
            self._note(name, running=False, last_end=time.time(), last_error="; ".join(errors) or None)

    def _note(self, name: str, **changes: Any) -> None:
        with self._changed:
            self._states[name] = replace(self._states[name], **changes)
            self._changed.notify_all()


def _clock_offset_s() -> float:
    """Returns the difference between the adjustable and the monotonic clock, in seconds.

    The difference grows while the machine sleeps, and shrinks when the clock is set back.
    """
    return time.time() - time.monotonic()


def add_maintenance_jobs(
    scheduler: Scheduler,
    store: Store,
    keep_versions_s: float,
    rescans: Sequence[Callable[[], None]],
    retries: Sequence[Callable[[], Coroutine[Any, Any, None]]],
    expire_sessions: Callable[[], None],
) -> None:
    """Adds the jobs of `[schedule]`. Call on the event loop, where `retries` run; other jobs run in the scheduler's threads."""
    loop = asyncio.get_running_loop()
    purged_at = -math.inf

    def purge() -> None:
        nonlocal purged_at
        if time.monotonic() - purged_at >= keep_versions_s / PURGES_PER_RETENTION:
            store.purge(timedelta(seconds=keep_versions_s))
            purged_at = time.monotonic()
            if store.rebuild_index():
                log.info("index_rebuilt")

    def write_checkpoint() -> None:
        if store.write_checkpoint():
            store.measure_synonym_recall()

    def on_loop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        asyncio.run_coroutine_threadsafe(work(), loop).result()

    scheduler.add(
        "compact",
        lambda: store.scopes.drop_idle(),  # first, because it needs no disk space
        partial(remove_expired, store.folder),
        store.compact_when_due,
        purge,
        trim_heap,
        expire_sessions,
    )
    scheduler.add("snapshot", store.check_checkpoint, write_checkpoint)
    scheduler.add("rescan", *rescans)
    scheduler.add("retry", *(partial(on_loop, work) for work in retries))
