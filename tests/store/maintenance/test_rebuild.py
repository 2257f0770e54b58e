"""Purged rows leave memory too, without any visible change."""

import gc
import weakref
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import store.maintenance.erasure
import store.store
from store.change.load import load_index
from store.export.json_lines import export_lines
from store.index.graph.edge_entries import EdgeWeights
from store.index.live_index import LiveIndex
from store.snapshot import Snapshot
from tests.store import oracle
from tests.store.small_store import complete, extract, open_store

OLD = {f"file:///{i}": [("T", f"text {i}", None)] for i in range(40)}
NEW = {f"file:///{i}": [("", f"text {100 + i}", None)] for i in range(3)}


def held(memory: "store.store.Store") -> int:
    return sum(memory._index.stored().values())


def check(memory: "store.store.Store", documents: oracle.Documents) -> None:
    assert oracle.same(export_lines(memory.snapshot()), oracle.export(documents, extract)) is None


@pytest.fixture
def worn(tmp_path: Path):
    """Returns a store from which nearly everything was removed and purged."""
    memory = open_store(tmp_path)
    memory.commit(complete(memory, OLD, []))
    memory.commit(complete(memory, {}, list(OLD)[1:]))
    memory.purge(timedelta(0))
    yield memory
    memory.close()


@pytest.mark.slow
def test_forced_rebuild_of_the_index_frees_purged_rows(worn) -> None:
    before = held(worn)
    assert worn.rebuild_index(force=True)
    assert held(worn) < before / 4
    assert worn._index.purged_rows == 0
    check(worn, {"file:///0": OLD["file:///0"]})


@pytest.mark.slow
def test_index_is_not_rebuilt_for_few_purged_rows(worn) -> None:
    assert not worn.rebuild_index()


@pytest.mark.slow
def test_commits_during_a_rebuild_are_in_the_rebuilt_index(worn, monkeypatch, tmp_path: Path) -> None:
    load = load_index
    earlier = worn.snapshot()

    def busy(*arguments):
        index = load(*arguments)
        worn.commit(complete(worn, NEW, ["file:///0"]))
        worn.commit(complete(worn, {"file:///1": OLD["file:///1"]}, ["file:///2"]))
        return index

    monkeypatch.setattr(store.maintenance.erasure, "load_index", busy)
    assert worn.rebuild_index(force=True)
    documents: oracle.Documents = {"file:///0": NEW["file:///0"], "file:///1": OLD["file:///1"]}
    check(worn, documents)
    assert worn.snapshot().commit > earlier.commit
    assert worn.document("file:///2") is None
    # Later commits work, and a start gives the same result, with and without the checkpoint.
    worn.commit(complete(worn, {"file:///9": OLD["file:///9"]}, []))
    documents["file:///9"] = OLD["file:///9"]
    check(worn, documents)
    assert worn.write_checkpoint()
    for _ in range(2):
        worn.close()
        again = open_store(tmp_path)
        try:
            check(again, documents)
            again.commit(complete(again, {"file:///8": OLD["file:///8"]}, []))
            documents["file:///8"] = OLD["file:///8"]
            check(again, documents)
        finally:
            again.close()


@pytest.mark.slow
def test_checkpoint_can_be_written_after_a_rebuild(worn) -> None:
    """No checkpoint is written for an index of mostly purged rows; without the rebuild, only a restart would allow the next."""
    assert not worn.write_checkpoint()
    assert worn.rebuild_index(force=True)
    assert worn.write_checkpoint()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[Any]]]:
    """Returns every index and snapshot that is made. Nothing is collected, as a daemon collects nothing that it began with."""
    found: list[weakref.ref[Any]] = []

    def remember(kind: type) -> None:
        make = vars(kind)["__init__"]

        def remembered(self, *arguments, **settings) -> None:
            make(self, *arguments, **settings)
            found.append(weakref.ref(self))

        monkeypatch.setattr(kind, "__init__", remembered)

    remember(LiveIndex)
    remember(Snapshot)
    gc.disable()
    yield found
    gc.enable()


@pytest.mark.slow
def test_replaced_index_and_its_scopes_and_past_indexes_are_freed_at_once(made, worn) -> None:
    worn.commit(complete(worn, OLD, []))
    earlier = worn.snapshot().commit
    worn.commit(complete(worn, NEW, ["file:///9"]))
    some = {"file:///1", "file:///5"}
    for moment in (None, earlier):
        scope = worn.scoped("some", lambda document: document.uri in some, moment)
        for snapshot in (scope.snapshot, worn.snapshot()):
            snapshot.linked_document("file:///1", "file:///5")
            snapshot.adjacency(EdgeWeights(relation=1.0, mention=1.0, synonym=1.0)).degrees.sum()
    del scope, snapshot
    assert len(made) > 8
    assert worn.rebuild_index(force=True)
    assert [each() for each in made if each() is not None] == [worn._index, worn.snapshot()]
