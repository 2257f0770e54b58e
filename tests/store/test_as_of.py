"""The cache of earlier commits: limited, counted, and shared by all clients that may see the same documents."""

from dataclasses import replace
from unittest import mock

import pytest

from store import as_of
from store.change import rewind as rewinding
from store.change.load import documents_of
from store.change.rewind import rewind
from store.errors import StoreStopped
from store.export.json_lines import export_lines
from store.lance.tables import Tables
from store.scope.scopes import Scopes
from tests.store import oracle
from tests.store.small_store import complete, extract, numbered_documents, open_store, reading

COMMITS = 8


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path) as store:
        for last in range(1, COMMITS + 1):
            store.commit(complete(store, numbered_documents(last - 1, last), ()))
        yield store


def commit_of(store, documents):
    """Returns the commit after which there were `documents` documents."""
    return store.snapshot().commit - COMMITS + documents


def test_only_recently_used_commits_stay_cached(store, monkeypatch):
    loaded = []

    def note(*given):
        loaded.append(given[2])
        return rewind(*given)

    monkeypatch.setattr(as_of, "rewind", note)
    asked = [commit_of(store, documents) for documents in (1, 2, 3, 4, 1, 5, 1, 2)]
    for documents, commit in zip((1, 2, 3, 4, 1, 5, 1, 2), asked, strict=True):
        documents = numbered_documents(0, documents)
        assert oracle.same(export_lines(store.snapshot_at(commit)), oracle.export(documents, extract)) is None
        assert store.past_count <= as_of.MAX_CACHED_COMMITS
    assert loaded == [commit_of(store, documents) for documents in (1, 2, 3, 4, 5, 2)]  # 2 made room for 5
    assert store.past_bytes > 0


def test_cached_commits_are_limited_by_their_bytes(store, monkeypatch):
    monkeypatch.setattr(as_of, "MAX_CACHED_BYTES", 1)
    for commit in (1, 2, 3):
        store.snapshot_at(commit_of(store, commit))
        assert store.past_count == 1


def test_callers_with_equal_visible_documents_share_a_scope(store, monkeypatch):
    made = []
    make = Scopes._built

    def note(*given):
        made.append(1)
        return make(*given)

    monkeypatch.setattr(Scopes, "_built", note)
    seen = store.scoped("one", lambda document: document.uri in ("d0", "d2"), commit_of(store, 4))
    assert store.scoped("other", lambda document: document.uri in ("d0", "d2", "d7"), commit_of(store, 4)) is seen
    assert len(made) == 1
    store.scoped("third", lambda document: document.uri == "d0", commit_of(store, 4))
    assert len(made) == 2


def test_loading_an_earlier_commit_calls_the_pause_callback(store):
    rests = []
    store.document_snapshot_at(commit_of(store, 3), lambda: rests.append(1))
    assert rests


def test_earlier_commit_does_not_show_later_extractions(tmp_path):
    """A passage may wait for its extraction, get one, and be extracted again: each commit shows what was known."""
    documents = {"d": [("T", "text 4", None)], "late": [("T", "text 3", None)]}
    with open_store(tmp_path) as store:
        whole = complete(store, {"d": documents["d"]}, ())
        store.commit(replace(whole, extractions=(), phrase_vectors={}, triple_vectors={}))
        waiting = store.snapshot().commit
        store.commit(complete(store, {}, (), again=[("T", "text 4")]))
        first = store.snapshot().commit
        store.commit(complete(store, {"late": documents["late"]}, ()))
        store.compact()
        store.commit(complete(store, {}, (), lambda title, text: reading(title, text, 1), again=[("T", "text 4")]))
        none, one = oracle.export({"d": documents["d"]}, lambda *_: []), oracle.export({"d": documents["d"]}, extract)
        assert none != one
        for commit, expected in ((waiting, none), (first, one), (first + 1, oracle.export(documents, extract))):
            assert oracle.same(export_lines(store.snapshot_at(commit)), expected) is None
        scope = store.scoped("d", lambda document: document.uri == "d", waiting)
        assert oracle.same(export_lines(scope.snapshot), none) is None


def test_removed_names_are_compared_once_in_an_earlier_commit(tmp_path):
    """Two documents with equal names had one row of names, before both were removed."""
    labels = {"s://x/a": "board", "t://x/a": "board"}
    with open_store(tmp_path) as store:
        store.commit(complete(store, {"s://x/a": [("T", "text 1", None)]}, (), labels=labels))
        store.commit(complete(store, {"t://x/a": [("T", "text 2", None)]}, (), labels=labels))
        both = store.snapshot().commit
        store.commit(complete(store, {}, labels))
        past = store.snapshot_at(both)
        assert [past.names(row) for row in past.compare_names("board", 10).rows.tolist()] == ["\nboard"]


def test_earlier_commit_reads_only_documents_changed_since(tmp_path, monkeypatch):
    """Only the earlier states of changed documents are read from the tables."""
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 40), ()))
        before = store.snapshot().commit
        store.commit(complete(store, {"d3": [("", "text 50", None)]}, ("d4",)))
        read = []

        def note(rows):
            read.append(rows.num_rows)
            return documents_of(rows)

        monkeypatch.setattr(rewinding, "documents_of", note)
        past = store.snapshot_at(before)
        assert oracle.same(export_lines(past), oracle.export(numbered_documents(0, 40), extract)) is None
        assert sum(read) == 2


def test_an_earlier_commit_is_read_while_the_store_refuses_writes(store):
    with mock.patch.object(Tables, "publish", side_effect=MemoryError), pytest.raises(StoreStopped):
        store.compact()
    commit = commit_of(store, 3)
    assert (
        oracle.same(export_lines(store.snapshot_at(commit)), oracle.export(numbered_documents(0, 3), extract)) is None
    )
