"""A purge: memory and tables agree after each of its steps, despite concurrent commits and interruptions."""

import shutil
from datetime import timedelta

import pytest

import store.maintenance.retention as retention
from store import as_of
from store.change.rewind import rewind
from store.checkpoint import writer
from store.errors import StoreError
from store.export.json_lines import export_lines
from store.index.live_index import LiveIndex
from store.maintenance.erasure import Erasure
from store.types import passage_id
from store.verify.verify import verify
from tests.store import oracle
from tests.store.small_store import complete, extract, open_store, reading

OLD = {f"d{i}": [("T", f"text {i}", None)] for i in range(9)}


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    """Gives a small purge as many slices as a large one."""
    monkeypatch.setattr(retention, "PURGE_SLICE_ROWS", 3)


@pytest.fixture
def folder(tmp_path):
    """Returns a store with much to purge: documents removed, edited and extracted again, and one that stays."""
    with open_store(tmp_path) as store:
        add(store, OLD)
        add(store, {"d7": [("", "text 13", None)]}, ["d1", "d2", "d3", "d4"])
        store.commit(complete(store, {}, [], reading_again, [("T", "text 8")]))
    return tmp_path


LEFT = {uri: passages for uri, passages in OLD.items() if uri in ("d0", "d5", "d6", "d8")} | {
    "d7": [("", "text 13", None)]
}


def add(store, documents, removed=()):
    return store.commit(complete(store, documents, list(removed)))


def reading_again(title, text):
    return reading(title, text, 1 if text == "text 8" else 0)


def check(store, documents, extract=reading_again):
    assert oracle.same(export_lines(store.snapshot()), oracle.export(documents, extract)) is None
    assert verify(store).problems == []


def without_snapshots(folder):
    for snapshot in folder.glob("snapshot-*"):
        shutil.rmtree(snapshot)
    return folder


def before_slice(monkeypatch, store, number, act):
    """Calls `act(store)` before slice `number` of the next purge; returns a list that has an entry once done."""
    delete, seen = Erasure._delete, []
    done: list[bool] = []

    def act_then_delete(erasure, *given):
        seen.append(given)
        if len(seen) == number and not done:
            done.append(True)
            act(store)
        return delete(erasure, *given)

    monkeypatch.setattr(Erasure, "_delete", act_then_delete)
    return done


@pytest.mark.slow
def test_passage_added_with_triples_after_a_purge_has_no_extraction(tmp_path):
    """From the random tests: `verify` reported an extraction of the passage in memory that the tables did not have."""
    with open_store(tmp_path) as store:
        add(store, {"b": [("", "text 5", None)]})
        add(store, {}, ["b"])
        store.purge(timedelta(0))
        documents: oracle.Documents = {"e": [("", "text 5", (("cydd d", "has", "ambb"),))]}
        add(store, documents)
        assert verify(store).problems == []
        assert store.extraction_state(passage_id("", "text 5")) is None
        for _ in range(2):
            store.purge(timedelta(0))
        documents["b"] = [("", "text 5", None), ("T", "text 2", None)]
        add(store, {"b": documents["b"]})
        check(store, documents, extract)


@pytest.mark.slow
def test_purged_passage_added_again_is_verified_after_a_start_from_a_checkpoint(tmp_path):
    with open_store(tmp_path) as store:
        add(store, {"b": [("", "text 5", None)], "c": OLD["d1"]})
        add(store, {}, ["b"])
        assert store.write_checkpoint()
        store.purge(timedelta(0))
        add(store, {"e": [("", "text 5", (("cydd d", "has", "ambb"),))]})
    with open_store(tmp_path) as store:
        assert store.opened_from.startswith("checkpoint")
        assert verify(store).problems == []


SLICES = 12
SOME_SLICES = (1, 4, 8, SLICES)
"""Slices for concurrent commits: the first, the last and two between. Faults are tried at every slice."""


@pytest.mark.slow
@pytest.mark.parametrize("number", SOME_SLICES)
def test_documents_added_again_during_a_purge_are_kept(folder, monkeypatch, number):
    """Before each slice: with passages, extractions, triples and phrases that are about to be deleted or just were."""
    with open_store(folder) as store:
        back = {"n": [("T", "text 3", (("am", "is", "bo"),))], "d2": OLD["d2"], "d4": OLD["d4"]}
        done = before_slice(monkeypatch, store, number, lambda store: add(store, back, ["d0"]))
        assert store.purge(timedelta(0)) > 0
        assert done
        documents = {uri: passages for uri, passages in LEFT.items() if uri != "d0"} | back
        check(store, documents)
        add(store, {"d3": OLD["d3"]}, ["n"])  # now the extractor's triples count
        documents = documents | {"d3": OLD["d3"]}
        del documents["n"]
        check(store, documents)
        store.purge(timedelta(0))
        check(store, documents)
    with open_store(without_snapshots(folder)) as store:
        check(store, documents)


@pytest.mark.slow
@pytest.mark.parametrize("number", SOME_SLICES)
def test_batch_completed_during_a_purge_commits_without_missing_content(folder, monkeypatch, number):
    """A batch completed before one slice and committed two slices later, because encoding and extraction take that long."""
    back = {"n": [("T", "text 3", (("am", "is", "bo"),))], "d2": OLD["d2"], "d4": OLD["d4"]}
    batches = []
    with open_store(folder) as store:
        before_slice(monkeypatch, store, number, lambda store: batches.append(complete(store, back, [])))
        before_slice(monkeypatch, store, number + 2, lambda store: store.commit(batches.pop()))
        store.purge(timedelta(0))
        if batches:  # there were no more slices
            store.commit(batches.pop())
        check(store, LEFT | back)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, SLICES + 1))
