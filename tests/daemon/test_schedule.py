"""Maintenance jobs: run at their interval, one at a time, change on reload, stop cleanly."""

import threading
import time

import pytest

from daemon.config.sections import ScheduleTimes
from daemon.schedule import JITTER, Schedule

OFF = ScheduleTimes(compact=0.0, snapshot=0.0, rescan=0.0, retry=0.0)
WAIT_S = 20.0


@pytest.fixture
def make():
    made = []

    def make(times: ScheduleTimes) -> Schedule:
        made.append(Schedule(times))
        return made[-1]

    yield make
    for schedule in made:
        schedule.stop(WAIT_S)


def state(schedule: Schedule, name: str):
    return next(each for each in schedule.status() if each.name == name)


def eventually(true) -> None:
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


def test_a_job_runs_again_and_again(make):
    schedule = make(OFF.model_copy(update={"retry": 1.0}))
    runs = threading.Semaphore(0)
    schedule.add("retry", runs.release)
    schedule.start()
    assert runs.acquire(timeout=WAIT_S)
    assert runs.acquire(timeout=WAIT_S)


def test_status_tells_the_next_run_within_the_interval_and_its_jitter(make):
    schedule = make(ScheduleTimes(compact=600.0, snapshot=0.0))
    schedule.add("compact", lambda: None)
    schedule.add("snapshot", lambda: None)
    before = time.time()
    schedule.start()
    compact, snapshot = schedule.status()
    assert before + 600 * (1 - JITTER) <= compact.next_run <= time.time() + 600 * (1 + JITTER)
    assert compact.last_start is None
    assert not compact.running
    assert (snapshot.interval_s, snapshot.next_run) == (0, None)


def test_a_job_that_is_off_runs_when_asked(make):
    schedule = make(OFF)
    ran = threading.Event()
    schedule.add("rescan", ran.set)
    schedule.start()
    schedule.run_soon("rescan")
    assert ran.wait(WAIT_S)
    eventually(lambda: state(schedule, "rescan").last_end is not None)
    assert state(schedule, "rescan").next_run is None


def test_one_job_never_runs_twice_at_once(make):
    schedule = make(OFF)
    started, go = threading.Semaphore(0), threading.Event()

    def job():
        started.release()
        go.wait(WAIT_S)

    schedule.add("compact", job)
    other = threading.Event()
    schedule.add("retry", other.set)
    schedule.start()
    schedule.run_soon("compact")
    assert started.acquire(timeout=WAIT_S)
    assert state(schedule, "compact").running
    assert schedule.run_soon("compact") is False
    assert schedule.run_soon("retry") is True
    assert other.wait(WAIT_S), "a long job held up another"
    go.set()
    eventually(lambda: not state(schedule, "compact").running)
    assert not started.acquire(blocking=False)


def test_a_job_that_fails_says_why_and_runs_again(make):
    schedule = make(OFF)
    outcomes = [ValueError("disk full"), None]
    done = threading.Semaphore(0)

    def job():
        try:
            outcome = outcomes.pop(0)
            if outcome is not None:
                raise outcome
        finally:
            done.release()

    schedule.add("snapshot", job)
    schedule.start()
    schedule.run_soon("snapshot")
    eventually(lambda: state(schedule, "snapshot").last_error == "ValueError: disk full")
    schedule.run_soon("snapshot")
    eventually(lambda: state(schedule, "snapshot").last_error is None)
    assert not outcomes


def test_a_reload_changes_intervals_and_leaves_the_others_alone(make):
    schedule = make(ScheduleTimes(compact=600.0, retry=600.0, rescan=600.0))
    for name in ("compact", "retry", "rescan"):
        schedule.add(name, lambda: None)
    schedule.start()
    kept = state(schedule, "compact").next_run
    schedule.reload(ScheduleTimes(compact=600.0, retry=0.0, rescan=60.0))
    assert state(schedule, "compact").next_run == kept
    assert state(schedule, "retry").next_run is None
    assert state(schedule, "rescan").next_run <= time.time() + 60 * (1 + JITTER)
    schedule.reload(ScheduleTimes(compact=600.0, retry=30.0, rescan=60.0))
    assert state(schedule, "retry").next_run is not None


def test_stopping_waits_for_what_runs_and_says_when_it_did_not_end(make):
    schedule = make(OFF)
    started, go = threading.Event(), threading.Event()

    def job():
        started.set()
        go.wait(WAIT_S)

    schedule.add("compact", job)
    schedule.start()
    schedule.run_soon("compact")
    assert started.wait(WAIT_S)
    assert schedule.stop(0.05) is False
    go.set()
    assert schedule.stop(WAIT_S) is True


def test_nothing_runs_once_stopped(make):
    schedule = make(OFF.model_copy(update={"retry": 1.0}))
    ran = threading.Event()
    schedule.add("retry", ran.set)
    schedule.start()
    assert schedule.stop(WAIT_S) is True
    assert schedule.run_soon("retry") is False
    assert schedule.status()[0].next_run is None
    assert not ran.is_set()


def test_a_name_is_taken_once(make):
    schedule = make(OFF)
    schedule.add("retry", lambda: None)
    with pytest.raises(ValueError, match="retry is scheduled already"):
        schedule.add("retry", lambda: None)
