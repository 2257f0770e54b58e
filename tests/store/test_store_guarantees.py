"""Guarantees of a store besides order independence: atomicity, permanent forgetting, clear refusals."""

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import timedelta

import numpy as np
import pytest

import store.maintenance.erasure as erasure
from store import as_of
from store.change.rewind import rewind
from store.errors import EncoderMismatch, IncompleteBatch, NewerFormat, StoreDamaged, StoreError
from store.export.json_lines import export_lines
from store.index.live_index import LiveIndex
from store.lance.schema import FORMAT
from store.store import Store
from store.types import Batch, EncoderIdentity, passage_id
from store.verify.verify import verify
from tests.store import oracle
from tests.store.small_store import complete, extract, open_store, reading

SECRET = "text 7 zanzibar"


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store") as opened:
        yield opened


def add(store, documents, removed=()):
    return store.commit(complete(store, documents, list(removed)))


def bytes_on_disk(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
def test_purged_text_is_not_on_the_disk(store):
    add(store, {"a": [("T", SECRET, None)], "b": [("T", "text 2", None)]})
    assert SECRET.encode() in bytes_on_disk(store.folder)
    add(store, {}, ["a"])
    assert store.purge(timedelta(0)) > 0
    store.compact()
    store.purge(timedelta(0))
    assert SECRET.encode() not in bytes_on_disk(store.folder)
    assert oracle.same(export_lines(store.snapshot()), oracle.export({"b": [("T", "text 2", None)]}, extract)) is None


def test_word_of_purged_passages_is_not_in_the_next_checkpoint(store):
    word = b"zanzibar"
    held = {f"d{i}": [("T", f"text {i} plain", None)] for i in range(60)}
    add(store, held | {"a": [("T", SECRET, None)]})
    assert store.write_checkpoint()
    assert word in bytes_on_disk(store.folder)
    add(store, {}, ["a"])
    assert store.purge(timedelta(0)) > 0
    store.write_checkpoint()
    assert list(store.folder.rglob("postings-terms*")), "there is no snapshot"
    assert word not in bytes_on_disk(store.folder)
    store.close()
    with open_store(store.folder) as again:
        assert again.opened_from.startswith("checkpoint")
        assert not again.snapshot().bm25("zanzibar").any()
        assert again.snapshot().bm25("plain").any()
        add(again, {"a": [("T", SECRET, None)]})
        assert np.flatnonzero(again.snapshot().bm25("zanzibar")).tolist() == [61]
        assert again.write_checkpoint()
    with open_store(store.folder) as again:
        assert np.flatnonzero(again.snapshot().bm25("zanzibar")).tolist() == [61]
        assert verify(again).problems == []


@pytest.mark.slow
def test_single_purged_passage_among_many_is_not_on_the_disk(store):
    held = {f"d{i}": [("T", f"text {i} plain", None)] for i in range(60)}
    add(store, held | {"a": [("T", SECRET, None)]})
    add(store, {}, ["a"])
    assert store.purge(timedelta(0)) > 0
    assert SECRET.encode() not in bytes_on_disk(store.folder)
    assert oracle.same(export_lines(store.snapshot()), oracle.export(held, extract)) is None
    assert verify(store).problems == []


def test_purged_document_can_be_added_again(tmp_path):
    documents = {"a": [("T", SECRET, None)]}
    with open_store(tmp_path) as store:
        add(store, documents)
        add(store, {}, ["a"])
        store.purge(timedelta(0))
        add(store, documents)
        assert oracle.same(export_lines(store.snapshot()), oracle.export(documents, extract)) is None
    with open_store(tmp_path) as store:
        assert oracle.same(export_lines(store.snapshot()), oracle.export(documents, extract)) is None


@pytest.mark.slow
def test_purge_removes_only_triples_of_the_replaced_extraction(tmp_path):
    """A passage extracted again by a better extractor: the first extraction is deleted once no commit that shows it is kept."""
    documents = {"a": [("T", "text 4 secret", None)], "b": [("T", "text 1", None)]}
    first = [(f"zanzibar {i}", "is", f"zanzibar {i + 1}") for i in range(3)]
    with open_store(tmp_path) as store:
        read_first = complete(store, documents, [], lambda title, text: first if "4" in text else extract(title, text))
        store.commit(read_first)
        read = store.snapshot().commit
        store.commit(complete(store, {}, [], extract, [("T", "text 4 secret")]))
        store.write_checkpoint()
        assert store.purge(timedelta(days=1)) == 0
        assert any("zanzibar 0" in line for line in export_lines(store.snapshot_at(read)))
        assert store.purge(timedelta(0)) > 0
        assert b"zanzibar" not in bytes_on_disk(store.folder)
        assert oracle.same(export_lines(store.snapshot()), oracle.export(documents, extract)) is None
        assert verify(store).problems == []
        assert store.rebuild_index(force=True)
    for snapshot in tmp_path.glob("snapshot-*"):
        shutil.rmtree(snapshot)
    with open_store(tmp_path) as store:
        assert oracle.same(export_lines(store.snapshot()), oracle.export(documents, extract)) is None
        assert sorted(store.extracted_triples(passage_id("T", "text 4 secret"))) == sorted(extract("T", "text 4"))


@pytest.mark.slow
def test_replaced_extraction_is_kept_while_a_retained_commit_shows_it(tmp_path):
    documents = {"a": [("T", "text 4", None)], "b": [("T", "text 1", None)]}
    with open_store(tmp_path) as store:
        add(store, documents)
        then = store.snapshot()
        time.sleep(0.02)
        add(store, {}, ["b"])
        kept_from = time.time()
        time.sleep(0.02)
        store.commit(complete(store, {}, [], reading_again, [("T", "text 4")]))
        assert store.purge(timedelta(seconds=time.time() - kept_from)) > 0
        assert then.commit < store.horizon < store.snapshot().commit
        del documents["b"]
        assert oracle.same(export_lines(store.snapshot_at(store.horizon)), oracle.export(documents, extract)) is None
        assert oracle.same(export_lines(store.snapshot()), oracle.export(documents, reading_again)) is None
        assert store.rebuild_index(force=True)
    with open_store(tmp_path) as store:
        assert oracle.same(export_lines(store.snapshot_at(store.horizon)), oracle.export(documents, extract)) is None


def reading_again(title, text):
    return reading(title, text, 1)


@pytest.mark.slow
def test_query_of_an_earlier_commit_succeeds_during_a_purge(store, monkeypatch):
    """An unneeded text is purged while an earlier commit, which is still kept, is being loaded."""
    documents = {f"d{i}": [("T", f"text {i}", None)] for i in range(5)}
    add(store, documents)
    add(store, {}, ["d4"])
    looked, kept_from = store.snapshot().commit, time.time()
    time.sleep(0.02)
    add(store, {"late": [("T", "text 6", None)]})

    def meanwhile(*given):
        if not purged:
            purged.append(store.purge(timedelta(seconds=time.time() - kept_from)))
            raise KeyError("what was just forgotten")
        return rewind(*given)

    purged: list[int] = []
    monkeypatch.setattr(as_of, "rewind", meanwhile)
    del documents["d4"]
    assert oracle.same(export_lines(store.snapshot_at(looked)), oracle.export(documents, extract)) is None
    assert purged[0] > 0
    assert store.horizon == looked


@pytest.mark.slow
def test_purge_trims_the_log_and_keeps_source_positions(tmp_path):
    """A year of commits does not leave a year of rows for the next start; the sources' positions are kept."""
    with open_store(tmp_path) as store:
        add(store, {"stays": [("T", "text 1", None)], "goes": [("T", "text 2", None)]})
        add(store, {}, ["goes"])
        for i in range(30):
            add(store, {"edited": [("T", f"text {i}", None)]})
        positions, horizon = dict(store.positions), store.snapshot().commit
        assert store._tables.rows("commits") > 30
        store.purge(timedelta(0))
        assert store._tables.rows("commits") < 12
        assert store.horizon == horizon
        assert dict(store.positions) == positions
    with open_store(tmp_path) as store:
        assert dict(store.positions) == positions
        assert store.horizon == horizon
        with pytest.raises(StoreError, match=f"commit {horizon} is the earliest"):
            store.snapshot_at(horizon - 1)
        assert verify(store).problems == []
        add(store, {"edited": [("T", "text 3", None)]})


@pytest.mark.slow
def test_log_of_additions_only_is_trimmed_above_the_row_limit(store, monkeypatch):
    for i in range(12):
        add(store, {f"d{i}": [("T", f"text {i % 9}", None)]})
    rows = store._tables.rows("commits")
    store.purge(timedelta(0))
    assert store._tables.rows("commits") == rows, "nothing is worth giving up a look back for"
    monkeypatch.setattr(erasure, "TRIM_MIN_ROWS", 1)
    for offset in range(3):
        store.commit(Batch(positions={"topic": offset}))
    store.purge(timedelta(0))
    # All three had the topic's position, and the last still has; the trim is itself a commit.
    assert store._tables.rows("commits") == rows + 3 - 2 + 1


def test_nothing_is_purged_that_a_kept_commit_needs(store):
    first = add(store, {"a": [("T", SECRET, None)]})
    add(store, {}, ["a"])
    assert store.purge(timedelta(hours=1)) == 0
    assert (
        oracle.same(export_lines(store.snapshot_at(first.seq)), oracle.export({"a": [("T", SECRET, None)]}, extract))
        is None
    )


def test_passage_added_again_is_neither_extracted_nor_encoded(store):
    add(store, {"a": [("T", "text 4", None)]})
    add(store, {}, ["a"])
    batch = complete(store, {"b": [("T", "text 4", None)]}, [])
    assert not batch.extractions
    assert not batch.passage_vectors
    assert not batch.phrase_vectors
    assert not batch.triple_vectors


@pytest.mark.slow
def test_tables_ahead_of_the_last_commit_are_repaired_at_opening(tmp_path):
    documents = {"a": [("T", "text 4", None)]}
    with open_store(tmp_path) as store:
        add(store, documents)
        # The state after a process ended between a flush's appends and its mark.
        store._tables.writer().add_commits(store._tables.pending)
    with open_store(tmp_path) as store:
        assert set(store.repaired_tables) >= {"documents", "passages"}
        assert oracle.same(export_lines(store.snapshot()), oracle.export(documents, extract)) is None
        add(store, {"b": [("T", "text 3", None)]})
        both = documents | {"b": [("T", "text 3", None)]}
        assert oracle.same(export_lines(store.snapshot()), oracle.export(both, extract)) is None


def test_commit_that_fails_in_the_synonym_search_changes_nothing(store, monkeypatch):
    documents = {"a": [("T", "text 4", None)]}
    add(store, documents)
    more = {"b": [("T", "text 3", None)]}

    def no_room(*_):
        raise MemoryError

    with monkeypatch.context() as patched, pytest.raises(MemoryError):
        patched.setattr("store.change.plan.plan_synonyms", no_room)
        add(store, more)
    assert oracle.same(export_lines(store.snapshot()), oracle.export(documents, extract)) is None
    add(store, more)
    assert oracle.same(export_lines(store.snapshot()), oracle.export(documents | more, extract)) is None
    assert verify(store).problems == []


@pytest.mark.slow
def test_a_snapshot_stays_what_it_was(store):
    add(store, {"a": [("T", "text 4", None)]})
    before = store.snapshot()
    lines = list(export_lines(before))
    for i in range(5):
        add(store, {f"n{i}": [("U", f"text {i}", None)]}, ["a"])
    store.fold()
    assert list(export_lines(before)) == lines


@pytest.mark.process
def test_second_process_is_refused_with_pid_and_folder_of_the_owner(store):
    code = (
        "import sys; from pathlib import Path; from store.errors import StoreLocked\n"
        "from store.log.store_lock import StoreLock\n"
        "try: StoreLock(Path(sys.argv[1]))\n"
        "except StoreLocked as error: print(error.pid, error)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(store.folder)], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert said.startswith(f"{os.getpid()} ")
    assert str(store.folder) in said


def test_closed_store_can_be_opened_again(tmp_path):
    open_store(tmp_path).close()
    open_store(tmp_path).close()


def test_another_encoder_is_refused_by_name(tmp_path):
    open_store(tmp_path).close()
    with pytest.raises(EncoderMismatch, match=r"oracle \(8 dimensions\).*other \(9\)"):
        Store(tmp_path, EncoderIdentity("other", 9))


def test_a_newer_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("store.log.commits.FORMAT", FORMAT + 1)
    open_store(tmp_path).close()
    monkeypatch.undo()
    with pytest.raises(NewerFormat, match=rf"format {FORMAT + 1}.*reads up to {FORMAT}"):
        open_store(tmp_path)


def test_a_table_that_lost_a_commit_is_damage_not_an_empty_memory(tmp_path):
    with open_store(tmp_path) as store:
        add(store, {"a": [("T", "text 4", None)]})
    shutil.rmtree(tmp_path / "documents.lance")
    with pytest.raises(StoreDamaged, match="documents"):
        open_store(tmp_path)


def test_an_incomplete_batch_changes_nothing(store):
    add(store, {"a": [("T", "text 4", None)]})
    lines = list(export_lines(store.snapshot()))
    batch = complete(store, {"b": [("T", "text 3", None)]}, [])
    with pytest.raises(IncompleteBatch, match="the batch lacks"):
        store.commit(type(batch)(batch.documents, (), batch.passages, batch.extractions))
    assert list(export_lines(store.snapshot())) == lines
    add(store, {"b": [("T", "text 3", None)]})


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_undoes_the_commit_and_the_store_goes_on(tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)], check=False, capture_output=True
    )
    if done.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        with open_store(mount / "store") as store:
            add(store, {"a": [("T", "text 4", None)]})
            lines = list(export_lines(store.snapshot()))
            filler = mount / "filler"
            fd = os.open(filler, os.O_WRONLY | os.O_CREAT)
            with pytest.raises(OSError, match="No space"):
                while True:
                    os.write(fd, b"x" * 4096)
            os.close(fd)
            with pytest.raises((OSError, RuntimeError)):
                add(store, {"b": [("T", "text 3", None)]})
            assert list(export_lines(store.snapshot())) == lines
            filler.unlink()
            add(store, {"b": [("T", "text 3", None)]})
            expected = oracle.export({"a": [("T", "text 4", None)], "b": [("T", "text 3", None)]}, extract)
            assert oracle.same(export_lines(store.snapshot()), expected) is None
        with open_store(mount / "store") as store:
            assert oracle.same(export_lines(store.snapshot()), expected) is None
    finally:
        subprocess.run(["umount", str(mount)], check=False)


