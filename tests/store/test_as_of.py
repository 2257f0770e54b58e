"""The cache of earlier commits: limited, counted, and shared by all clients that may see the same documents."""

import pytest

from store import as_of
from store.export.json_lines import export_lines
from store.scope.scopes import Scopes
from tests.store import oracle
from tests.store.small_store import complete, extract, numbered_documents, open_store

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


def test_the_last_commits_asked_for_are_kept_and_no_more(store, monkeypatch):
    loaded = []
    load = as_of.fill_index
    monkeypatch.setattr(as_of, "fill_index", lambda *args: loaded.append(args[2]) or load(*args))
    asked = [commit_of(store, documents) for documents in (1, 2, 3, 4, 1, 5, 1, 2)]
    for documents, commit in zip((1, 2, 3, 4, 1, 5, 1, 2), asked, strict=True):
        documents = numbered_documents(0, documents)
        assert oracle.same(export_lines(store.snapshot_at(commit)), oracle.export(documents, extract)) is None
        assert store.past_count <= as_of.MAX_CACHED_COMMITS
    assert loaded == [commit_of(store, documents) for documents in (1, 2, 3, 4, 5, 2)]  # 2 made room for 5
    assert store.past_bytes > 0


def test_commits_that_take_too_much_together_are_not_kept_together(store, monkeypatch):
    monkeypatch.setattr(as_of, "MAX_CACHED_BYTES", 1)
    for commit in (1, 2, 3):
        store.snapshot_at(commit_of(store, commit))
        assert store.past_count == 1


def test_who_sees_the_same_documents_shares_a_scope(store, monkeypatch):
    made = []
    make = Scopes._built
    monkeypatch.setattr(Scopes, "_built", lambda *args: made.append(1) or make(*args))
    seen = store.scoped("one", lambda document: document.uri in ("d0", "d2"), commit_of(store, 4))
    assert store.scoped("other", lambda document: document.uri in ("d0", "d2", "d7"), commit_of(store, 4)) is seen
    assert len(made) == 1
    store.scoped("third", lambda document: document.uri == "d0", commit_of(store, 4))
    assert len(made) == 2


def test_loading_rests(store):
    rests = []
    store.document_snapshot_at(commit_of(store, 3), lambda: rests.append(1))
    assert rests
