"""The part of the graph that is drawn: the heaviest nodes, their edges as they are, and never more than was asked for."""

import random

import numpy as np
import pytest

import memory.ways
from memory.asking import Asked, RetrievalSettings
from memory.encoder import make_encoder
from memory.explain import explain, passage_target
from memory.modes import MODES
from memory.neighbourhood import EDGES_A_NODE, KINDS, LEAST_SHARE, Neighbourhood, around, neighbourhood
from memory.retrieval import hits
from memory.ways import Ways
from store.store import Store
from store.walk import EdgeWeights
from tests.memory.test_retrieval_reference import QUERIES, commit, document

ENCODER = make_encoder("hash", "64", 64, "cpu")
WALKS = ["fused", "hipporag2", "query-to-node", "ner-to-node", "hipporag"]
QUERY = QUERIES[2]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory):
    """A memory with logs: some documents were changed and some went after it was folded."""
    chance = random.Random(5)
    with Store(tmp_path_factory.mktemp("memory") / "store", ENCODER.identity) as store:
        commit(store, {f"file:///{at}": document(chance) for at in range(80)})
        store.fold()
        commit(
            store, {f"file:///{at}": document(chance) for at in range(0, 90, 9)}, [f"file:///{at}" for at in (3, 40)]
        )
        yield store


def asked(store: Store, query: str = QUERY, k: int = 4) -> Asked:
    return Asked(store.snapshot(), ENCODER, query, RetrievalSettings(), None, k)


def oracle(snapshot) -> dict[tuple[int, int, str], float]:
    """Every edge of the memory, smaller node first."""
    first, found = snapshot.n_phrases, {}
    for kind, view, shift in (
        ("relation", snapshot.relation, 0),
        ("synonym", snapshot.synonym, 0),
        ("context", snapshot.context, first),
    ):
        whole = view.merged().tocoo()
        for row, column, value in zip(whole.row.tolist(), whole.col.tolist(), whole.data.tolist(), strict=True):
            if row + shift != column and abs(value) > 1e-9:
                found[min(row + shift, column), max(row + shift, column), kind] = value
    return found


def edges(found: Neighbourhood) -> dict[tuple[int, int, str], float]:
    links, told = found.links, {}
    for source, target, kind, weight in zip(links.sources, links.targets, links.kinds, links.weights, strict=True):
        a, b = int(found.nodes[source]), int(found.nodes[target])
        assert (min(a, b), max(a, b), KINDS[kind]) not in told
        told[min(a, b), max(a, b), KINDS[kind]] = float(weight)
    return told


@pytest.mark.parametrize("mode", MODES)
def test_the_edges_are_those_of_the_memory_between_the_nodes(store: Store, mode: str) -> None:
    found = neighbourhood(asked(store), mode, 2000)
    every = oracle(store.snapshot())
    chosen = set(found.nodes.tolist())
    assert len(chosen) == len(found.nodes) > 10
    between = {key: weight for key, weight in every.items() if {key[0], key[1]} <= chosen}
    told = edges(found)
    assert found.links.there == len(between)
    assert told.items() <= {key: pytest.approx(weight) for key, weight in between.items()}.items()
    assert len(told) == min(len(between), EDGES_A_NODE * len(found.nodes))
    degrees = {node: sum(node in key[:2] for key in every) for node in chosen}
    assert dict(zip(found.nodes.tolist(), found.links.degrees.tolist(), strict=True)) == degrees


@pytest.mark.parametrize("most", [1, 2, 7, 25, 60])
@pytest.mark.parametrize("mode", ["fused", "hipporag2", "hipporag", "bm25"])
def test_no_more_than_was_asked_for_the_passages_found_first_then_the_heaviest(
    store: Store, mode: str, most: int
) -> None:
    found = neighbourhood(asked(store), mode, most)
    assert len(found.nodes) == most
    assert len(found.links.sources) <= EDGES_A_NODE * most
    first = store.snapshot().n_phrases
    assert found.nodes[: len(found.hits)].tolist() == [first + hit.row for hit in found.hits][:most]
    assert found.mass is not None and found.reset is not None
    ranking = MODES[mode](asked(store))
    if ranking.walked is None:
        assert "without a walk" in (found.note or "") and not found.trails
        return
    ranks = ranking.walked.ranks
    assert found.mass == pytest.approx(ranks[found.nodes])
    assert found.reset.sum() <= 1.0 + 1e-9
    named = {node for trail in found.trails for node in trail.nodes} | set(
        np.flatnonzero(ranking.walked.reset[:first]).tolist()
    )
    named |= {first + hit.row for hit in found.hits}
    others = [node for node in found.nodes.tolist() if node not in named]
    left = np.delete(ranks, found.nodes)
    if others:
        assert min(ranks[others]) >= left.max(initial=0.0)
    for trail in found.trails:
        assert set(trail.nodes) <= set(found.nodes.tolist())


