"""After any sequence of adds, edits, removals, restarts and folds, the memory's export depends on its documents alone."""

import atexit
import os
import shutil
import tempfile
from collections import Counter
from datetime import timedelta
from functools import cache
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import store.index.delta_csr
import store.index.synonyms.crowding
import store.lance.checksums
import store.maintenance.compaction
import store.maintenance.retention
from store.errors import StoreError
from store.export.json_lines import export_lines
from store.types import passage_id
from store.verify.verify import verify
from tests.store import oracle
from tests.store.small_store import HOSTILE, NUMBERED, PHRASES, complete, links_of, open_store, reading

TEXTS = [f"text {i}" for i in range(9)]

phrase = st.sampled_from([*PHRASES, *HOSTILE, *NUMBERED])
triple = st.tuples(phrase, st.sampled_from(["is", "has", ""]), phrase)
heading = st.sampled_from(["T", ""])
text = st.sampled_from(TEXTS)
triples = st.lists(triple, max_size=4).map(tuple)
extractor = st.sampled_from([None, "oracle", "another"])
"""Extractor of a document's supplied triples: none given, the local extractor's name, or another."""
passage = st.one_of(
    st.tuples(heading, text, st.none()),
    st.tuples(heading, text, st.one_of(st.just(()), triples), extractor),
)
uri = st.sampled_from([f"file:///{name}" for name in "abcdef"])
LABELS = ["board", "public"]
label = st.sampled_from(LABELS)


