"""Maintenance jobs run at their interval, one at a time, change on reload, and stop cleanly."""

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from daemon.config.sections import ScheduleTimes
from daemon.runtime.scheduler import JITTER_SHARE, Scheduler, add_maintenance_jobs
from memory.encoder.hashing import HashEncoder
from store.store import Store

OFF = ScheduleTimes(compact=0.0, snapshot=0.0, rescan=0.0, retry=0.0)
WAIT_S = 20.0


@pytest.fixture
def make():
    made = []

    def make(times: ScheduleTimes) -> Scheduler:
        made.append(Scheduler(times))
        return made[-1]

    yield make
    for scheduler in made:
        scheduler.stop(WAIT_S)


def state(scheduler: Scheduler, name: str):
    return next(each for each in scheduler.status() if each.name == name)


def run_soon(scheduler: Scheduler, name: str) -> None:
    """Moves a job's next run to now, even if the job is off."""
    scheduler._scheduler.modify_job(name, next_run_time=datetime.now(UTC))


def eventually(true) -> None:
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


def test_a_job_runs_again_and_again(make):
    scheduler = make(OFF.model_copy(update={"retry": 1.0}))
    runs = threading.Semaphore(0)
    scheduler.add("retry", runs.release)
    scheduler.start()
    assert runs.acquire(timeout=WAIT_S)
    assert runs.acquire(timeout=WAIT_S)


def test_status_reports_the_next_run_within_interval_and_jitter(make):
    scheduler = make(ScheduleTimes(compact=600.0, snapshot=0.0))
    scheduler.add("compact", lambda: None)
    scheduler.add("snapshot", lambda: None)
    before = time.time()
    scheduler.start()
    compact, snapshot = scheduler.status()
    assert before + 600 * (1 - JITTER_SHARE) <= compact.next_run <= time.time() + 600 * (1 + JITTER_SHARE)
    assert compact.last_start is None
    assert not compact.running
    assert (snapshot.interval_s, snapshot.next_run) == (0, None)


def test_a_job_that_is_off_runs_when_asked(make):
    scheduler = make(OFF)
    ran = threading.Event()
    scheduler.add("rescan", ran.set)
    scheduler.start()
    run_soon(scheduler, "rescan")
    assert ran.wait(WAIT_S)
    eventually(lambda: state(scheduler, "rescan").last_end is not None)
    assert state(scheduler, "rescan").next_run is None


def test_one_job_never_runs_twice_at_once(make):
    scheduler = make(OFF)
    started, go = threading.Semaphore(0), threading.Event()

    def job():
        started.release()
        go.wait(WAIT_S)

    scheduler.add("compact", job)
    other = threading.Event()
    scheduler.add("retry", other.set)
    scheduler.start()
    run_soon(scheduler, "compact")
    assert started.acquire(timeout=WAIT_S)
    assert state(scheduler, "compact").running
    run_soon(scheduler, "compact")
    run_soon(scheduler, "retry")
    assert other.wait(WAIT_S), "a long job held up another"
    go.set()
    eventually(lambda: not state(scheduler, "compact").running)
    assert not started.acquire(blocking=False)


def test_failed_job_reports_its_error_and_runs_again(make):
    scheduler = make(OFF)
    outcomes = [ValueError("disk full"), None]
    done = threading.Semaphore(0)

    def job():
        try:
            outcome = outcomes.pop(0)
            if outcome is not None:
                raise outcome
        finally:
            done.release()

    scheduler.add("snapshot", job)
    scheduler.start()
    run_soon(scheduler, "snapshot")
    eventually(lambda: state(scheduler, "snapshot").last_error == "ValueError: disk full")
    run_soon(scheduler, "snapshot")
    eventually(lambda: state(scheduler, "snapshot").last_error is None)
    assert not outcomes


def test_a_step_that_fails_stops_no_other_step(make):
    scheduler = make(OFF)
    ran = threading.Semaphore(0)

    def fail():
        raise ValueError("disk full")

    scheduler.add("compact", fail, ran.release, fail, ran.release)
    scheduler.start()
    run_soon(scheduler, "compact")
    assert ran.acquire(timeout=WAIT_S) and ran.acquire(timeout=WAIT_S)
    eventually(lambda: state(scheduler, "compact").last_error == "ValueError: disk full; ValueError: disk full")