def test_export_lines_are_json_whatever_the_text(store):
    add(store, {"a": [("T\u2028", 'text 1 "quoted"\n\x00\u202e', None)]})
    assert all(json.loads(line)["kind"] for line in export_lines(store.snapshot()))


@pytest.mark.slow
def test_fault_while_applying_a_commit_to_the_index_corrupts_nothing(tmp_path, monkeypatch):
    """The tables contain the commit by then: a partly updated index would give wrong answers permanently."""
    documents = {"a": [("T", "text 1", None), ("T", "text 3", None)], "b": [("T", "text 2", None)]}
    with open_store(tmp_path) as store:
        add(store, {"old": [("T", "text 5", None)], "kept": [("T", "text 4", None)]})
        with monkeypatch.context() as broken:
            broken.setattr(LiveIndex, "apply", half)
            committed = add(store, documents, ["old"])
        assert (committed.born, committed.died) == (3, 1)
        documents["kept"] = [("T", "text 4", None)]
        assert oracle.same(export_lines(store.snapshot()), oracle.export(documents, extract)) is None
        documents["c"] = [("T", "text 6", None)]
        add(store, {"c": documents["c"]})
        store.fold()
        assert oracle.same(export_lines(store.snapshot()), oracle.export(documents, extract)) is None
        assert verify(store).problems == []
    with open_store(tmp_path) as store:
        assert oracle.same(export_lines(store.snapshot()), oracle.export(documents, extract)) is None