@cache
def empty():
    """Returns a store without documents: creating one takes as long as ten commits, copying it does not."""
    folder = Path(tempfile.mkdtemp(prefix="hippod-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    open_store(folder).close()
    return folder


def check_names(snapshot, documents, labels):
    """Asserts that each passage has the names of its documents, and that names without documents are not compared."""
    expected: Counter[tuple[str, str]] = Counter()
    for uri, passages in documents.items():
        names = f"{uri[-1]}\n\n{labels[uri]}"
        expected.update((names, passage_id(title, text)) for title, text in {tuple(each[:2]) for each in passages})
    naming = snapshot.naming.merged().tocoo()
    found: Counter[tuple[str, str]] = Counter()
    for row, column, count in zip(naming.row.tolist(), naming.col.tolist(), naming.data.tolist(), strict=True):
        found[snapshot.names(row), snapshot.passage_id(column)] += int(count)
    assert found == expected
    for label in LABELS:
        rows = snapshot.compare_names(label, 100).rows.tolist()
        assert sorted(map(snapshot.names, rows)) == sorted({names for names, _ in expected if names.endswith(label)})


def check_memory(memory, documents, versions, labels):
    """Asserts that a `DocumentSnapshot` is what a fresh memory of the documents would be."""
    snapshot = memory.snapshot
    expected = oracle.export(documents, lambda title, text: reading(title, text, versions.get(text, 0)))
    assert (difference := oracle.same(export_lines(snapshot), expected)) is None, difference
    kinds = [line.get("type", line["kind"]) for line in expected]
    assert dict(snapshot.edges) == {name: kinds.count(name) for name in ("relation", "mention", "context", "synonym")}
    assert snapshot.living_passages == kinds.count("passage")
    assert snapshot.living_phrases == kinds.count("phrase")
    assert snapshot.living_statements == kinds.count("triple")
    able = [line["text"] for line in expected if line["kind"] == "phrase"]
    crowded = oracle.crowded([text for text in able if oracle.can_have_synonyms(text)])
    assert {snapshot.phrase(row) for row in np.flatnonzero(snapshot.phrase_crowded).tolist()} == crowded
    assert sorted(memory.documents) == sorted(documents)
    holders: dict[str, set[str]] = {}
    for uri, passages in documents.items():
        document = memory.documents[uri]
        texts = [text for _, text, *_ in passages]
        assert [ref.links for ref in document.passages] == [links_of(uri, text) for text in texts]
        for title, text, *_ in passages:
            holders.setdefault(passage_id(title, text), set()).add(uri)
    for passage, uris in holders.items():
        assert memory.documents_with_passage(passage) == sorted(uris)
    check_names(snapshot, documents, labels)


class MemoryMachine(RuleBasedStateMachine):
    @initialize()
    def open(self):
        self.folder = Path(tempfile.mkdtemp(prefix="hippod-test-"))
        shutil.copytree(empty(), self.folder, dirs_exist_ok=True)
        self.documents = {}
        self.labels = {}
        self.positions = {}
        self.known = {}
        self.versions = {}
        """Number of repeated extractions of a text."""
        self.store = open_store(self.folder)

    def extract(self, title, text):
        return reading(title, text, self.versions.get(text, 0))

    def commit(self, changes, gone, again=()):
        self.store.commit(complete(self.store, changes, gone, self.extract, again, labels=self.labels))

    @rule(
        changes=st.dictionaries(uri, st.lists(passage, max_size=3), min_size=1, max_size=3),
        label=label,
        gone=st.lists(uri, max_size=2),
    )
    def change(self, changes, label, gone):
        self.labels |= dict.fromkeys(changes, label)
        self.commit(changes, [uri for uri in gone if uri not in changes])
        for uri in gone:
            self.documents.pop(uri, None)
            self.positions.pop(uri, None)
        for uri, passages in changes.items():
            self.documents[uri] = passages
            self.positions[uri] = {"seen": len(changes)}

    @rule(gone=uri)
    def remove(self, gone):
        self.commit({}, [gone])
        self.documents.pop(gone, None)
        self.positions.pop(gone, None)

    @rule(old=uri, new=uri)
    def move(self, old, new):
        if old in self.documents and old != new:
            self.labels[new] = self.labels[old]
            self.commit({new: self.documents[old]}, [old])
            self.documents[new] = self.documents.pop(old)
            self.positions.pop(old, None)
            self.positions[new] = {"seen": 1}

    @rule(uri=uri, label=label)
    def relabel(self, uri, label):
        if uri in self.documents:
            self.labels[uri] = label
            self.commit({uri: self.documents[uri]}, [])
            self.positions[uri] = {"seen": 1}

    @rule(text=st.sampled_from(TEXTS))
    def read_again(self, text):
        """Extracts again with another extractor, which finds other triples."""
        self.versions[text] = self.versions.get(text, 0) + 1
        stored = [(title, text) for title in ("T", "") if self.store.passage(passage_id(title, text)) is not None]
        if stored:
            self.commit({}, [], stored)

    @rule(rebuilt=st.booleans())
    def restart(self, rebuilt):
        """`rebuilt`: without the checkpoint, from the tables alone."""
        self.store.close()
        for snapshot in self.folder.glob("snapshot-*") if rebuilt else ():
            shutil.rmtree(snapshot)
        self.store = open_store(self.folder)

    @rule()
    def save(self):
        """Later restarts begin with the checkpoint written here."""
        self.store.write_checkpoint()

    @rule()
    def compact(self):
        self.store.compact()

    @rule()
    def purge(self):
        self.store.purge(timedelta(0))

    @rule()
    def renew(self):
        assert self.store.rebuild_index(force=True)

    @rule(back=st.integers(0, 5))
    def look_back(self, back):
        """An earlier commit gives the memory of that time, or an error if it was purged."""
        commit = self.store.snapshot().commit - back
        if commit < max(self.store.horizon, 1):
            with pytest.raises(StoreError, match="is the earliest"):
                self.store.snapshot_at(commit)
        else:
            self.check_commit(commit)

    def check_commit(self, commit):
        """Asserts that a commit, which may be the last or an earlier one, gives the memory of that time."""
        if known := max((seq for seq in self.known if seq <= commit), default=0):
            check_memory(self.store.document_snapshot_at(commit), *self.known[known])

    @rule(chosen=st.sampled_from(["abc", "a", "bdf", "abcdef", *LABELS]), back=st.sampled_from([None, None, 0, 1, 3]))
    def ask_a_scope(self, chosen, back):
        """A scope equals a memory of its documents, now and at the earlier commit, whether it was used before or not."""
        moment = None if back is None else self.store.snapshot().commit - back
        known = self.documents, self.versions, self.labels
        if moment is not None:
            earlier = max((seq for seq in self.known if seq <= moment), default=0)
            if moment < max(self.store.horizon, 1) or not earlier:
                return
            known = self.known[earlier]

        def wanted(document):
            return chosen in document.metadata["labels"] if chosen in LABELS else document.uri[-1] in chosen

        memory = self.store.scoped(chosen, wanted, moment)
        documents = {
            uri: passages
            for uri, passages in known[0].items()
            if (known[2][uri] == chosen if chosen in LABELS else uri[-1] in chosen)
        }
        whole = self.store.snapshot_at(moment) if moment is not None else self.store.snapshot()
        assert memory.snapshot.commit == whole.commit
        assert sorted(memory.documents) == sorted(documents)

        expected = oracle.export(documents, lambda title, text: reading(title, text, known[1].get(text, 0)))
        assert (difference := oracle.same(export_lines(memory.snapshot), expected)) is None, difference
        check_names(memory.snapshot, documents, known[2])

    @invariant()
    def remember(self):
        if hasattr(self, "store"):
            self.known[self.store.snapshot().commit] = dict(self.documents), dict(self.versions), dict(self.labels)

    @invariant()
    def export_is_that_of_the_documents(self):
        if not hasattr(self, "store"):
            return
        check_memory(self.store.document_snapshot(), self.documents, self.versions, self.labels)
        assert dict(self.store.positions) == self.positions

    def teardown(self):
        if hasattr(self, "store"):
            for commit in range(max(self.store.horizon, 1), self.store.snapshot().commit):
                self.check_commit(commit)
            # Checks what an export does not show: vectors, words, documents, extractors, and dead contents.
            problems = verify(self.store).problems
            self.store.close()
            assert problems == []
            shutil.rmtree(self.folder)


@pytest.fixture(autouse=True)
def fold_often(monkeypatch):
    """Applies the folds, merges, purges and crowding of a large memory to a small one.

    Disables syncing, because no power is lost here.
    """
    monkeypatch.setattr(store.index.synonyms.crowding, "CELL_PHRASES", 3)
    monkeypatch.setattr(oracle, "CELL_PHRASES", 3)
    monkeypatch.setattr(store.index.delta_csr, "FOLD_MIN_ENTRIES", 20)
    monkeypatch.setattr(store.maintenance.compaction, "FLUSH_COMMITS", 2)
    monkeypatch.setattr(store.maintenance.compaction, "MANY_FRAGMENTS", 3)
    monkeypatch.setattr(store.maintenance.retention, "PURGE_SLICE_ROWS", 4)
    monkeypatch.setattr(store.lance.checksums, "sync", lambda path: None)


TestMemory = pytest.mark.slow(MemoryMachine.TestCase)
TestMemory.settings = settings(
    max_examples=int(os.environ.get("HIPPOD_EXAMPLES", "30")),
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
