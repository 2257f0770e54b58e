"""Maintenance at intervals: named jobs in a thread of their own, one run of each at a time."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from daemon import metrics
from daemon.config.sections import ScheduleTimes

JobName = Literal["compact", "snapshot", "rescan", "retry"]
"""The jobs, named as their keys in `[schedule]`."""

JITTER = 0.1
"""Share of an interval by which a run is moved at random, so that several daemons of one machine do not move in step."""

LONGEST_JITTER_S = 60.0
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
    """0: off, runs only when asked to."""
    next_run: float | None = None
    running: bool = False
    last_start: float | None = None
    last_end: float | None = None
    last_error: str | None = None


class Schedule:
    """The jobs and when they run next. Safe to use from any thread."""

    def __init__(self, times: ScheduleTimes) -> None:
        self._times = times
        self._jobs: dict[str, Callable[[], object]] = {}
        self._states: dict[str, JobStatus] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(WORKERS)},
            # A run that comes late is still wanted, once.
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone="UTC",
        )

    def add(self, name: JobName, job: Callable[[], object]) -> None:
        """Run `job` as often as `[schedule]` says. A job that raises is logged and runs again at its next time."""
        if name in self._jobs:
            raise ValueError(f"the job {name} is scheduled already")
        self._jobs[name] = job
        self._states[name] = JobStatus(name, getattr(self._times, name))
        self._plan(name)

    def start(self) -> None:
        self._scheduler.start()

    def reload(self, times: ScheduleTimes) -> None:
        """Use other intervals from now on; jobs whose interval stays keep their next run."""
        self._times = times
        for name, state in list(self._states.items()):
            if getattr(times, name) != state.interval_s:
                self._note(name, interval_s=getattr(times, name))
                self._plan(name)

    def run_soon(self, name: JobName) -> bool:
        """Run a job now, off or not; its next run counts from here. False: it runs already, or all is stopping."""
        if self._stopping or self._states[name].running:
            return False
        self._scheduler.modify_job(name, next_run_time=datetime.now(UTC))
        return True

    def status(self) -> list[JobStatus]:
        """All jobs, in the order they were added."""
        result = []
        for name, state in list(self._states.items()):
            # A job that was added before the start has no time yet.
            when = getattr(self._scheduler.get_job(name), "next_run_time", None)
            result.append(replace(state, next_run=when.timestamp() if when and state.interval_s else None))
        return result

    def stop(self, timeout_s: float) -> bool:
        """Start no more runs; wait for those under way. False: some were still running when the time was up."""
        with self._changed:
            self._stopping = True
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        with self._changed:
            return self._changed.wait_for(lambda: not any(s.running for s in self._states.values()), timeout_s)

    def _plan(self, name: str) -> None:
        # A job that is off stays planned, for a time that never comes: APScheduler 3 trips over a job that it has to
        # remove after its last run while it is being stopped.
        interval_s = self._states[name].interval_s
        seconds, jitter = (interval_s, min(interval_s * JITTER, LONGEST_JITTER_S)) if interval_s else (NEVER_S, None)
        trigger = IntervalTrigger(seconds=seconds, jitter=jitter, timezone="UTC")
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
