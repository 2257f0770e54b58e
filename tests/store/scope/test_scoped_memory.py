"""A scope is a memory of its own: what a fresh store of its documents would be, whatever happens meanwhile."""

import random
import time
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

import store.index.live_index
import store.index.synonyms.crowding
import store.scope.scopes
from store.export.canonical_order import CanonicalOrder
from store.export.json_lines import export_lines
from store.passage_id import passage_id
from store.types import Batch, Document, PassageRef, PassageText
from store.verify.compare_snapshots import compare_snapshots
from tests.store import oracle
from tests.store.small_store import HOSTILE, NUMBERED, PHRASES, complete, open_store, reading

SCOPES = ["abc", "d", "bdf", "abcdef", "xyz"]
"""Each by the last letters of its documents' URIs."""


@pytest.fixture(autouse=True)
def small_crowds(monkeypatch):
    """Some phrases are crowded in the whole memory and not in a scope of it."""
    monkeypatch.setattr(store.index.synonyms.crowding, "CELL_PHRASES", 3)
    monkeypatch.setattr(oracle, "CELL_PHRASES", 3)


def scoped(memory, letters, moment=None):
    return memory.scoped(letters, lambda document: document.uri[-1] in letters, moment)


def differences(memory, alone):
    """But for when the documents were committed."""
    other = alone.document_snapshot()
    orders = CanonicalOrder(memory.snapshot), CanonicalOrder(other.snapshot)
    found = [*compare_snapshots(memory, other, *orders), *other_vectors(*orders)]
    return [each for each in found if not each.endswith("is not what the tables say")]


def other_vectors(ones, others):
    """Whose vectors differ."""
    for kind, rows, other_rows in (
        ("passage", ones.passages, others.passages),
        ("phrase", ones.phrases, others.phrases),
        ("triple", ones.triples, others.triples),
    ):
        mine, theirs = (getattr(order.snapshot, f"{kind}_vectors") for order in (ones, others))
        pair = mine.rows(rows), theirs.rows(other_rows)
        if not np.array_equal(*pair):
            yield f"a {kind} has another vector"


def bm25(snapshot, query):
    scores = snapshot.bm25(query).tolist()
    return {snapshot.passage(row).id: score for row, score in enumerate(scores) if snapshot.passage_alive[row]}


class History:
    """A store, and what a plain dictionary says of it."""

    def __init__(self, folder, seed):
        self.store = open_store(folder)
        self.chosen = random.Random(seed)
        self.documents, self.versions, self.known = {}, {}, {}

    def triples(self):
        if self.chosen.random() < 0.6:
            return None
        phrases = [*PHRASES, *HOSTILE, *NUMBERED]
        return tuple((self.chosen.choice(phrases), "is", self.chosen.choice(phrases)) for _ in range(3))

    def change(self):
        uris = self.chosen.sample([f"file:///{letter}" for letter in "abcdef"], self.chosen.choice((1, 1, 2)))
        passages = {
            uri: [("T", f"text {self.chosen.randrange(9)}", self.triples()) for _ in range(self.chosen.randrange(4))]
            for uri in uris
        }
        gone = [uri for uri in uris[1:] if uri in self.documents]
        for uri in gone:
            del passages[uri], self.documents[uri]
        self.commit(passages, gone)
        self.documents.update(passages)

    def read_again(self):
        text = f"text {self.chosen.randrange(9)}"
        self.versions[text] = self.versions.get(text, 0) + 1
        if self.store.passage(passage_id("T", text)) is not None:
            self.commit({}, [], [("T", text)])

    def commit(self, changes, gone, again=()):
        def extract(title, text):
            return reading(title, text, self.versions.get(text, 0))

        self.store.commit(complete(self.store, changes, gone, extract, again))

    def step(self):
        kind = self.chosen.choices(["change", "read", "purge", "fold", "renew"], [8, 2, 1, 1, 1])[0]
        if kind == "change":
            self.change()
        elif kind == "read":
            self.read_again()
        elif kind == "purge":
            self.store.purge(timedelta(0))
        elif kind == "fold":
            self.store.fold()
        else:
            self.store.rebuild_index(force=True)
        read = frozenset(self.store.extraction_states())
        self.known[self.store.snapshot().commit] = dict(self.documents), dict(self.versions), read

    def expected(self, letters, commit):
        documents, versions, read = self.known[commit]

        def extract(title, text):
            # A document that brought triples along spared the extractor the passage, for others that hold it too.
            return reading(title, text, versions.get(text, 0)) if passage_id(title, text) in read else ()

        return oracle.export({uri: each for uri, each in documents.items() if uri[-1] in letters}, extract)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "nearly_whole", "exact_below"), [(0, 0.9, 8_192), (1, 0.0, 8_192), (2, 0.5, 0), (3, 2.0, 0), (4, 0.0, 0)]
)
def test_a_scope_is_what_its_documents_say(tmp_path, monkeypatch, seed, nearly_whole, exact_below):
    """Whether it shares the rows of the whole memory (from `nearly_whole` of the passages on) or has its own, and however
    synonyms are searched for."""
    monkeypatch.setattr(store.scope.scopes, "NEARLY_WHOLE_SHARE", nearly_whole)
    monkeypatch.setattr(store.index.live_index, "EXACT_BELOW", exact_below)
    history = History(tmp_path, seed)
    for step in range(40):
        history.step()
        commit = history.store.snapshot().commit
        for letters in SCOPES if step % 3 else SCOPES[:2]:
            memory = scoped(history.store, letters)
            assert memory.snapshot.commit == commit
            assert (
                difference := oracle.same(export_lines(memory.snapshot), history.expected(letters, commit))
            ) is None, (
                step,
                letters,
                difference,
            )
        then = commit - history.chosen.randrange(4)
        if then >= max(history.store.horizon, 1) and then in history.known and step % 4 == 0:
            memory = scoped(history.store, "bdf", then)
            assert (difference := oracle.same(export_lines(memory.snapshot), history.expected("bdf", then))) is None, (
                difference
            )
    history.store.close()


