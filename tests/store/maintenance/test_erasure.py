"""A purge removes the bytes of a removed text from every file of the store, wherever they were."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from store.log import commits
from store.log.write_ahead_log import FOLDER, WriteAheadLog
from store.maintenance.erasure import Erasure
from store.store import Store
from store.verify.verify import verify
from tests.store.small_store import complete, numbered_documents, open_store

SECRET = "text 7 zanzibar"


def files_with_secret(folder: Path) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [str(path.relative_to(folder)) for path in files if SECRET.encode() in path.read_bytes()]


def flush(store: Store) -> None:
    store.compact(10**6)


def flush_and_end_before_the_log_is_deleted(store: Store) -> None:
    with mock.patch.object(WriteAheadLog, "remove"):
        flush(store)


def end_before_the_mark(store: Store) -> None:
    with (
        mock.patch.object(commits, "write_mark", side_effect=KeyboardInterrupt),
        mock.patch.object(store._commits, "_undo"),
        pytest.raises(KeyboardInterrupt),
    ):
        flush(store)


def remain_in_the_log(_store: Store) -> None:
    pass


PLACES: dict[str, tuple[Callable[[Store], object], set[str]]] = {
    "log": (remain_in_the_log, {FOLDER}),
    "tables": (flush, {"passages.lance"}),
    "both": (flush_and_end_before_the_log_is_deleted, {FOLDER, "passages.lance"}),
    "unfinished flush": (end_before_the_mark, {FOLDER, "passages.lance"}),
    "checkpoint": (Store.write_checkpoint, {FOLDER}),
}


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_purged_text_is_erased_from_every_file(tmp_path: Path, place: str) -> None:
    put, expected = PLACES[place]
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 6), []))
        store.commit(complete(store, {"a": [("T", SECRET, None)]}, []))
        put(store)
        found = {name.partition("/")[0] for name in files_with_secret(tmp_path)}
        assert expected <= found
    with open_store(tmp_path) as store:
        store.commit(complete(store, {}, ["a"]))
        store.purge(timedelta(0))
        assert files_with_secret(tmp_path) == []
        assert verify(store).problems == []
    assert files_with_secret(tmp_path) == []


@pytest.mark.slow
def test_text_removed_during_a_purge_is_erased_by_the_next_purge(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 6), []))
        store.commit(complete(store, {"a": [("T", SECRET, None)]}, ["d1"]))
        delete = Erasure._delete

        def commit_then_delete(erasure: Erasure, *given: Any) -> int:
            if "a" in {document.uri for document in store.documents()}:
                store.commit(complete(store, {}, ["a"]))
            return delete(erasure, *given)

        with mock.patch.object(Erasure, "_delete", commit_then_delete):
            assert store.purge(timedelta(0))
        assert files_with_secret(tmp_path)
        store.purge(timedelta(0))
        assert files_with_secret(tmp_path) == []