def test_a_purge_that_ends_before_any_of_its_steps_leaves_a_whole_store(folder, monkeypatch, number):
    def ends(store):
        raise KeyboardInterrupt

    with open_store(folder) as store:
        with monkeypatch.context() as broken:
            before_slice(broken, store, number, ends)
            with pytest.raises(KeyboardInterrupt):
                store.purge(timedelta(0))
        check(store, LEFT)
        add(store, {"d3": OLD["d3"]})
    documents = LEFT | {"d3": OLD["d3"]}
    with open_store(without_snapshots(folder)) as store:
        check(store, documents)
        store.purge(timedelta(0))
        check(store, documents)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, SLICES + 1))
def test_power_loss_within_a_purge_slice_is_repaired_at_opening(folder, monkeypatch, number):
    """The slice's rows are deleted by then, without a commit."""
    asked = []

    def dies(*given):
        asked.append(given)
        if len(asked) == 1 + number:  # the first is of the flush before the purge
            raise KeyboardInterrupt
        write_mark(*given)

    store = open_store(folder)
    write_mark = store._commits._write_mark
    monkeypatch.setattr(store._commits, "_write_mark", dies)
    monkeypatch.setattr(store._commits, "_undo", lambda: None)
    with pytest.raises(KeyboardInterrupt):
        store.purge(timedelta(0))
    store.close()
    with open_store(without_snapshots(folder)) as store:
        assert store.repaired_tables
        check(store, LEFT)
        store.purge(timedelta(0))
        check(store, LEFT)


@pytest.mark.slow
@pytest.mark.parametrize("number", SOME_SLICES)
def test_failed_commit_during_a_purge_restores_no_purged_document(folder, monkeypatch, number):
    def fails(store):
        with monkeypatch.context() as full:
            full.setattr(store._commits, "append", no_space)
            with pytest.raises(OSError, match="No space"):
                add(store, {"n": [("T", "text 40", None)], "d2": OLD["d2"]})

    with open_store(folder) as store:
        done = before_slice(monkeypatch, store, number, fails)
        store.purge(timedelta(0))
        assert done
        check(store, LEFT)
        add(store, {"d2": OLD["d2"]})
        check(store, LEFT | {"d2": OLD["d2"]})


def no_space(*_):
    raise OSError("No space left on device")


@pytest.mark.slow
@pytest.mark.parametrize("number", SOME_SLICES)
def test_purge_stops_if_the_index_is_reloaded_and_a_later_purge_completes(folder, monkeypatch, number):
    """Its rows are those of the previous index."""

    def spoils(store):
        with monkeypatch.context() as broken:
            broken.setattr(LiveIndex, "apply", half)
            add(store, {"d1": OLD["d1"]}, ["d0"])

    with open_store(folder) as store:
        if number:
            before_slice(monkeypatch, store, number, spoils)
        else:
            slices = retention.Purge.slices

            def slices_late(purge, tables):
                found = slices(purge, tables)
                spoils(store)
                return found

            monkeypatch.setattr(retention.Purge, "slices", slices_late)
        store.purge(timedelta(0))
        monkeypatch.undo()
        documents = {uri: passages for uri, passages in (LEFT | {"d1": OLD["d1"]}).items() if uri != "d0"}
        check(store, documents)
        assert store.purge(timedelta(0)) > 0
        check(store, documents)
        add(store, {"d2": OLD["d2"]})
        check(store, documents | {"d2": OLD["d2"]})


@pytest.mark.slow
def test_row_numbers_in_a_checkpoint_are_not_reused_after_a_purge(tmp_path, monkeypatch):
    """Not even by an index that was reloaded after a fault."""
    # otherwise purging most of so small a store would prevent a checkpoint
    monkeypatch.setattr(writer, "MAX_PURGED_SHARE", 1.0)
    with open_store(tmp_path) as store:
        add(store, {uri: OLD[uri] for uri in ("d1", "d4")})
        add(store, {}, ["d4"])
        assert store.write_checkpoint()
        store.purge(timedelta(0))
        with monkeypatch.context() as broken:
            broken.setattr(LiveIndex, "apply", half)
            add(store, {"d1": OLD["d1"]})
        add(store, {"d3": OLD["d3"]})
        assert verify(store).problems == []
    with open_store(tmp_path) as store:
        assert store.opened_from.startswith("checkpoint")
        check(store, {"d1": OLD["d1"], "d3": OLD["d3"]})


def half(index, delta):
    index.add_passages(delta.passages)
    raise BufferError("a fault of ours")


@pytest.mark.slow
def test_query_of_a_commit_that_a_concurrent_purge_removes_fails(folder, monkeypatch):
    """A result from partly deleted rows would be wrong."""
    with open_store(folder) as store:
        past = rewind

        def meanwhile(*given):
            store.purge(timedelta(0))
            return past(*given)

        monkeypatch.setattr(as_of, "rewind", meanwhile)
        with pytest.raises(StoreError, match="is the earliest"):
            store.snapshot_at(store.snapshot().commit - 1)


@pytest.mark.slow
def test_next_purge_erases_files_left_by_an_interrupted_purge(tmp_path, monkeypatch):
    secret = "text 7 zanzibar"
    with open_store(tmp_path) as store:
        add(store, OLD | {"a": [("T", secret, None)]})
        add(store, {}, ["a"])
        with monkeypatch.context() as broken:
            broken.setattr(store._compactor, "reclaim", ends)
            with pytest.raises(KeyboardInterrupt):
                store.purge(timedelta(0))
        assert verify(store).problems == []
    with open_store(tmp_path) as store:
        store.purge(timedelta(0))
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert not [path for path in files if secret.encode() in path.read_bytes()]


def ends():
    raise KeyboardInterrupt
