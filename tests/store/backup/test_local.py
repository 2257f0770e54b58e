"""Backups, restores, and the errors of a damaged store, which must not answer wrongly."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from store.backup.local import backup, check_names, collect, restore
from store.backup_layout import SUMMARY
from store.errors import StoreDamaged, StoreError, StoreLocked
from store.lance.schema import TABLES
from store.snapshot import Snapshot
from store.untrusted_names import UnsafeName
from store.verify.verify import verify
from tests.store import oracle
from tests.store.small_store import complete, exported, extract, numbered_documents, open_store


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store") as opened:
        opened.commit(complete(opened, numbered_documents(0, 8), []))
        opened.commit(complete(opened, numbered_documents(6, 12), ["d1"]))
        yield opened


def test_verify_of_intact_store_reports_no_problems(store):
    found = verify(store)
    assert found.problems == []
    assert found.lines == len(exported(store))
    assert found.commit == store.snapshot().commit


def test_verify_and_backup_report_progress_of_each_step(store, tmp_path):
    said = []
    verify(store, lambda *step: said.append(step))
    backup(store, tmp_path / "backup", lambda *step: said.append(step))
    last: dict[str, tuple[int, int | None]] = {}
    for step, done, total in said:
        assert total is None or done <= total
        assert step not in last or last[step][0] <= done
        last[step] = (done, total)
    assert list(last) == [
        "reading the files",
        "reading the tables",
        "comparing stored content",
        "comparing exports",
        "comparing synonyms",
        "copying",
        "flushing to disk",
    ]
    assert all(done == total for step, (done, total) in last.items() if step not in ("copying",) and total is not None)


def test_verify_reports_edge_in_memory_that_is_missing_in_tables(store):
    store._index.matrices["relation"].add([0, 1], [1, 0], [1.0, 1.0])
    store.commit(complete(store, numbered_documents(20, 21), []))
    assert any('"relation"' in problem for problem in verify(store).problems)


def blank(vectors):
    vectors._blocks[0] = np.zeros_like(vectors._blocks[0])


def stated(index, row):
    """Returns the triples of the passage in a row."""
    return index.triples_of(np.array([row])).rows.tolist()


def a_passage(index):
    """Returns the row of a living passage that states something."""
    return next(row for row, users in enumerate(index.holders) if users and stated(index, row))


SPOILS = {
    "vector of the passage": lambda index: blank(index.passage_vectors),
    "vector of the phrase": lambda index: blank(index.phrase_vectors),
    "vector of the triple": lambda index: blank(index.triple_vectors),
    "words of the passage": lambda index: index.postings.extend(a_passage(index), "zanzibar"),
    "the triples of the passage": lambda index: index.matrices["incidence"].add(
        [a_passage(index)], [stated(index, a_passage(index))[0]], [-1.0]
    ),
    "the document d9 is only in the tables": lambda index: index.documents.pop("d9"),
    "the document d9 differs from the tables": lambda index: index.documents.update(
        d9=replace(index.documents["d9"], title="Another")
    ),
    "in memory, in": lambda index: index.holders.__setitem__(a_passage(index), {"d9": None, "other": None}),
    "was extracted by": lambda index: index.extraction_states.clear(),
}


@pytest.mark.slow
@pytest.mark.parametrize("told", SPOILS)
def test_verify_reports_memory_damage_that_an_export_does_not_show(store, told):
    expected = exported(store)
    SPOILS[told](store._index)
    store._live.snapshot = Snapshot(store._index, store.snapshot().commit, store.snapshot().time)
    assert exported(store) == expected
    problems = verify(store).problems
    assert problems
    assert any(told in problem for problem in problems), problems


@pytest.mark.slow
def test_backup_contains_its_commit_despite_later_commits_and_compaction(store, tmp_path):
    expected = exported(store)
    made = backup(store, tmp_path / "backup")
    assert made.commit == store.snapshot().commit
    store.commit(complete(store, numbered_documents(30, 40), ["d2", "d3"]))
    store.compact()
    with open_store(tmp_path / "backup") as other:
        assert exported(other) == expected
        assert verify(other).problems == []


@pytest.mark.slow
def test_restore_replaces_store_and_keeps_the_previous_store_aside(store, tmp_path):
    expected = exported(store)
    made = backup(store, tmp_path / "backup")
    store.write_checkpoint()
    store.commit(complete(store, numbered_documents(30, 40), []))
    with pytest.raises(StoreLocked):
        restore(tmp_path / "backup", store.folder)
    store.close()
    restored, aside = restore(tmp_path / "backup", store.folder)
    assert restored == made
    assert (aside / "documents.lance").is_dir()
    with open_store(store.folder) as again:
        assert exported(again) == expected
        again.commit(complete(again, numbered_documents(50, 52), []))
        assert verify(again).problems == []
    # Writes after a restore do not reach the backup, although they share files.
    with open_store(tmp_path / "backup") as other:
        assert exported(other) == expected


def test_accepted_uncommitted_documents_are_backed_up_and_restored(store, tmp_path):
    inbox = store.folder / "inbox"
    inbox.mkdir()
    (inbox / "000000000001.jsonl").write_text("accepted")
    (inbox / "000000000002.jsonl.part").write_text("not yet")
    made = backup(store, tmp_path / "backup")
    (inbox / "000000000001.jsonl").unlink()
    (inbox / "000000000003.jsonl").write_text("later")
    assert [path.name for path in store.folder.glob("inbox*")] == ["inbox"]
    store.close()
    restored, aside = restore(tmp_path / "backup", store.folder)
    assert restored == made
    assert {path.name: path.read_text() for path in inbox.iterdir()} == {"000000000001.jsonl": "accepted"}
    assert (aside / "inbox" / "000000000003.jsonl").read_text() == "later"


def test_backup_succeeds_if_an_inbox_file_disappears_while_it_is_copied(store, tmp_path, monkeypatch):
    """An accepted document's file is deleted once it is committed, even between being listed and being copied."""
    (store.folder / "inbox").mkdir()
    listed = Path.glob

    def glob(folder, pattern):
        yield from listed(folder, pattern)
        if folder == store.folder / "inbox":
            yield folder / "000000000009.jsonl"

    monkeypatch.setattr(Path, "glob", glob)
    assert backup(store, tmp_path / "backup").commit == store.snapshot().commit