def test_relation_edges_name_triples_that_they_stand_for(store: Store) -> None:
    snapshot = store.snapshot()
    found = neighbourhood(asked(store), "fused", 2000)
    named = 0
    for source, target, kind, triples in zip(
        found.links.sources, found.links.targets, found.links.kinds, found.links.triples, strict=True
    ):
        if KINDS[kind] != "relation":
            assert not triples
            continue
        ends = {snapshot.phrase(int(found.nodes[source])), snapshot.phrase(int(found.nodes[target]))}
        alive = {
            snapshot.triple(row)
            for row in np.flatnonzero(snapshot.triple_alive).tolist()
            if {snapshot.triple(row)[0], snapshot.triple(row)[2]} == ends
        }
        assert triples and set(triples) <= alive and len(triples) == min(len(alive), 3)
        named += 1
    assert named > 10


@pytest.mark.parametrize("mode", WALKS)
def test_the_paths_are_the_ways_that_explain_tells_of(store: Store, mode: str) -> None:
    question = asked(store)
    ranking = MODES[mode](question)
    reasons = explain(question, ranking, [hit.row for hit in hits(question, ranking, 4)])
    found = neighbourhood(asked(store), mode, 2000)
    first = store.snapshot().n_phrases
    ways = {
        reason.row: (reason.way.share, [step.row + first * step.is_passage for step in reason.way.steps])
        for reason in reasons
        if reason.way is not None and reason.way.share >= LEAST_SHARE
    }
    assert {trail.passage: (pytest.approx(trail.share, rel=1e-4), list(trail.nodes)) for trail in found.trails} == ways
    assert ways


@pytest.mark.parametrize("mode", WALKS)
@pytest.mark.parametrize("least", [1, 3, 17])
def test_a_search_among_few_nodes_finds_the_same_ways(
    store: Store, mode: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = store.snapshot()
    for query in QUERIES[:3]:
        walked = MODES[mode](asked(store, query)).walked
        if walked is None:
            continue

        def ways(first: int, growth: int, share: float, walked=walked) -> list[object]:
            monkeypatch.setattr(memory.ways, "FIRST", first)
            monkeypatch.setattr(memory.ways, "GROWTH", growth)
            search = Ways(snapshot, walked)
            rows = range(0, snapshot.n_passages, 5)
            found = [search.to(passage_target(snapshot, walked, row), 1.0, share) for row in rows]
            return [each and (pytest.approx(each[0], rel=1e-9), each[1][-1]) for each in found]

        for share in (0.0, 1e-4, 0.01):
            whole = ways(1_000_000, 2, share)
            assert ways(least, 2, share) == [each and (each[0].expected, each[1]) for each in whole]


@pytest.mark.parametrize("kind", ["phrase", "passage"])
def test_a_node_is_expanded_by_weight(store: Store, kind: str) -> None:
    snapshot = store.snapshot()
    first, every = snapshot.n_phrases, oracle(snapshot)
    centre = int(np.argmax(snapshot.phrase_passages))
    if kind == "passage":
        centre = first + int(np.flatnonzero(snapshot.passage_alive)[4])
    weights: dict[int, float] = {}
    for (a, b, _), weight in every.items():
        if centre in (a, b):
            weights[a + b - centre] = max(weights.get(a + b - centre, 0.0), weight)
    for most in (1, 4, 2000):
        found = around(None, "fused", snapshot, centre, most)
        assert found.neighbours == len(weights) > 2
        assert found.nodes[0] == centre and found.mass is None
        others = found.nodes[1:].tolist()
        assert len(others) == min(most - 1, len(weights))
        assert sorted(weights.values(), reverse=True)[: len(others)] == pytest.approx(
            [weights[node] for node in others]
        )
        star = {key for key in every if centre in key[:2] and {key[0], key[1]} <= set(found.nodes.tolist())}
        assert star <= set(edges(found))
    ranked = around(asked(store), "fused", snapshot, centre, 2000)
    assert ranked.mass is not None and ranked.mass.sum() > 0


def test_an_empty_memory_has_nothing_around(tmp_path) -> None:
    with Store(tmp_path / "store", ENCODER.identity) as empty:
        for mode in MODES:
            found = neighbourhood(asked(empty), mode, 50)
            assert len(found.nodes) == len(found.links.sources) == 0


@pytest.mark.parametrize(
    "weights", [EdgeWeights(2.0, 2.0, 1.0), EdgeWeights(1.0, 1.0), EdgeWeights(2.0, 2.0, 0.0, 1.0)]
)
def test_the_weights_among_some_nodes_are_those_of_the_whole(store: Store, weights: EdgeWeights) -> None:
    walk = store.snapshot().walk(weights)
    whole = walk.merged().toarray()
    chance = np.random.default_rng(1)
    for count in (0, 1, 20, walk.nodes):
        nodes = chance.permutation(walk.nodes)[:count]
        assert walk.among(nodes).toarray() == pytest.approx(whole[np.ix_(nodes, nodes)])
