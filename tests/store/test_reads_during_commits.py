"""Answers that are computed without a lock while a commit is applied."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from store.index.columns.hashed_rows import HashedRows, TextRows
from store.lance.tables import Condition
from store.private_files import tighten
from store.store import Store
from store.types import MENTION
from tests.store.small_store import complete, numbered_documents, open_store

TRIPLES = (("alpha", "likes", "beta"), ("gamma", "likes", "delta"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "store") as opened:
        opened.commit(complete(opened, numbered_documents(0, 3), []))
        yield opened


def test_missing_texts_are_right_if_a_commit_adds_some_of_them_meanwhile(store: Store) -> None:
    batch = complete(store, {"a": [("T", "text 1 of a", TRIPLES)]}, [])
    other = complete(store, {"b": [("T", "text 1 of b", (("beta", MENTION, "delta"),))]}, [])
    get = TextRows.get
    committed: list[bool] = []

    def commits_first(self: Any, key: str, *default: Any) -> Any:
        if key == "beta" and not committed:  # "alpha" was looked up already
            committed.append(True)
            store.commit(other)
        return get(self, key, *default)

    with mock.patch.object(TextRows, "get", commits_first):
        missing = store.missing(batch)
    assert committed
    assert set(missing.triples) == set(TRIPLES)
    assert {"alpha", "gamma"} <= set(missing.phrases) <= {"alpha", "beta", "gamma", "delta"}


def test_a_row_is_found_only_once_all_its_columns_are_there(store: Store) -> None:
    index, add, added = store._index, HashedRows.__setitem__, []

    def added_last(self: Any, key: Any, row: int) -> None:
        if self is index.phrase_rows:
            assert (index.phrases[row], len(index.can_have_synonyms.view()) > row) == (key, True)
            added.append("phrase")
        if self is index.triple_rows:
            assert index.triple_rows.key(row) == key
            assert len(index.statements.view()) > row
            added.append("triple")
        add(self, key, row)

    with mock.patch.object(HashedRows, "__setitem__", added_last), mock.patch("store.live_memory.load_index") as loaded:
        store.commit(complete(store, {"a": [("T", "text 1 of a", TRIPLES)]}, []))
    assert not loaded.called
    assert {"phrase", "triple"} <= set(added)


def test_positions_do_not_change_while_they_are_read(store: Store) -> None:
    positions = iter(store.positions)
    assert next(positions) == "d0"
    store.commit(complete(store, numbered_documents(3, 4), ["d1"]))
    assert list(positions) == ["d1", "d2"]
    assert set(store.positions) == {"d0", "d2", "d3"}


def test_table_condition_accepts_quotes_and_backslashes(store: Store) -> None:
    uri = """a 'quoted' "uri" \\ of it"""
    store.commit(complete(store, {uri: [("T", "text 1", None)]}, []))
    condition = Condition("uri", "=", uri)
    for _ in ("in the log", "in the table"):
        assert store._tables.read("documents", ["uri"], condition)["uri"].to_pylist() == [uri]
        store.compact(10**6)


@pytest.mark.parametrize("name", ["upgrade-backup-format-4-commit-7", "upgrade-backup.unfinished"])
def test_the_backup_of_an_upgrade_is_private(tmp_path: Path, name: str) -> None:
    backup = tmp_path / name
    backup.mkdir()
    (backup / "file").touch()
    for path in (backup, backup / "file"):
        path.chmod(0o755)
    tighten(tmp_path)
    assert [path.stat().st_mode & 0o077 for path in (backup, backup / "file")] == [0, 0]


def test_passages_are_counted_if_a_commit_adds_some_meanwhile(store: Store) -> None:
    batch = complete(store, numbered_documents(3, 6), [])

    class CommitsMeanwhile(dict[int, Any]):
        def items(self) -> Any:
            for number, item in enumerate(super().items()):
                if number == 1 and store.document("d3") is None:
                    store.commit(batch)
                yield item

    store._index.holders._changed = CommitsMeanwhile(store._index.holders._changed)
    assert sum(store.passages_by_extractor().values()) in (3, 6)
    assert len(store.passages_by_extraction(lambda _state: True)) in (3, 6)