@pytest.mark.slow
def test_commit_whose_log_record_cannot_be_flushed_is_discarded(tmp_path, monkeypatch):
    """It was not acknowledged: its record must not coexist with that of the next commit with the same number."""
    with open_store(tmp_path) as store:
        add(store, {"a": [("T", "text 1", None)]})

        def fails(_file):
            raise OSError("Input/output error")

        with monkeypatch.context() as broken:
            broken.setattr("store.log.write_ahead_log.os.fdatasync", fails)
            with pytest.raises(OSError, match="Input/output"):
                add(store, {"b": [("T", "text 2", None)]})
        add(store, {"c": [("T", "text 3", None)]})
        assert verify(store).problems == []
        seqs = store._tables.read("commits")["seq"].to_pylist()
        assert len(seqs) == len(set(seqs))
    documents = {"a": [("T", "text 1", None)], "c": [("T", "text 3", None)]}
    with open_store(tmp_path) as store:
        assert oracle.same(export_lines(store.snapshot()), oracle.export(documents, extract)) is None


def half(index, delta):
    index.add_passages(delta.passages)
    raise BufferError("a fault of ours")


def test_export_has_no_terminal_control_characters_and_one_object_a_line(store):
    text = "text 1 \x9b31m red \x7f, two\u2028lines\x85"
    add(store, {"a": [("T", text, None)]})
    lines = list(export_lines(store.snapshot()))
    assert len("\n".join(lines).splitlines()) == len(lines)
    assert not any(ord(character) in range(0x7F, 0xA0) for line in lines for character in line)
    assert json.loads(lines[0])["text"] == text
