"""Loads and additions of `bench growth` and `bench million` report what they did, and fail if they did nothing."""

from pathlib import Path

import pytest

from bench.support.growth.loading import load_passages
from bench.support.growth.maintenance import Adding
from bench.support.growth.store import open_store


def test_a_finished_load_reports_its_contents(tmp_path: Path) -> None:
    store, encoder = open_store(tmp_path)
    with store:
        loaded = load_passages(store, encoder, 20)
        assert loaded["load_passages_a_second"] > 0
        again = load_passages(store, encoder, 20)
    assert again == {name: loaded[name] for name in ("phrases", "triples", "edges")}


def test_a_measurement_during_additions_fails_if_the_additions_failed() -> None:
    def add(_first: int, _count: int) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"), Adding(add):
        pass
