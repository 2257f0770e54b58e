"""What a large memory does, pushes and codes, asked of a small one: near the exact answer, and the same in any order."""

import random
from unittest.mock import Mock

import pytest

import memory.retrieval.linking.compared_rows
import memory.retrieval.pagerank.walk
import store.checkpoint.files
import store.index.quantised.groups
import store.index.vectors.matrix
from memory.encoder import make_encoder
from memory.retrieval.modes import MODES
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from store.index.parallel import wait_for_background
from store.store import Store
from tests.memory.retrieval.test_reference import commit, document

ENCODER = make_encoder("hash", "64", 64, "cpu")
GROUP_ROWS = 16
QUERIES = ("Who built the amber gauge of the river?", "river", "Casimir Dorn and the Amber Gauge")


@pytest.fixture(autouse=True)
def searched(monkeypatch):
    """Makes every memory large, and returns the mock that counts the searches of four-bit codes."""
    monkeypatch.setattr(memory.retrieval.pagerank.walk, "PUSH_MIN_NODES", 0)
    monkeypatch.setattr(memory.retrieval.pagerank.walk, "PUSH_MAX_WORK", 1e9)
    monkeypatch.setattr(memory.retrieval.linking.compared_rows, "CODED_MIN_ROWS", 0)
    monkeypatch.setattr(memory.retrieval.linking.compared_rows, "GROUPED_MIN_ROWS", 0)
    monkeypatch.setattr(store.index.vectors.matrix, "GROUPED_MIN_ROWS", 0)
    monkeypatch.setattr(store.index.quantised.groups, "MIN_GROUP_ROWS", GROUP_ROWS)
    for module in (store.index.vectors.matrix, memory.retrieval.linking.compared_rows, store.checkpoint.files):
        monkeypatch.setattr(module, "BLOCK_VECTORS", GROUP_ROWS)
    search = Mock(wraps=store.index.quantised.groups.search_group)
    monkeypatch.setattr(memory.retrieval.linking.compared_rows, "search_group", search)
    return search


def documents(count, seed):
    chance = random.Random(seed)
    return {f"file:///{at}": document(chance) for at in range(count)}


def answers(snapshot, **settings):
    """{mode and query: {passage: score}}."""
    retrieve(snapshot, ENCODER, QUERIES[0], "hipporag2", 5, RetrievalSettings())  # starts to make the groups
    wait_for_background()
    found = {}
    for mode in MODES:
        for query in QUERIES:
            hits = retrieve(snapshot, ENCODER, query, mode, 5, RetrievalSettings(**settings)).hits
            found[mode, query] = {hit.id: hit.score for hit in hits}
    return found


def assert_same(found, expected, within):
    for asked, scores in expected.items():
        assert found[asked] == pytest.approx(scores, abs=within), asked


def assert_near(found, exact, within):
    """The same but for the last places, which those share out whose scores are no further apart."""
    for asked, scores in exact.items():
        other = found[asked]
        both = scores.keys() & other.keys()
        assert {each: other[each] for each in both} == pytest.approx(
            {each: scores[each] for each in both}, abs=within
        ), asked
        assert len(other) == len(scores)
        last = min([*scores.values(), *other.values()], default=0.0)
        assert all(
            each <= last + within for one, of in ((scores, other), (other, scores)) for each in alone(one, of)
        ), asked


def alone(scores, others):
    return [score for passage, score in scores.items() if passage not in others]


def test_large_memory_answer_is_nearly_exact_and_independent_of_order(tmp_path, searched) -> None:
    kept, others = documents(30, 1), {f"{uri}x": each for uri, each in documents(15, 2).items()}
    with Store(tmp_path / "at once", ENCODER.identity) as at_once:
        commit(at_once, kept)
        expected = answers(at_once.snapshot())
        assert searched.called
        assert_near(expected, answers(at_once.snapshot(), exact=True), 2e-3)
    with Store(tmp_path / "one by one", ENCODER.identity) as memory:
        commit(memory, others)
        for uri in reversed(kept):
            commit(memory, {uri: kept[uri]})
        scope = memory.scoped("kept", lambda document: not document.uri.endswith("x"))
        assert_same(answers(scope.snapshot), expected, 1e-6)
        commit(memory, {}, list(others))
        assert_same(answers(memory.snapshot()), expected, 1e-6)
        memory.fold()
        memory.write_checkpoint()
    with Store(tmp_path / "one by one", ENCODER.identity) as memory:
        assert memory.opened_from.startswith("checkpoint")
        assert_same(answers(memory.snapshot()), expected, 1e-6)


@pytest.mark.parametrize("mode", [mode.name for mode in MODES.values() if mode.walks_graph])
def test_approximate_explanation_is_close_to_the_exact_one(tmp_path, mode) -> None:
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, documents(30, 3))
        asked = memory.snapshot(), ENCODER, QUERIES[0], mode, 3
        fast = retrieve(*asked, RetrievalSettings(), explained=True).explanations
        exact = retrieve(*asked, RetrievalSettings(exact=True), explained=True).explanations
    for one, other in zip(fast, exact, strict=True):
        assert one.own_share == pytest.approx(other.own_share, abs=1e-3)
        assert {seed.row: seed.share for seed in one.phrase_shares} == pytest.approx(
            {seed.row: seed.share for seed in other.phrase_shares}, abs=1e-3
        )
        assert (one.path is None) == (other.path is None)
        if one.path is not None and other.path is not None:
            assert [node.row for node in one.path.nodes] == [node.row for node in other.path.nodes]
