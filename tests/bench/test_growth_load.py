"""Loads of `bench growth` and `bench million` report what they did."""

from pathlib import Path

from bench.support.growth.loading import load_passages
from bench.support.growth.store import open_store


def test_repeated_load_adds_nothing_and_reports_the_same_contents(tmp_path: Path) -> None:
    store, encoder = open_store(tmp_path)
    with store:
        loaded = load_passages(store, encoder, 20)
        assert "load_passages_a_second" in loaded
        again = load_passages(store, encoder, 20)
    assert again == {name: loaded[name] for name in ("phrases", "triples", "edges")}
