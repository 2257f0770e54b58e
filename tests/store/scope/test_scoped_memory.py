"""A scope equals a fresh store of its documents, during any changes."""

import random
import time
from datetime import timedelta

import numpy as np
import pytest

import store.index.live_index
import store.index.synonyms.crowding
import store.scope.scopes
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from memory.types import Encoder
from store.export.canonical_order import CanonicalOrder
from store.export.json_lines import export_lines
from store.types import EncoderIdentity, passage_id
from store.verify.compare_memories import compare_snapshots
from tests.store import oracle
from tests.store.small_store import HOSTILE, NUMBERED, PHRASES, complete, open_store, reading

SCOPES = ["abc", "d", "bdf", "abcdef", "xyz"]
"""Each by the last letters of its documents' URIs."""


@pytest.fixture(autouse=True)
def small_crowds(monkeypatch):
    """Makes some phrases crowded in the whole memory but not in a scope of it."""
    monkeypatch.setattr(store.index.synonyms.crowding, "CELL_PHRASES", 3)
    monkeypatch.setattr(oracle, "CELL_PHRASES", 3)


def scoped(memory, letters, moment=None):
    return memory.scoped(letters, lambda document: document.uri[-1] in letters, moment)


def differences(memory, alone):
    """Returns the differences, except the documents' commit times."""
    other = alone.document_snapshot()
    orders = CanonicalOrder(memory.snapshot), CanonicalOrder(other.snapshot)
    found = [*compare_snapshots(memory, other, *orders), *other_vectors(*orders)]
    return [each for each in found if not each.endswith("differs from the tables")]


def other_vectors(ones, others):
    """Returns the entries whose vectors differ."""
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
    """A store, and a plain dictionary of its expected content."""

    def __init__(self, folder, seed):
        self.store = open_store(folder)
        self.chosen = random.Random(seed)
        self.documents, self.versions, self.known = {}, {}, {}

    def supplied(self):
        """Returns triples, sometimes none, and their extractor; or (None,) for no extraction."""
        if self.chosen.random() < 0.5:
            return (None,)
        phrases = [*PHRASES, *HOSTILE, *NUMBERED]
        count = self.chosen.choice((0, 1, 3))
        choice = self.chosen.choice
        triples = tuple((choice(phrases), choice(("is", "")), choice(phrases)) for _ in range(count))
        return triples, self.chosen.choice((None, "oracle", "another"))

    def change(self):
        uris = self.chosen.sample([f"file:///{letter}" for letter in "abcdef"], self.chosen.choice((1, 1, 2)))
        passages = {
            uri: [("T", f"text {self.chosen.randrange(9)}", *self.supplied()) for _ in range(self.chosen.randrange(4))]
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
        self.known[self.store.snapshot().commit] = dict(self.documents), dict(self.versions)

    def expected(self, letters, commit):
        documents, versions = self.known[commit]
        inside = {uri: each for uri, each in documents.items() if uri[-1] in letters}
        return oracle.export(inside, lambda title, text: reading(title, text, versions.get(text, 0)))


@pytest.mark.parametrize("masked", [0.0, 2.0])
def test_a_scope_without_queries_meanwhile_survives_a_purge_of_its_texts(tmp_path, monkeypatch, masked):
    """A text that is removed, purged and added again has another row in the whole memory."""
    monkeypatch.setattr(store.scope.scopes, "SHARED_ROWS_SHARE", masked)
    documents = {f"file:///{letter}": [("T", f"text {i}", None)] for i, letter in enumerate("abcdefgh")}
    inside = {uri: each for uri, each in documents.items() if uri[-1] != "h"}
    with open_store(tmp_path) as memory:
        memory.commit(complete(memory, documents, []))
        expected = list(export_lines(scoped(memory, "abcdefg").snapshot))
        memory.commit(complete(memory, {}, ["file:///d"]))
        memory.purge(timedelta(0))
        memory.commit(complete(memory, {"file:///d": documents["file:///d"]}, []))
        found = scoped(memory, "abcdefg")
        assert found.snapshot.living_passages == len(inside)
        assert list(export_lines(found.snapshot)) == expected


@pytest.mark.parametrize("masked", [0.0, 2.0])
def test_a_scope_survives_a_purge_of_a_passage_that_was_extracted_again(tmp_path, monkeypatch, masked):
    monkeypatch.setattr(store.scope.scopes, "SHARED_ROWS_SHARE", masked)
    documents = {f"file:///{letter}": [("T", f"text {i}", None)] for i, letter in enumerate("abcde")}
    with open_store(tmp_path) as memory:
        memory.commit(complete(memory, documents, []))
        scoped(memory, "bcde")
        memory.commit(complete(memory, {}, [], again=[("T", "text 4")]))
        memory.commit(complete(memory, {}, ["file:///e"]))
        memory.purge(timedelta(0))
        assert scoped(memory, "bcde").snapshot.living_passages == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "masked", "exact_below"), [(0, 0.9, 8_192), (1, 0.0, 8_192), (2, 0.5, 0), (3, 2.0, 0), (4, 0.0, 0)]
)
def test_scope_equals_a_memory_of_its_documents_after_random_changes(tmp_path, monkeypatch, seed, masked, exact_below):
    """For scopes that share the rows of the whole memory (from the share `masked` on) or have their own, and for each
    kind of synonym search."""
    monkeypatch.setattr(store.scope.scopes, "SHARED_ROWS_SHARE", masked)
    monkeypatch.setattr(store.index.live_index, "EXACT_BELOW", exact_below)
    history = History(tmp_path, seed)
    for step in range(24):
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
    """Vectors, words, statements and holders, before and after a change that the scope follows."""
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


