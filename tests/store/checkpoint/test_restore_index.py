"""A start from a checkpoint gives the same memory as from the tables, and never uses damaged data."""

import json
import shutil
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from daemon.app.open_memory import write_last_checkpoint
from store.checkpoint.files import CheckpointTimeout
from store.checkpoint.files import newest as newest_or_none
from store.durable_files import json_checksum
from store.export.json_lines import export_lines
from store.index.file_arrays import link_file, mapped_inode
from store.store import Store
from store.types import EncoderIdentity, SynonymRule
from tests.store import oracle
from tests.store.small_store import complete, extract, open_store


def newest(folder: Path) -> Path:
    """Returns the newest checkpoint, which exists."""
    found = newest_or_none(folder)
    assert found is not None
    return found


def add(store, documents, removed=()):
    return store.commit(complete(store, documents, list(removed)))


def lines(store):
    return list(export_lines(store.snapshot()))


def documents(first, last):
    return {f"d{i}": [("T" * (i % 3), f"text {i}", None)] for i in range(first, last)}


@pytest.fixture
def saved(tmp_path):
    """Returns a store with a checkpoint and commits after it, and its export."""
    with open_store(tmp_path) as store:
        add(store, documents(0, 12))
        add(store, {}, ["d3"])
        assert store.write_checkpoint()
        add(store, documents(10, 20) | {"d1": [("U", "text 77", None)]}, ["d4", "d5"])
        add(store, {"d3": [("", "text 3", (("amx", "is", "bob"), ("bo", "is", "bob")))]})
        return tmp_path, lines(store), store.positions


@pytest.mark.slow
def test_start_from_checkpoint_equals_start_from_tables(saved):
    folder, expected, positions = saved
    with open_store(folder) as store:
        assert store.opened_from.startswith("checkpoint of commit")
        assert lines(store) == expected
        assert store.positions == positions
        assert store.snapshot().bm25("text 77").tolist() == pytest.approx(bm25_of_rebuilt(folder), abs=1e-5)


def test_start_from_checkpoint_loads_later_synonyms_without_a_search(saved, monkeypatch):
    def searched(*_, **__):
        raise AssertionError("a start searches for synonyms")

    folder, expected, _ = saved
    monkeypatch.setattr("store.change.synonym_change.similar", searched)
    with open_store(folder) as store:
        assert store.opened_from.startswith("checkpoint of commit")
        assert lines(store) == expected


def bm25_of_rebuilt(folder):
    other = folder.parent / "rebuilt"
    shutil.copytree(folder, other, ignore=shutil.ignore_patterns("snapshot-*", "lock"))
    with open_store(other) as store:
        assert store.opened_from.startswith("rebuilt")
        return store.snapshot().bm25("text 77").tolist()


@pytest.mark.slow
def test_commits_after_start_from_checkpoint_give_the_expected_memory(saved):
    folder, _, _ = saved
    with open_store(folder) as store:
        held = documents(0, 30)
        del held["d7"]
        add(store, held, ["d7"])
        assert oracle.same(lines(store), oracle.export(held, extract)) is None
    with open_store(folder) as store:
        assert oracle.same(lines(store), oracle.export(held, extract)) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["data", "indices", "ids", "vectors", "terms", "text", "hashes", "documents", "manifest"]
)
@pytest.mark.parametrize("how", ["cut", "missing", "changed"])
def test_damaged_checkpoint_is_rejected_and_named_in_opened_from(saved, kind, how):
    folder, expected, _ = saved
    snapshot = newest(folder)
    file = sorted(path for path in snapshot.iterdir() if kind in path.name)[0]
    content = file.read_bytes()
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(content[:-1] if how == "cut" else content[:-1] + bytes([content[-1] ^ 1]))
    with open_store(folder) as store:
        if (kind, how) == ("vectors", "changed"):
            # A start checks only the size of large files, and reads them later.
            assert store.opened_from.startswith("checkpoint")
            assert not store.check_checkpoint()
            assert newest_or_none(folder) is None
            assert all(
                vector.tolist() == oracle.rounded_vectors(oracle.vector(each.full)).tolist()
                for each, vector in vectors(store)
            )
        else:
            assert store.opened_from.startswith("rebuilt from the tables")
            assert snapshot.name in store.opened_from
        assert lines(store) == expected


