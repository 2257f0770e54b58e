"""Waiting work runs concurrently; an error is raised after all work has ended."""

import threading

import pytest

from store.lance.io_threads import at_once


def test_at_once_runs_all_items_concurrently() -> None:
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


def test_at_once_without_items_calls_nothing() -> None:
    at_once(pytest.fail, [])