def test_idle_scopes_are_dropped_and_cached_scopes_are_limited(tmp_path, monkeypatch):
    memory = open_store(tmp_path)
    memory.commit(
        complete(memory, {f"file:///{letter}": [("T", f"text {i}", None)] for i, letter in enumerate("abcd")}, [])
    )
    for letters in ("a", "b", "c"):
        scoped(memory, letters)
    assert memory.scopes.count == 3
    assert memory.scopes.bytes > 0
    monkeypatch.setattr(store.scope.scopes, "MAX_CACHED_SCOPES", 2)
    scoped(memory, "d")
    assert memory.scopes.count == 2
    monkeypatch.setattr(store.scope.scopes, "MAX_CACHED_BYTES", 1)
    scoped(memory, "a")
    assert memory.scopes.count == 1
    memory.scopes.drop_idle()
    assert memory.scopes.count == 1
    monkeypatch.setattr(store.scope.scopes, "MAX_CACHED_BYTES", 1 << 30)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + store.scope.scopes.IDLE_S + 1)
    scoped(memory, "b")
    assert memory.scopes.count == 1  # the one before was dropped, although there is room
    monkeypatch.undo()
    monkeypatch.setattr(store.scope.scopes, "IDLE_S", -2000.0)
    memory.scopes.drop_idle()
    assert memory.scopes.count == 0
    memory.close()


def test_commit_outside_a_scope_changes_only_its_commit_number(tmp_path):
    memory = open_store(tmp_path)
    memory.commit(complete(memory, {"file:///a": [("T", "text 3", None)], "file:///x": [("T", "text 4", None)]}, []))
    before = scoped(memory, "a").snapshot
    memory.commit(complete(memory, {"file:///x": [("T", "text 5", None)]}, []))
    after = scoped(memory, "a").snapshot
    assert after.commit == before.commit + 1
    assert after.context is before.context
    memory.close()


class OracleEncoder(Encoder):
    """The vectors of the store's texts, for queries."""

    identity = EncoderIdentity("oracle", oracle.DIM)

    def encode(self, texts):
        return np.stack([oracle.vector(text) for text in texts])

    encode_query = staticmethod(oracle.vector)


# One passage and two documents: the triples that each supplies, and those that each scope has.