@pytest.mark.slow
def test_intact_checkpoint_passes_the_full_check_before_the_next_one(saved):
    folder, expected, _ = saved
    with open_store(folder) as store:
        assert store.check_checkpoint()
        assert store.write_checkpoint()
    with open_store(folder) as store:
        assert store.opened_from.startswith("checkpoint")
        assert lines(store) == expected


@pytest.mark.slow
def test_checkpoint_refused_for_other_settings_is_not_used_by_a_later_start(tmp_path):
    """Row numbers of purged rows are reused after a start from the tables; the checkpoint maps them to the old rows."""
    held = documents(10, 25)
    with open_store(tmp_path) as store:
        add(store, held | {"b": [("T", "text 4", None)]})
        add(store, {}, ["b"])
        assert store.write_checkpoint()
        assert store.purge(timedelta(0)) > 0
    with Store(tmp_path, EncoderIdentity("oracle", oracle.DIM), SynonymRule(0.9)) as store:
        assert "other settings" in store.opened_from
        held["c"] = [("T", "text 3", None)]
        add(store, {"c": held["c"]})
    with open_store(tmp_path) as store:
        again = {passage.full: vector for passage, vector in vectors(store)}
        assert again["T\ntext 3"].tolist() == oracle.rounded_vectors(oracle.vector("T\ntext 3")).tolist()
        assert store.opened_from.startswith("rebuilt")


def vectors(store):
    """Returns each living passage with its vector."""
    snapshot = store.snapshot()
    rows = np.flatnonzero(snapshot.passage_alive)
    return zip((snapshot.passage(row) for row in rows), snapshot.passage_vectors.rows(rows), strict=True)


@pytest.mark.slow
def test_unfinished_checkpoint_is_not_used(saved):
    folder, expected, _ = saved
    newest(folder).rename(folder / "snapshot.new")
    with open_store(folder) as store:
        assert store.opened_from.startswith("rebuilt")
        assert lines(store) == expected
        assert store.write_checkpoint()
    with open_store(folder) as store:
        assert store.opened_from.startswith("checkpoint")
        assert lines(store) == expected


def test_checkpoint_of_another_history_is_not_used(saved):
    folder, expected, _ = saved
    manifest = newest(folder) / "manifest.json"
    content = json.loads(manifest.read_text())
    del content["checksum"]
    content["time"] -= 1
    manifest.write_text(json.dumps(content | {"checksum": json_checksum(content)}))
    with open_store(folder) as store:
        assert "no commit that this store keeps" in store.opened_from
        assert lines(store) == expected


def test_checkpoint_with_changed_manifest_is_not_used(saved):
    folder, expected, _ = saved
    manifest = newest(folder) / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"time": content["time"] + 1}))
    with open_store(folder) as store:
        assert "manifest.json is damaged" in store.opened_from
        assert lines(store) == expected


@pytest.mark.slow
def test_only_newest_checkpoint_is_kept_and_none_is_written_without_changes(saved):
    folder, _, _ = saved
    with open_store(folder) as store:
        assert store.write_checkpoint()
        assert not store.write_checkpoint()
        assert list(folder.glob("snapshot*")) == [newest(folder)]


@pytest.mark.slow
def test_store_opens_with_expected_memory_after_purge_and_checkpoint(saved):
    folder, expected, _ = saved
    with open_store(folder) as store:
        assert store.purge(timedelta(0)) > 0
        store.write_checkpoint()
        assert lines(store) == expected
    with open_store(folder) as store:
        assert lines(store) == expected
        add(store, documents(40, 50))
        after = lines(store)
    with open_store(folder) as store:
        assert lines(store) == after


@pytest.mark.slow
def test_vectors_in_several_checkpoint_blocks_are_reused_and_loaded_unchanged(tmp_path, monkeypatch):
    for module in ("index.vectors.matrix", "checkpoint.files"):
        monkeypatch.setattr(f"store.{module}.BLOCK_VECTORS", 8)
    with open_store(tmp_path) as store:
        add(store, documents(0, 30))
        store.write_checkpoint()
        first = {path.name: path.stat().st_ino for path in newest(tmp_path).glob("phrases-vectors-*")}
        add(store, {"more": [("T", "text 1", tuple((f"am{i}", "is", f"bo{i}") for i in range(20)))]})
        store.write_checkpoint()
        second = {path.name: path.stat().st_ino for path in newest(tmp_path).glob("phrases-vectors-*")}
        # The mapped blocks are the written ones, except the last block, which grows.
        used = [mapped_inode(block) for _, block in store.snapshot().phrase_vectors.blocks()]
        assert used[:-1] == [node for _, node in sorted(second.items())][:-1]
        assert any(second[name] == node for name, node in first.items())
        vectors = store.snapshot().phrase_vectors.rows(np.arange(store.snapshot().n_phrases))
    with open_store(tmp_path) as store:
        snapshot = store.snapshot()
        assert store.opened_from.startswith("checkpoint")
        assert np.array_equal(snapshot.phrase_vectors.rows(np.arange(snapshot.n_phrases)), vectors)
        add(store, {"yet more": [("T", "text 2", tuple((f"cy{i}", "is", f"bo{i}") for i in range(20)))]})
        assert np.array_equal(store.snapshot().phrase_vectors.rows(np.arange(len(vectors))), vectors)


