"""A client sees a document of an earlier commit if it saw the document then and sees it now: random histories, via the API."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import store.change.write_rows as write_rows
from daemon.contract.scope import ClientScope
from daemon.services.scopes import ScopeService
from daemon.sources.base import SourceLabels
from store.backup.local import backup, restore
from store.types import Document, State
from tests.store.small_store import complete, open_store

URIS = ("added:a", "added:b", "file:///drive/c", "added:[board]/d")
SOURCES = {"added:a": "added", "added:b": "added", "file:///drive/c": "drive", "added:[board]/d": "added"}
CLIENTS = ("public", "board")

labels = st.lists(st.sampled_from([*CLIENTS, "other"]), max_size=2, unique=True)
changes = st.dictionaries(st.sampled_from(URIS), st.none() | labels, min_size=1, max_size=3)
steps = st.lists(
    st.one_of(
        *(changes.map(lambda change: ("commit", change)) for _ in range(4)),
        st.sampled_from([("restart",), ("checkpoint",), ("compact",), ("purge",), ("restore",)]),
        labels.map(lambda of_source: ("configure", of_source)),
    ),
    min_size=4,
    max_size=12,
)


class History:
    """A store, and for each commit the labels of each document."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = open_store(folder / "store")
        self.source_labels: tuple[str, ...] = ()
        self.commits: dict[int, dict[str, tuple[str, ...]]] = {}
        self.last: dict[str, tuple[str, ...]] = {}
        self.written = 0

    def commit(self, change: dict[str, list[str] | None]) -> None:
        present = dict(self.commits[max(self.commits)]) if self.commits else {}
        documents: dict[str, Any] = {}
        for uri, given_labels in change.items():
            if given_labels is None:
                present.pop(uri, None)
            else:
                self.written += 1
                documents[uri] = [("T", f"text {self.written % 5}", None)]
                present[uri] = self.last[uri] = tuple(given_labels)
        batch = complete(self.store, documents, [uri for uri, found in change.items() if found is None])
        labelled = (
            replace(each, source=SOURCES[each.uri], metadata={"labels": list(present[each.uri]), "secret": "words"})
            for each in batch.documents
        )
        self.commits[self.store.commit(replace(batch, documents=tuple(labelled))).seq] = present

    def restart(self) -> None:
        self.store.close()
        self.store = open_store(self.folder / "store")

    def checkpoint(self) -> None:
        self.store.write_checkpoint()

    def compact(self) -> None:
        self.store.compact()

    def purge(self) -> None:
        self.store.purge(
            timedelta(seconds=time.time() - self.store._commits.times[max(self.commits, default=1)] - 1e-6)
        )

    def restore(self) -> None:
        self.written += 1
        place = self.folder / f"backup-{self.written}"
        backup(self.store, place)
        self.store.close()
        restore(place, self.folder / "store")
        self.store = open_store(self.folder / "store")

    def configure(self, of_source: list[str]) -> None:
        self.source_labels = tuple(of_source)

    def has(self, client: str, uri: str, own: tuple[str, ...]) -> bool:
        if uri.startswith("added:["):
            return client == "board"
        return client in own or (SOURCES[uri] == "drive" and client in self.source_labels)

    def check(self) -> None:
        scopes = ScopeService(self.store, lambda: (("drive", SourceLabels(self.source_labels)),))
        horizon = max(self.store.horizon, 1)
        for commit, then in self.commits.items():
            if commit < horizon:
                continue
            for client in CLIENTS:
                scope = ClientScope(visible=(client,), client=client)
                shown = set(scopes.memory(scope, commit).documents)
                expected = {
                    uri
                    for uri, own in then.items()
                    if self.has(client, uri, own) and self.has(client, uri, self.last[uri])
                }
                assert shown == expected, (commit, client)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps)
def test_past_visibility_requires_past_and_present_labels_in_random_histories(
    tmp_path_factory: pytest.TempPathFactory, chosen: list[Any]
) -> None:
    history = History(tmp_path_factory.mktemp("history"))
    try:
        for name, *arguments in chosen:
            getattr(history, name)(*arguments)
        history.check()
    finally:
        history.store.close()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    found = History(tmp_path)
    yield found
    found.store.close()


def test_removed_document_without_stored_labels_is_hidden_from_limited_clients(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an earlier release wrote it."""
    history.commit({"added:a": ["public"], "added:[board]/d": []})
    monkeypatch.setattr(write_rows, "_removal", lambda last: Document(last.uri, "", state=State.REMOVED))
    history.commit({"added:a": None, "added:[board]/d": None})
    scopes = ScopeService(history.store, lambda: ())
    shown = {
        client: set(scopes.memory(ClientScope(visible=(client,), client=client), 2).documents) for client in CLIENTS
    }
    assert shown == {"public": set(), "board": {"added:[board]/d"}}, "labels in a URI are known without the row"


def test_a_removal_keeps_the_labels_and_nothing_else_of_the_document(history: History) -> None:
    history.commit({"added:a": ["public"]})
    history.commit({"added:a": None})
    [(uri, gone)] = history.store.removed_documents().items()
    assert (uri, gone.source, gone.metadata) == ("added:a", "added", {"labels": ["public"]})
    assert (gone.title, gone.passages, gone.payload) == ("", (), None)
    rows = history.store._tables.read("documents").to_pylist()
    assert [row["metadata"] for row in rows if row["state"] == "removed"] == ['{"labels": ["public"]}']


def test_labels_of_removed_documents_are_purged_with_their_commits(history: History) -> None:
    history.commit({"added:a": ["public"]})
    history.commit({"added:a": None})
    history.commit({"added:b": ["public"]})
    assert set(history.store.removed_documents()) == {"added:a"}
    history.store.purge(timedelta(0))
    assert history.store.removed_documents() == {}