TEXT = ("T", "text 3")
LOCAL = set(reading(*TEXT))
BOARD, PRESS = ("ama", "is", "bo"), ("cy", "is", "cya")
NOBODY = (None,)
SUPPLIED = {
    "nobody looked": (NOBODY, set(), True),
    "empty list": (((),), set(), False),
    "empty record": (((), "oracle"), set(), False),
    "list": (((BOARD,),), {BOARD}, False),
    "record": (((PRESS,), "another"), {PRESS}, False),
    "record of the local extractor's name": (((PRESS, BOARD), "oracle"), {PRESS, BOARD}, False),
}
"""The cases of a document's supply: its triples, and whether the local extractor processes the passage for it."""


def triples_of(memory):
    snapshot = memory.snapshot
    return {snapshot.triple(row) for row in np.flatnonzero(snapshot.triple_alive).tolist()}


def by_the_rule(supplied):
    """Returns the triples of a passage whose documents supply these, by the rule in plain code."""
    union = set().union(*(SUPPLIED[each][1] for each in supplied))
    if union:
        return union
    return LOCAL if any(SUPPLIED[each][2] for each in supplied) else set()


@pytest.mark.parametrize("others", list(SUPPLIED))
@pytest.mark.parametrize("mine", list(SUPPLIED))
def test_shared_passage_has_only_triples_of_documents_in_the_scope(mine, others, tmp_path):
    """For either order of the two documents; during additions, replacements and removals; and after a start from the tables."""
    for order in ("ab", "ba"):
        memory = open_store(tmp_path / order)
        supplied = {"a": mine, "b": others}
        for letter in order:
            memory.commit(complete(memory, {f"u:{letter}": [(*TEXT, *SUPPLIED[supplied[letter]][0])]}, []))
            scoped(memory, "a")  # it follows later changes
        states = {letters: by_the_rule([supplied[letter] for letter in letters]) for letters in ("a", "b", "ab")}
        assert {letters: triples_of(scoped(memory, letters)) for letters in states} == states
        memory.close()
        memory = open_store(tmp_path / order)
        assert {letters: triples_of(scoped(memory, letters)) for letters in states} == states
        memory.commit(complete(memory, {}, ["u:b"]))
        memory.purge(timedelta(0))
        assert triples_of(scoped(memory, "ab")) == states["a"]
        memory.close()


def test_passage_is_extracted_only_for_documents_without_an_extraction(tmp_path):
    memory = open_store(tmp_path)
    memory.commit(complete(memory, {"u:a": [(*TEXT, (BOARD,))], "u:b": [(*TEXT, (), "oracle")]}, []))
    assert memory.extraction_states() == {}, "no extractor runs for documents that bring an extraction"
    assert memory.documents_to_extract(passage_id(*TEXT)) == []
    memory.commit(complete(memory, {"u:c": [(*TEXT, None)]}, []))
    assert list(memory.extraction_states()) == [passage_id(*TEXT)]
    assert memory.documents_to_extract(passage_id(*TEXT)) == ["u:c"]
    memory.commit(complete(memory, {}, ["u:c"]))
    assert memory.passages_by_extraction(lambda _: True) == []
    memory.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_score_in_a_scope_equals_a_fresh_memory_of_its_documents(tmp_path, seed):
    """Records, lists and unextracted passages, shared between documents: not only the export is equal."""
    history = History(tmp_path / "whole", seed)
    for _ in range(25):
        history.change()
    for letters in ("abc", "d", "bdf"):
        alone = open_store(tmp_path / letters)
        inside = {uri: each for uri, each in history.documents.items() if uri[-1] in letters}
        alone.commit(complete(alone, inside, []))
        memory = scoped(history.store, letters)
        assert differences(memory, alone) == []
        assert list(export_lines(memory.snapshot)) == list(export_lines(alone.snapshot()))
        for mode in ("hipporag2", "hipporag", "fused", "query-to-node", "bm25"):
            asked = (OracleEncoder(), "text 3 ama", mode, 9, RetrievalSettings())
            ranked = [
                [(hit.id, round(hit.score, 6)) for hit in retrieve(snapshot, *asked).hits]
                for snapshot in (memory.snapshot, alone.snapshot())
            ]
            assert ranked[0] == ranked[1], mode
        alone.close()
    history.store.close()
