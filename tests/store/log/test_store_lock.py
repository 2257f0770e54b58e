"""The store's lock works even if its file is deleted, and notices that the locked folder is no longer at its path."""

import fcntl
import os
import shutil
from datetime import timedelta

import pytest

from store.errors import StoreFolderLost, StoreLocked, StoreRefused, StoreStopped
from store.log.store_lock import StoreLock, lock_owner
from tests.store.small_store import complete, exported, numbered_documents, open_store


def test_store_stays_locked_if_the_lock_file_is_deleted(tmp_path):
    with StoreLock(tmp_path):
        (tmp_path / "lock").unlink()
        with pytest.raises(StoreLocked, match=f"pid {os.getpid()}") as refused:
            StoreLock(tmp_path)
        assert refused.value.pid == os.getpid() == lock_owner(tmp_path)
    with StoreLock(tmp_path):
        pass


def test_lock_excludes_an_earlier_release_and_is_excluded_by_it(tmp_path):
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write("4711\n")
        file.flush()
        with pytest.raises(StoreLocked, match="pid 4711"):
            StoreLock(tmp_path)
    with StoreLock(tmp_path), (tmp_path / "lock").open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_lock_file_is_used_if_the_file_system_cannot_lock_folders(tmp_path, monkeypatch):
    really = fcntl.flock

    def as_on_nfs(fd, operation):
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(9, "Bad file descriptor")
        really(fd, operation)

    monkeypatch.setattr(fcntl, "flock", as_on_nfs)
    with StoreLock(tmp_path), pytest.raises(StoreLocked):
        StoreLock(tmp_path)


def test_a_lock_that_is_a_link_is_refused_and_its_target_stays_as_it_is(tmp_path):
    store, victim = tmp_path / "store", tmp_path / "victim"
    store.mkdir()
    victim.write_text("content")
    (store / "lock").symlink_to(victim)
    with pytest.raises(StoreRefused):
        StoreLock(store)
    assert victim.read_text() == "content"


LOSSES = {
    "renamed": lambda folder: folder.rename(folder.with_name("away")),
    "deleted": lambda folder: shutil.rmtree(folder),
    "replaced": lambda folder: (folder.rename(folder.with_name("away")), folder.mkdir()),
    "linked elsewhere": lambda folder: (folder.rename(folder.with_name("away")), folder.symlink_to("/")),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("part", ["store", "store/passages.lance", "store/commits.lance"])
def test_writes_into_a_moved_or_replaced_store_folder_are_refused(tmp_path, loss, part):
    with open_store(tmp_path / "store") as store:
        store.commit(complete(store, numbered_documents(0, 3), []))
        batch = complete(store, numbered_documents(3, 5), [])
        before = exported(store)
        LOSSES[loss](tmp_path / part)
        left = sorted(tmp_path.rglob("*"))
        for write in (lambda: store.commit(batch), lambda: store.write_checkpoint(), store.check_folder):
            with pytest.raises(StoreFolderLost):
                write()
        assert sorted(tmp_path.rglob("*")) == left
        assert exported(store) == before
        if loss == "renamed":
            (tmp_path / part).with_name("away").rename(tmp_path / part)
            store.commit(batch)
            assert {"d3", "d4"} <= set(store.document_snapshot().documents)


def test_commit_fails_if_the_store_folder_is_moved_meanwhile(tmp_path, monkeypatch):
    store = open_store(tmp_path / "store")
    store.commit(complete(store, numbered_documents(0, 3), []))
    before = exported(store)
    append = store._commits.append

    def lost_meanwhile(*arguments, **options):
        commit = append(*arguments, **options)
        (tmp_path / "store").rename(tmp_path / "away")
        return commit

    monkeypatch.setattr(store._commits, "append", lost_meanwhile)
    batch = complete(store, numbered_documents(3, 5), [])
    with pytest.raises(StoreFolderLost, match="during a commit"):
        store.commit(batch)
    monkeypatch.undo()
    (tmp_path / "away").rename(tmp_path / "store")
    with pytest.raises(StoreFolderLost, match="restart"):  # it is back, but its content is unknown
        store.commit(batch)
    assert exported(store) == before
    store.close()
    with open_store(tmp_path / "store") as again:
        again.commit(batch)
        assert {"d3", "d4"} <= set(again.document_snapshot().documents)


def test_a_closed_store_refuses_writes(tmp_path):
    store = open_store(tmp_path)
    store.commit(complete(store, numbered_documents(0, 3), []))
    batch = complete(store, numbered_documents(3, 4), [])
    expected = exported(store)
    store.close()
    store.close()
    with open_store(tmp_path) as other:
        other.commit(complete(other, numbered_documents(4, 5), []))
        for write in (
            lambda: store.commit(batch),
            store.compact,
            store.compact_when_due,
            store.fold,
            store.write_checkpoint,
            lambda: store.purge(timedelta(0)),
            lambda: store.rebuild_index(force=True),
        ):
            with pytest.raises(StoreStopped, match="it is closed"):
                write()
        assert exported(store) == expected
    with open_store(tmp_path) as again:
        assert set(again.document_snapshot().documents) == {"d0", "d1", "d2", "d4"}


def test_a_store_keeps_its_lock_while_maintenance_runs(tmp_path):
    store = open_store(tmp_path)
    with store.maintenance_paused():
        store.close()
        with pytest.raises(StoreLocked):
            open_store(tmp_path)
    store.close()
    open_store(tmp_path).close()