@pytest.mark.anyio
async def test_error_of_an_async_step_is_reported_as_the_jobs_error(make, tmp_path):
    async def fail():
        raise ValueError("no commit")

    retried = asyncio.Event()

    async def retry():
        retried.set()

    scheduler = make(OFF)
    with Store(tmp_path, HashEncoder(8).identity) as store:
        add_maintenance_jobs(scheduler, store, 0.0, [], [fail, retry], lambda: None)
        scheduler.start()
        run_soon(scheduler, "retry")
        await asyncio.wait_for(retried.wait(), WAIT_S)
        await asyncio.to_thread(eventually, lambda: state(scheduler, "retry").last_error == "ValueError: no commit")


def test_reload_reschedules_only_jobs_with_a_changed_interval(make):
    scheduler = make(ScheduleTimes(compact=600.0, retry=600.0, rescan=600.0))
    for name in ("compact", "retry", "rescan"):
        scheduler.add(name, lambda: None)
    scheduler.start()
    kept = state(scheduler, "compact").next_run
    scheduler.reload(ScheduleTimes(compact=600.0, retry=0.0, rescan=60.0))
    assert state(scheduler, "compact").next_run == kept
    assert state(scheduler, "retry").next_run is None
    assert state(scheduler, "rescan").next_run <= time.time() + 60 * (1 + JITTER_SHARE)
    scheduler.reload(ScheduleTimes(compact=600.0, retry=30.0, rescan=60.0))
    assert state(scheduler, "retry").next_run is not None


def test_a_clock_that_is_set_back_leaves_the_jobs_their_intervals(make, monkeypatch):
    ahead = timedelta(days=365)

    class AheadDatetime(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + ahead

    with monkeypatch.context() as clock:
        clock.setattr("apscheduler.schedulers.base.datetime", AheadDatetime)
        clock.setattr("apscheduler.triggers.interval.datetime", AheadDatetime)
        right = time.time
        clock.setattr(time, "time", lambda: right() + ahead.total_seconds())
        scheduler = make(OFF.model_copy(update={"rescan": 600.0}))
        scheduler.add("rescan", lambda: None)
        scheduler.start()
        assert scheduler.next_run("rescan") > right() + ahead.total_seconds()
    scheduler.replan_if_set_back()
    assert scheduler.next_run("rescan") <= time.time() + 600 * (1 + JITTER_SHARE)
    planned = scheduler.next_run("rescan")
    scheduler.replan_if_set_back()
    assert scheduler.next_run("rescan") == planned


def test_job_with_last_run_in_the_future_waits_at_most_its_interval(make):
    scheduler = make(OFF.model_copy(update={"backup": 86400.0, "backup_to": "file:///nowhere"}))
    scheduler.add("backup", lambda: None, last_run=time.time() + 365 * 86400)
    scheduler.start()
    assert scheduler.next_run("backup") <= time.time() + 86400 * (1 + JITTER_SHARE)


def test_stop_waits_for_running_jobs_and_returns_whether_they_ended(make):
    scheduler = make(OFF)
    started, go = threading.Event(), threading.Event()

    def job():
        started.set()
        go.wait(WAIT_S)

    scheduler.add("compact", job)
    scheduler.start()
    run_soon(scheduler, "compact")
    assert started.wait(WAIT_S)
    assert scheduler.stop(0.05) is False
    go.set()
    assert scheduler.stop(WAIT_S) is True


def test_no_job_runs_after_stop(make):
    scheduler = make(OFF.model_copy(update={"retry": 1.0}))
    ran = threading.Event()
    scheduler.add("retry", ran.set)
    scheduler.start()
    assert scheduler.stop(WAIT_S) is True
    assert scheduler.status()[0].next_run is None
    assert not ran.is_set()


def test_duplicate_job_name_is_an_error(make):
    scheduler = make(OFF)
    scheduler.add("retry", lambda: None)
    with pytest.raises(ValueError, match="retry is scheduled already"):
        scheduler.add("retry", lambda: None)