def test_mapped_text_blocks_are_reused_by_the_next_checkpoint(tmp_path, monkeypatch):
    for module in ("index.columns.texts", "checkpoint.files"):
        monkeypatch.setattr(f"store.{module}.BLOCK_TEXTS", 8)
    with open_store(tmp_path) as store:
        add(store, documents(0, 30))
        store.write_checkpoint()
        first = store._index.phrases.saved.arrays
        add(store, {"more": [("T", "text 1", tuple((f"am{i}", "is", f"bo{i}") for i in range(20)))]})
        texts = list(store._index.phrases)
        store.write_checkpoint()
        second = store._index.phrases.saved.arrays
        whole = len(first) - 1
        assert len(second) > whole > 0
        for before, now in zip(first[:whole], second, strict=False):
            assert all(one is other for one, other in zip(before, now, strict=True))
        assert list(store._index.phrases) == texts


@pytest.mark.slow
def test_checkpoint_links_vectors_in_nameless_files_instead_of_writing_them(tmp_path, monkeypatch):
    for module in ("index.vectors.matrix", "checkpoint.files"):
        monkeypatch.setattr(f"store.{module}.BLOCK_VECTORS", 8)
    monkeypatch.setattr("store.index.file_arrays.FILE_MIN_BYTES", 1)
    named = []

    def link(*given):
        named.append(link_file(*given))
        return named[-1]

    monkeypatch.setattr("store.index.part.link_file", link)
    with open_store(tmp_path) as store:
        add(store, documents(0, 30))
        expected = lines(store)
        vectors = store.snapshot().phrase_vectors.rows(np.arange(store.snapshot().n_phrases))
        store.write_checkpoint()
        assert named.count(True) >= len(vectors) // 8
        assert lines(store) == expected
        add(store, documents(30, 40))
        after = lines(store)
    with open_store(tmp_path) as store:
        assert store.opened_from.startswith("checkpoint")
        assert lines(store) == after
        assert np.array_equal(store.snapshot().phrase_vectors.rows(np.arange(len(vectors))), vectors)


@pytest.mark.slow
def test_interrupted_checkpoint_leaves_only_the_previous_checkpoint(saved):
    folder, expected, _ = saved
    with open_store(folder) as store:
        before = newest(folder)
        for looks in (0, 3, 12, 70):
            left = iter(range(looks))
            written: list[bool] = []

            def is_late(left=left, written=written):
                written.append((folder / "snapshot.new" / "documents.arrow").exists())
                return next(left, None) is None

            with pytest.raises(CheckpointTimeout):
                store.write_checkpoint(is_late)
            assert looks < 70 or written[-1], "the documents' files are not written yet"
            assert [path.name for path in folder.glob("snapshot*")] == [before.name]
            assert "snapshot.new/documents" not in Path("/proc/self/maps").read_text(), "deleted files occupy the disk"
        assert lines(store) == expected
        assert store.write_checkpoint(lambda: False)
        assert newest(folder) != before
    with open_store(folder) as store:
        assert lines(store) == expected


@pytest.mark.slow
def test_checkpoint_times_out_while_maintenance_is_paused(saved):
    """A running renewal or checkpoint delays it."""
    folder, _, _ = saved
    with open_store(folder) as store, store.maintenance_paused(), pytest.raises(CheckpointTimeout):
        store.write_checkpoint(lambda: True)


@pytest.mark.slow
def test_last_checkpoint_after_its_deadline_is_skipped_without_damage(saved):
    folder, expected, _ = saved
    with open_store(folder) as store:
        before = newest(folder)
        write_last_checkpoint(store, time.monotonic() - 1)
        assert newest(folder) == before
        write_last_checkpoint(store, time.monotonic() + 60)
        assert newest(folder) != before
        assert lines(store) == expected
