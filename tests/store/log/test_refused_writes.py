"""After an error, memory and disk agree, or the store refuses all writes until it is opened again."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from store import durable_files, live_memory
from store.errors import StoreError, StoreFolderLost, StoreStopped
from store.index.live_index import LiveIndex
from store.lance.layout import manifests, table_folder
from store.lance.tables import Tables
from store.log import commits, mark
from store.log.mark import write_mark
from store.store import Store
from store.verify.verify import verify
from tests.store.log.interruptions import copied_at_every_step
from tests.store.small_store import complete, exported, numbered_documents, open_store

FAILURE = MemoryError("no memory")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "store") as opened:
        opened.commit(complete(opened, numbered_documents(0, 3), []))
        yield opened


def add(store: Store, first: int = 3, removed: tuple[str, ...] = ()) -> None:
    store.commit(complete(store, numbered_documents(first, first + 1), removed))


def check_whole_after_opening(store: Store, documents: set[str]) -> None:
    """Checks that the store refuses writes, and is whole with these documents when it is opened again."""
    batch = complete(store, numbered_documents(9, 10), [])
    writes: tuple[Callable[[], object], ...] = (
        lambda: store.commit(batch),
        lambda: store.compact(10**6),
        lambda: store.purge(timedelta(0)),
        store.write_checkpoint,
    )
    for write in writes:
        with pytest.raises(StoreError, match="restart hippod"):
            write()
    store.close()
    with open_store(store.folder) as again:
        assert {document.uri for document in again.documents()} == documents
        assert verify(again).problems == []
        add(again, 20)
        again.compact(10**6)
        expected = exported(again)
        assert verify(again).problems == []
    with open_store(store.folder) as again:
        assert exported(again) == expected


def after(step: Callable[..., Any], then: Callable[[], object]) -> Callable[..., Any]:
    def stepped(*given: object) -> None:
        step(*given)
        then()

    return stepped


def test_folder_lost_after_writing_the_mark_duplicates_no_row(store: Store) -> None:
    away = store.folder.with_name("away")
    written = after(write_mark, lambda: store.folder.rename(away))
    with mock.patch.object(commits, "write_mark", written), pytest.raises(StoreFolderLost):
        store.compact(10**6)
    away.rename(store.folder)
    assert not store._tables.pending
    check_whole_after_opening(store, {"d0", "d1", "d2"})


@pytest.mark.parametrize("replaced", [False, True])
def test_mark_of_uncertain_durability_stops_the_store_without_an_undo(store: Store, replaced: bool) -> None:
    """The flush of the log's folder fails: after a power loss the old mark may be there again."""
    path = store.folder / "log" / mark.NAME
    before = path.read_bytes()

    def fails(_folder: Path) -> None:
        raise OSError(5, "Input/output error")

    with mock.patch.object(durable_files, "sync", fails), pytest.raises(StoreStopped, match="taken effect or not"):
        store.compact(10**6)
    assert path.read_bytes() != before
    if not replaced:
        path.write_bytes(before)
    check_whole_after_opening(store, {"d0", "d1", "d2"})


def test_a_change_that_cannot_become_visible_stops_the_store(store: Store) -> None:
    with mock.patch.object(Tables, "publish", side_effect=FAILURE), pytest.raises(StoreStopped, match="no memory"):
        store.compact(10**6)
    check_whole_after_opening(store, {"d0", "d1", "d2"})


def test_a_commit_that_cannot_become_visible_stops_the_store(store: Store) -> None:
    with mock.patch.object(Tables, "add_pending", side_effect=FAILURE), pytest.raises(StoreStopped, match="no memory"):
        add(store)
    check_whole_after_opening(store, {"d0", "d1", "d2", "d3"})


def test_half_applied_index_that_cannot_be_reloaded_stops_the_store(store: Store) -> None:
    with (
        mock.patch.object(LiveIndex, "add_triples", side_effect=FAILURE),
        mock.patch.object(live_memory, "load_index", side_effect=OSError(5, "Input/output error")),
        pytest.raises(StoreStopped, match="could not be brought to commit 3"),
    ):
        add(store)
    check_whole_after_opening(store, {"d0", "d1", "d2", "d3"})


def test_index_is_reloaded_if_a_purge_fails_in_it(store: Store) -> None:
    add(store, 3, ("d1", "d2"))
    expected = exported(store)
    with mock.patch.object(LiveIndex, "forget", side_effect=FAILURE):
        assert store.purge(timedelta(0))
    assert exported(store) == expected
    store.commit(complete(store, numbered_documents(1, 3), []))
    assert {"d1", "d2"} <= set(store.document_snapshot().documents)
    assert verify(store).problems == []


def test_a_purge_that_fails_in_the_index_and_in_loading_it_stops_the_store(store: Store) -> None:
    add(store, 3, ("d1", "d2"))
    with (
        mock.patch.object(LiveIndex, "forget", side_effect=FAILURE),
        mock.patch.object(live_memory, "load_index", side_effect=OSError(5, "Input/output error")),
        pytest.raises(StoreStopped),
    ):
        store.purge(timedelta(0))
    check_whole_after_opening(store, {"d0", "d3"})


def test_a_failed_commit_that_cannot_be_removed_from_the_log_stops_the_store(store: Store) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    @contextmanager
    def failing(*calls: str) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patched:
            for call in calls:
                patched.setattr(os, call, full)
            yield

    with failing("fdatasync"), pytest.raises(OSError, match="No space"):
        add(store)
    add(store, 4)
    with failing("fdatasync", "ftruncate"), pytest.raises(StoreStopped, match="could not be removed from"):
        add(store, 5)
    # Whether the refused commit is durable is unknown; here it is.
    check_whole_after_opening(store, {"d0", "d1", "d2", "d4", "d5"})


def test_a_version_of_a_table_that_belongs_to_no_commit_is_never_a_part_of_a_change(store: Store) -> None:
    store.compact(10**6)
    passages = store._tables._db.open_table("passages")
    passages.add(passages.search().limit(2).to_arrow())
    add(store)
    for write in (lambda: store.compact(10**6), lambda: store._tables.clean("passages")):
        with pytest.raises(StoreError, match="which belongs to no commit"):
            write()
        passages.add(passages.search().limit(2).to_arrow())  # the failed change was undone
    store.close()
    with open_store(store.folder) as again:
        assert verify(again).problems == []


def test_cleanup_that_also_merges_keeps_versions_named_by_the_mark(store: Store, tmp_path: Path) -> None:
    store.compact()
    add(store)
    expected = exported(store)
    table = type(store._tables._db.open_table("passages"))
    optimize = table.optimize

    def merges_again(self: Any, **options: Any) -> None:
        if options.get("delete_unverified"):
            self.checkout(self.version)
            self.restore()
        optimize(self, **options)

    steps = ((Tables, "clean"), (table, "optimize"))
    with (
        mock.patch.object(table, "optimize", merges_again),
        copied_at_every_step(store.folder, tmp_path, steps) as copies,
        pytest.raises(RuntimeError, match="Cleanup error"),
    ):
        store.compact()
    assert exported(store) == expected
    add(store, 4)
    store.compact()
    assert verify(store).problems == []
    assert len(manifests(table_folder(store.folder, "passages"))) == 1
    assert len(copies) > 4
    for copy in copies:
        with open_store(copy) as again:
            assert exported(again) == expected
            assert verify(again).problems == []
            again.compact(1)
