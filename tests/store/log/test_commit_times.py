"""The commit that a time refers to, whatever the clock said when the commits were made."""

import time
from datetime import timedelta
from types import SimpleNamespace

import pytest

from store.log import commits
from tests.store.small_store import complete, open_store

DAY_S = 86400.0
AHEAD_S = 365 * DAY_S


@pytest.fixture
def days_ago(monkeypatch):
    """Sets the commit log's clock `days` days before the present; a negative number sets it ahead."""
    now = time.time()

    def set_clock(days):
        monkeypatch.setattr(commits, "time", SimpleNamespace(time=lambda: now - days * DAY_S))
        return now - days * DAY_S

    return set_clock


def add(store, number):
    return store.commit(complete(store, {"d": [("T", f"text {number}", None)]}, [])).seq


@pytest.mark.parametrize("started_again", [False, True])
def test_time_lookup_is_correct_after_the_clock_was_ahead(tmp_path, days_ago, started_again):
    days_ago(5)
    with open_store(tmp_path) as store:
        days_ago(4)
        before = add(store, 1)
        days_ago(-365)
        add(store, 2)
        days_ago(3)
        after = add(store, 3)
        days_ago(1)
        last = add(store, 4)
        if not started_again:
            check(store, days_ago, before, after, last)
    if started_again:
        with open_store(tmp_path) as store:
            check(store, days_ago, before, after, last)


def check(store, days_ago, before, after, last):
    assert store.snapshot_at(days_ago(3.5)).commit == before
    assert store.snapshot_at(days_ago(2)).commit == after
    assert store.snapshot_at(days_ago(0)).commit == last
    store.purge(timedelta(days=2))
    assert store.horizon == after


def test_time_lookup_is_correct_after_a_clock_lead_has_passed(tmp_path, days_ago):
    days_ago(9)
    with open_store(tmp_path) as store:
        first = add(store, 1)
        days_ago(4)
        ahead = add(store, 2)
        days_ago(8)
        add(store, 3)
        days_ago(7)
        after = add(store, 4)
        days_ago(1)
        last = add(store, 5)
        assert [store.snapshot_at(days_ago(days)).commit for days in (8.5, 6, 3, 0)] == [first, after, after, last]
        store.purge(timedelta(days=6))
        assert store.horizon <= ahead


def test_clock_that_was_behind_does_not_purge_commits_in_retention(tmp_path, days_ago):
    days_ago(1)
    with open_store(tmp_path) as store:
        first = add(store, 1)
        days_ago(20_000)
        add(store, 2)
        days_ago(0.5)
        add(store, 3)
        store.purge(timedelta(days=7))
        assert store.horizon <= first
        assert store.snapshot_at(first).commit == first
