"""Waiting work runs concurrently; an error is raised after all work has ended."""

import threading

import pytest

from store.lance.io_threads import at_once, meanwhile


def test_all_are_under_way_at_once() -> None:
    met = threading.Barrier(4, timeout=10)
    at_once(lambda _: met.wait(), range(4))


def test_a_failure_is_raised_once_all_have_ended() -> None:
    failed, ended = threading.Event(), []

    def work(number: int) -> None:
        if number == 0:
            failed.set()
            raise OSError("the disk is full")
        failed.wait(10)
        ended.append(number)

    with pytest.raises(OSError, match="the disk is full"):
        at_once(work, range(4))
    assert sorted(ended) == [1, 2, 3]


def test_nothing_to_do_is_nothing() -> None:
    at_once(pytest.fail, [])


def test_meanwhile_the_block_runs_and_is_left_once_all_have_ended() -> None:
    met, ended = threading.Barrier(3, timeout=10), []
    with meanwhile(lambda number: (met.wait(), ended.append(number)), range(2)):
        met.wait()
    assert sorted(ended) == [0, 1]


def test_what_the_block_raises_goes_before_what_the_work_does() -> None:
    ended = threading.Event()

    def work(_: int) -> None:
        ended.set()
        raise OSError("the disk is full")

    with pytest.raises(ValueError, match="the plan"), meanwhile(work, range(1)):
        raise ValueError("the plan")
    assert ended.is_set()
    with pytest.raises(OSError, match="the disk is full"), meanwhile(work, range(1)):
        pass