def test_backup_into_existing_folder_or_into_the_store_is_refused(store, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    for target in (tmp_path / "full", store.folder / "inside"):
        with pytest.raises(StoreError):
            backup(store, target)


def test_restore_of_incomplete_backup_is_refused_and_store_is_unchanged(store, tmp_path):
    expected = exported(store)
    backup(store, tmp_path / "backup")
    store.close()
    sizes = json.loads((tmp_path / "backup" / "backup.json").read_text())["sizes"]
    (tmp_path / "backup" / next(name for name in sizes if name.startswith("phrases"))).unlink()
    for source in (tmp_path / "backup", tmp_path / "absent"):
        with pytest.raises(StoreError, match="not a complete backup"):
            restore(source, store.folder)
    with open_store(store.folder) as again:
        assert exported(again) == expected


def test_an_interrupted_restore_is_not_taken_for_a_store(store):
    store.close()
    (store.folder / "restoring").write_text("")
    with pytest.raises(StoreDamaged, match="interrupted"):
        open_store(store.folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("folder", ["data", "_versions"])
@pytest.mark.parametrize("how", ["cut", "missing"])
def test_table_with_damaged_last_file_is_restored_from_a_backup(tmp_path, name, folder, how):
    held = numbered_documents(0, 9)
    with open_store(tmp_path / "store") as store:
        store.commit(complete(store, numbered_documents(0, 6), []))
        store.commit(complete(store, numbered_documents(6, 9), []))
        expected = oracle.export(held, extract)
        backup(store, tmp_path / "backup")
    place = tmp_path / "store" / f"{name}.lance" / folder
    last = max(place.glob("*.lance" if folder == "data" else "*.manifest"), key=lambda path: path.stat().st_mtime_ns)
    content = last.read_bytes()
    # Not the file that the backup shares with the store, which is intact.
    last.unlink()
    if how == "cut":
        last.write_bytes(content[: len(content) // 2])
    with pytest.raises(StoreDamaged, match="restore"):
        open_store(tmp_path / "store")
    restore(tmp_path / "backup", tmp_path / "store")
    with open_store(tmp_path / "store") as store:
        assert oracle.same(exported(store), expected) is None
    shutil.rmtree(tmp_path / "store")


def test_a_backup_that_fails_leaves_nothing(store, tmp_path, monkeypatch):
    copied = []

    def no_room(*arguments, **options):
        copied.append(arguments)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("store.backup.local.write_summary", no_room)
    place = tmp_path / "backups"
    place.mkdir()
    with pytest.raises(OSError, match="No space left"):
        backup(store, place / "nightly")
    assert copied
    assert list(place.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setattr("store.backup.local.place_file", no_room)
    (store.folder / "inbox").mkdir(exist_ok=True)
    (store.folder / "inbox" / "000000000001.jsonl").write_text("accepted")
    with pytest.raises(OSError, match="No space left"):
        collect(store, tmp_path / "other", lambda *_: None)
    assert not list(store.folder.glob("inbox.*"))


@pytest.mark.parametrize(
    "name",
    [
        "lock",
        "restoring",
        "inbox",
        "snapshot-1",
        "snapshot-x/a",
        "other/file",
        "/etc/passwd",
        "inbox/../lock",
        "inbox/",
        "x.lance/a",
        "log",
        "log/other",
        "log/1.records",
        "",
    ],
)
def test_restore_refuses_backup_with_file_names_foreign_to_a_store(store, tmp_path, name):
    with pytest.raises(UnsafeName):
        check_names([name])
    backup(store, tmp_path / "backup")
    note = json.loads((tmp_path / "backup" / SUMMARY).read_text())
    (tmp_path / "backup" / SUMMARY).write_text(json.dumps({**note, "sizes": {**note["sizes"], name: 0}}))
    with pytest.raises(StoreError, match=r"is not a file of a store|not a usable name"):
        restore(tmp_path / "backup", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_backup_names_files_that_a_restore_accepts(store, tmp_path):
    store.write_checkpoint()
    (store.folder / "inbox").mkdir(exist_ok=True)
    (store.folder / "inbox" / "000000000001.jsonl").write_text("accepted")
    _, sizes = collect(store, tmp_path / "backup", lambda *_: None)
    check_names(sizes)
    assert {name.partition("/")[0].partition("-")[0] for name in sizes} >= {"inbox", "snapshot", "documents.lance"}
