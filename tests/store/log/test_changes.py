"""A commit is one flush of the disk, and a process that ends at any point of a change leaves a whole store."""

import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest
from structlog.testing import capture_logs

from store.backup.local import backup
from store.errors import StoreDamaged
from store.lance.checksums import SUFFIXES, Checksums
from store.lance.table_writer import TableWriter
from store.lance.tables import Tables
from store.log import commits
from store.log.mark import NAME as MARK
from store.log.mark import Mark, read_mark, write_mark
from store.log.write_ahead_log import FOLDER, WriteAheadLog
from store.store import Store
from store.verify.verify import verify
from tests.store.log.interruptions import copied_at_every_step, sampled, tear
from tests.store.small_store import complete, exported, numbered_documents, open_store

OPERATIONS: dict[str, Callable[[Store], object]] = {
    "flush": lambda store: store.compact(10**6),
    "compact": lambda store: store.compact(),
    "purge": lambda store: store.purge(timedelta(0)),
}


def test_a_commit_flushes_the_disk_once(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 3), []))  # begins the log's file
        batch = complete(store, numbered_documents(3, 5), ["d1"])
        with (
            mock.patch.object(os, "fdatasync", side_effect=os.fdatasync) as one,
            mock.patch.object(os, "fsync", side_effect=os.fsync) as other,
        ):
            store.commit(batch)
        assert (one.call_count, other.call_count) == (1, 0)


STEPS = (
    (TableWriter, "delete"),
    (TableWriter, "add_commits"),
    (TableWriter, "optimize"),
    (Checksums, "sync"),
    (commits, "write_mark"),
    (WriteAheadLog, "remove"),
)


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_process_that_ends_at_any_step_of_a_change_leaves_a_whole_store(tmp_path: Path, operation: str) -> None:
    folder = tmp_path / "store"
    with open_store(folder) as store:
        store.commit(complete(store, numbered_documents(0, 6), []))
        store.compact()
        store.commit(complete(store, numbered_documents(4, 9), ["d1", "d2"]))
        positions, expected = dict(store.positions), exported(store)
        with copied_at_every_step(folder, tmp_path, STEPS) as copies:
            OPERATIONS[operation](store)
        assert exported(store) == expected
    assert len(copies) >= 6
    for copy in sampled(copies, operation):
        with open_store(copy) as store:
            assert exported(store) == expected, copy
            assert store.positions == positions
            store.commit(complete(store, numbered_documents(20, 21), []))
            after = exported(store)
            assert verify(store).problems == []
        with open_store(copy) as store:
            assert exported(store) == after


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_mark_names_flushed_files(tmp_path: Path, operation: str) -> None:
    flushed: set[Path] = set()
    marks: list[set[Path]] = []
    fsync = os.fsync

    def table_files() -> set[Path]:
        return {path for path in tmp_path.glob("*.lance/*/*") if path.suffix in SUFFIXES}

    def note(file: int) -> None:
        fsync(file)
        flushed.add(Path(os.readlink(f"/proc/self/fd/{file}")))

    def check(store: Path, mark: Mark) -> None:
        new = table_files() - before
        marks.append(new)
        needed = new.union(*({path.parent, path.parent.parent} for path in new)) | {tmp_path / "checksums"}
        assert needed <= flushed
        write_mark(store, mark)

    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 6), []))
        store.compact()
        store.commit(complete(store, numbered_documents(4, 9), ["d1", "d2"]))
        before = table_files()
        with mock.patch.object(os, "fsync", note), mock.patch.object(commits, "write_mark", check):
            OPERATIONS[operation](store)
    assert any(marks)


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(12))
def test_the_first_opening_after_a_power_loss_in_a_step_completes_the_store(tmp_path: Path, kind: int) -> None:
    steps = ((TableWriter, "add_columns"), (Checksums, "sync"))
    with copied_at_every_step(tmp_path / "store", tmp_path, steps) as copies:
        open_store(tmp_path / "store").close()
    copy = copies[3 + kind % 2]  # before or after the row of the first commit; the files before it are flushed
    tear(copy, kind)
    with open_store(copy) as store:
        store.commit(complete(store, numbered_documents(0, 3), []))
        assert verify(store).problems == []