def test_a_scope_equals_a_store_of_its_documents_in_what_an_export_does_not_show(tmp_path):
    """Vectors, words, who states what and who holds what, before and after a change that is followed."""
    whole, alone = open_store(tmp_path / "whole"), open_store(tmp_path / "alone")
    shared = [("T", "text 3", None)]
    mine = {"file:///a": [*shared, ("T", "text 1", (("amfa", "is", "eq oak"),))], "file:///b": [("", "text 7", None)]}
    whole.commit(complete(whole, mine | {"file:///x": [*shared, ("T", "text 5", None)]}, []))
    alone.commit(complete(alone, mine, []))
    assert differences(scoped(whole, "ab"), alone) == []
    for memory in (whole, alone):
        memory.commit(complete(memory, {"file:///b": [("", "text 8", None), *shared]}, []))
    whole.commit(complete(whole, {"file:///y": [("T", "text 2", None)]}, ["file:///x"]))
    memory = scoped(whole, "ab")
    assert differences(memory, alone) == []
    for query in ("text", "8", "t 3 nothing"):
        assert bm25(memory.snapshot, query) == pytest.approx(bm25(alone.snapshot(), query), abs=1e-6)
    whole.close()
    alone.close()


def test_what_nobody_asks_of_is_given_back_and_room_is_bounded(tmp_path, monkeypatch):
    memory = open_store(tmp_path)
    memory.commit(
        complete(memory, {f"file:///{letter}": [("T", f"text {i}", None)] for i, letter in enumerate("abcd")}, [])
    )
    for letters in ("a", "b", "c"):
        scoped(memory, letters)
    assert memory.scopes.count == 3
    assert memory.scopes.bytes > 0
    monkeypatch.setattr(store.scope.scopes, "HELD_SCOPES", 2)
    scoped(memory, "d")
    assert memory.scopes.count == 2
    monkeypatch.setattr(store.scope.scopes, "HELD_BYTES", 1)
    scoped(memory, "a")
    assert memory.scopes.count == 1
    memory.scopes.drop_idle()
    assert memory.scopes.count == 1
    monkeypatch.setattr(store.scope.scopes, "HELD_BYTES", 1 << 30)
    now = time.monotonic()
    monkeypatch.setattr(store.scope.scopes.time, "monotonic", lambda: now + store.scope.scopes.IDLE_S + 1)
    scoped(memory, "b")
    assert memory.scopes.count == 1  # the one before was given back, though there is room
    monkeypatch.undo()
    monkeypatch.setattr(store.scope.scopes, "IDLE_S", -2000.0)
    memory.scopes.drop_idle()
    assert memory.scopes.count == 0
    memory.close()


def test_a_commit_outside_the_scope_costs_it_nothing_but_its_number(tmp_path):
    memory = open_store(tmp_path)
    memory.commit(complete(memory, {"file:///a": [("T", "text 3", None)], "file:///x": [("T", "text 4", None)]}, []))
    before = scoped(memory, "a").snapshot
    memory.commit(complete(memory, {"file:///x": [("T", "text 5", None)]}, []))
    after = scoped(memory, "a").snapshot
    assert after.commit == before.commit + 1
    assert after.context is before.context
    memory.close()


@pytest.mark.parametrize("first", ["stated", "recorded"])
def test_what_another_document_overruled_counts_in_a_scope_without_it(tmp_path, first):
    """A passage read elsewhere has its triples where no document states any, also if one outside the scope does."""
    whole, alone = open_store(tmp_path / "whole"), open_store(tmp_path / "alone")
    passage = PassageText(passage_id("T", "text 3"), "T", "text 3")
    brought = {
        "stated": Document("file:///b", "test", passages=(PassageRef(passage.id, {}, (("ama", "is", "bo"),)),)),
        "recorded": Document("file:///a", "test", passages=(PassageRef(passage.id, {}, (("cy", "is", "cya"),), "x"),)),
    }

    def commit(memory, document):
        batch = Batch((document,), passages=(passage,))
        missing = memory.missing(batch)
        memory.commit(
            replace(
                batch,
                passage_vectors={each.id: oracle.vector(each.full) for each in missing.passages},
                phrase_vectors={each: oracle.vector(each) for each in missing.phrases},
                triple_vectors={each: oracle.vector(" ".join(each)) for each in missing.triples},
            )
        )

    commit(whole, brought.pop(first))
    scoped(whole, "a")
    commit(whole, brought.popitem()[1])
    commit(alone, whole.document("file:///a"))
    assert differences(scoped(whole, "a"), alone) == []
    whole.purge(timedelta(0))
    whole.rebuild_index(force=True)
    assert differences(scoped(whole, "a"), alone) == []
    assert alone.snapshot().living_triples == 1
    whole.close()
    alone.close()
