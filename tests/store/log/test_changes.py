"""A commit is one flush of the disk, and a process that ends at any point of a change leaves a whole store."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest

from store.errors import StoreDamaged
from store.lance.checksums import Checksums
from store.lance.table_writer import TableWriter
from store.log import commits
from store.log.log_files import FOLDER, LogFiles
from store.log.mark import NAME as MARK
from store.store import Store
from store.verify.verify import verify
from tests.store.log.interruptions import copied_at_every_step, sampled
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
    (LogFiles, "remove"),
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


def test_commits_beside_a_flush_are_in_the_next(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 3), []))
        sync = Checksums.sync

        def commits_meanwhile(checksums: Checksums, tables: object) -> None:
            with mock.patch.object(Checksums, "sync", sync):
                store.commit(complete(store, numbered_documents(3, 5), []))
            sync(checksums, tables)  # type: ignore[arg-type]

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


def test_an_acknowledged_commit_that_the_log_lost_is_damage_and_says_so(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 3), []))
        store.commit(complete(store, numbered_documents(3, 4), []))
    [path] = (tmp_path / FOLDER).glob("*.records")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreDamaged, match="backup"):
        open_store(tmp_path)


@pytest.mark.parametrize("change", ["flip", "remove"])
def test_a_mark_that_is_damaged_or_gone_is_told(tmp_path: Path, change: str) -> None:
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
