"""Purged rows leave memory too, without any visible change."""

import gc
import weakref
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import store.store
from store.export.json_lines import export_lines
from store.index.live_index import LiveIndex
from tests.store import oracle
from tests.store.small_store import complete, extract, open_store

OLD = {f"file:///{i}": [("T", f"text {i}", None)] for i in range(40)}
NEW = {f"file:///{i}": [("", f"text {100 + i}", None)] for i in range(3)}


def held(memory: "store.store.Store") -> int:
    return sum(memory._index.stored().values())


def check(memory: "store.store.Store", documents: dict) -> None:
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
def test_purged_rows_leave_the_memory(worn) -> None:
    before = held(worn)
    assert worn.rebuild_index(force=True)
    assert held(worn) < before / 4
    assert worn._index.purged_rows == 0
    check(worn, {"file:///0": OLD["file:///0"]})


@pytest.mark.slow
def test_nothing_is_loaded_anew_for_a_few_rows(worn) -> None:
    assert not worn.rebuild_index()


@pytest.mark.slow
def test_commits_made_meanwhile_are_there_afterwards(worn, monkeypatch, tmp_path: Path) -> None:
    load = store.store.load_index
    earlier = worn.snapshot()

    def busy(*arguments):
        index = load(*arguments)
        worn.commit(complete(worn, NEW, ["file:///0"]))
        worn.commit(complete(worn, {"file:///1": OLD["file:///1"]}, ["file:///2"]))
        return index

    monkeypatch.setattr(store.store, "load_index", busy)
    assert worn.rebuild_index(force=True)
    documents = {"file:///0": NEW["file:///0"], "file:///1": OLD["file:///1"]}
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
def test_a_snapshot_is_written_again(worn) -> None:
    """No checkpoint is written for an index of mostly purged rows; without the rebuild, only a restart would allow the next."""
    assert not worn.write_checkpoint()
    assert worn.rebuild_index(force=True)
    assert worn.write_checkpoint()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[LiveIndex]]]:
    """Returns every index that is made, without garbage collections. A daemon collects nothing that it opened with."""
    indexes: list[weakref.ref[LiveIndex]] = []
    make = LiveIndex.__init__

    def remembered(index: LiveIndex, *arguments, **settings) -> None:
        make(index, *arguments, **settings)
        indexes.append(weakref.ref(index))

    monkeypatch.setattr(LiveIndex, "__init__", remembered)
    gc.disable()
    yield indexes
    gc.enable()


@pytest.mark.slow
def test_a_replaced_index_and_those_of_scopes_and_earlier_commits_are_freed_at_once(made, worn) -> None:
    worn.commit(complete(worn, OLD, []))
    earlier = worn.snapshot().commit
    worn.commit(complete(worn, NEW, ["file:///9"]))
    some = {"file:///1", "file:///5"}
    for moment in (None, earlier):
        worn.scoped("some", lambda document: document.uri in some, moment)
    worn.snapshot().linked_document("file:///1", "file:///5")
    assert len(made) > 3
    assert worn.rebuild_index(force=True)
    assert [each() for each in made if each() is not None] == [worn._index]