def test_verify_and_backup_check_the_mark(tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        store.commit(complete(store, numbered_documents(0, 3), []))
        old = read_mark(store.folder)
        assert old is not None
        store.compact()
        write_mark(store.folder, old)
        assert any("log/mark" in problem for problem in verify(store).problems)
        with pytest.raises(StoreDamaged, match="log/mark"):
            backup(store, tmp_path / "backup")
        (store.folder / FOLDER / MARK).write_text("{}")
        assert any("log/mark" in problem for problem in verify(store).problems)


def test_commits_during_a_flush_are_written_by_the_next_flush(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 3), []))
        sync = Checksums.sync

        def commits_meanwhile(checksums: Checksums, tables: Iterable[str]) -> None:
            with mock.patch.object(Checksums, "sync", sync):
                store.commit(complete(store, numbered_documents(3, 5), []))
            sync(checksums, tables)

        with mock.patch.object(Checksums, "sync", commits_meanwhile):
            store.compact(10**6)
        assert len(store._tables.pending) == 1
        assert store._tables.rows("documents") == 5
        expected = exported(store)
        assert verify(store).problems == []
    with open_store(tmp_path) as store:
        assert exported(store) == expected


def test_a_change_that_fails_is_undone_and_made_later(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 3), []))
        for of, name in ((commits, "write_mark"), (Checksums, "sync"), (TableWriter, "add_commits")):
            no_space = OSError(28, "No space left on device")
            with mock.patch.object(of, name, side_effect=no_space), pytest.raises(OSError, match="No space"):
                store.compact(10**6)
            store.commit(complete(store, numbered_documents(3, 4), ["d1"]))
        store.compact(10**6)
        assert not store._tables.pending
        assert verify(store).problems == []
        expected = exported(store)
    with open_store(tmp_path) as store:
        assert exported(store) == expected


def test_the_error_of_a_change_is_raised_if_its_undoing_fails(tmp_path: Path) -> None:
    no_space = OSError(28, "No space left on device")
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 3), []))
        with (
            mock.patch.object(TableWriter, "add_commits", side_effect=no_space),
            mock.patch.object(Tables, "undo", side_effect=StoreDamaged("lacks data")),
            capture_logs() as logged,
            pytest.raises(OSError, match="No space"),
        ):
            store.compact(10**6)
        assert [each["event"] for each in logged] == ["change_not_undone"]
        store.compact(10**6)
        assert verify(store).problems == []


def test_lost_acknowledged_commit_is_reported_as_damage_with_a_remedy(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 3), []))
        store.commit(complete(store, numbered_documents(3, 4), []))
    [path] = (tmp_path / FOLDER).glob("*.records")
    damaged = path.read_bytes()[:-1]
    path.write_bytes(damaged)
    with pytest.raises(StoreDamaged, match=r"restore a backup.*without commit 3.*delete the file .*/head"):
        open_store(tmp_path)
    assert path.read_bytes() == damaged
    (tmp_path / "head").unlink()
    with open_store(tmp_path) as store:
        [moved] = store.repaired_tables
        assert damaged == path.read_bytes() + (tmp_path / moved).read_bytes()
        assert len(store.documents()) == 3
        store.purge(timedelta(days=1))
        assert (tmp_path / moved).exists()
        store.purge(timedelta(0))
        assert not (tmp_path / moved).exists()


def test_a_log_that_ends_before_an_acknowledged_commit_is_damage(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 3), []))
    [path] = (tmp_path / FOLDER).glob("*.records")
    path.unlink()
    with pytest.raises(StoreDamaged, match="made commit 2 and its log ends with 1"):
        open_store(tmp_path)


@pytest.mark.parametrize("change", ["flip", "remove"])
def test_damaged_or_missing_mark_prevents_opening(tmp_path: Path, change: str) -> None:
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 3), []))
        store.compact()
    mark = tmp_path / FOLDER / MARK
    content = mark.read_bytes()
    if change == "flip":
        mark.write_bytes(content.replace(b'"commit": 2', b'"commit": 3'))
    else:
        mark.unlink()
    with pytest.raises(StoreDamaged, match="log/mark"):
        open_store(tmp_path)
