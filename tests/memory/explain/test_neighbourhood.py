"""The part of the graph that is drawn: the heaviest nodes, their edges as they are, and never more than was asked for."""

import random

import numpy as np
import pytest

import memory.explain.strongest_path
from memory.encoder import make_encoder
from memory.explain.explain import explain, passage_target
from memory.explain.neighbourhood import (
    EDGE_KINDS,
    EDGES_PER_NODE,
    MIN_PATH_SHARE,
    Neighbourhood,
    node_neighbourhood,
    query_neighbourhood,
)
from memory.explain.strongest_path import StrongestPathSearch
from memory.retrieval.modes import MODES
from memory.retrieval.query_context import QueryContext
from memory.retrieval.retrieve import top_hits
from memory.retrieval.settings import RetrievalSettings
from store.index.graph.edge_entries import EdgeWeights
from store.store import Store
from tests.memory.retrieval.test_reference import QUERIES, commit, document

ENCODER = make_encoder("hash", "64", 64, "cpu")
WALKS = [name for name, mode in MODES.items() if mode.walks_graph]
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


def context(store: Store, query: str = QUERY, k: int = 4) -> QueryContext:
    return QueryContext(store.snapshot(), ENCODER, query, RetrievalSettings(), None, k)


def oracle(snapshot) -> dict[tuple[int, int, str], float]:
    """Every edge of the memory, smaller node first."""
    first, found = snapshot.n_phrases, {}
    for kind, view, shift in (
        ("relation", snapshot.relation, 0),
        ("mention", snapshot.mention, 0),
        ("synonym", snapshot.synonym, 0),
        ("context", snapshot.context, first),
    ):
        whole = view.merged().tocoo()
        for row, column, value in zip(whole.row.tolist(), whole.col.tolist(), whole.data.tolist(), strict=True):
            if row + shift != column and abs(value) > 1e-9:
                found[min(row + shift, column), max(row + shift, column), kind] = value
    return found


def edges(found: Neighbourhood) -> dict[tuple[int, int, str], float]:
    between, told = found.edges, {}
    for source, target, kind, weight in zip(
        between.sources, between.targets, between.kinds, between.weights, strict=True
    ):
        a, b = int(found.nodes[source]), int(found.nodes[target])
        assert (min(a, b), max(a, b), EDGE_KINDS[kind]) not in told
        told[min(a, b), max(a, b), EDGE_KINDS[kind]] = float(weight)
    return told


@pytest.mark.parametrize("mode", MODES)
def test_neighbourhood_edges_are_the_memory_edges_between_its_nodes(store: Store, mode: str) -> None:
    found = query_neighbourhood(context(store), mode, 2000)
    every = oracle(store.snapshot())
    chosen = set(found.nodes.tolist())
    assert len(chosen) == len(found.nodes) > 10
    between = {key: weight for key, weight in every.items() if {key[0], key[1]} <= chosen}
    told = edges(found)
    assert found.edges.edges_between == len(between)
    assert told.items() <= {key: pytest.approx(weight) for key, weight in between.items()}.items()
    assert len(told) == min(len(between), EDGES_PER_NODE * len(found.nodes))
    degrees = {node: sum(node in key[:2] for key in every) for node in chosen}
    assert dict(zip(found.nodes.tolist(), found.edges.degrees.tolist(), strict=True)) == degrees


@pytest.mark.parametrize("most", [1, 2, 7, 25, 60])
@pytest.mark.parametrize("mode", ["fused", "hipporag2", "hipporag", "bm25"])
def test_neighbourhood_is_limited_and_ordered_by_hits_then_rank(store: Store, mode: str, most: int) -> None:
    found = query_neighbourhood(context(store), mode, most)
    assert len(found.nodes) == most
    assert len(found.edges.sources) <= EDGES_PER_NODE * most
    first = store.snapshot().n_phrases
    assert found.nodes[: len(found.hits)].tolist() == [first + hit.row for hit in found.hits][:most]
    assert found.mass is not None and found.reset is not None
    ranking = MODES[mode].rank(context(store))
    if ranking.pagerank is None:
        assert "without a walk" in (found.note or "") and not found.paths
        return
    ranks = ranking.pagerank.ranks
    assert found.mass == pytest.approx(ranks[found.nodes])
    assert found.reset.sum() <= 1.0 + 1e-9
    named = {node for path in found.paths for node in path.nodes} | set(
        np.flatnonzero(ranking.pagerank.walk.reset[:first]).tolist()
    )
    named |= {first + hit.row for hit in found.hits}
    others = [node for node in found.nodes.tolist() if node not in named]
    left = np.delete(ranks, found.nodes)
    if others:
        assert min(ranks[others]) >= left.max(initial=0.0)
    for path in found.paths:
        assert set(path.nodes) <= set(found.nodes.tolist())


def test_relation_edges_name_triples_that_they_stand_for(store: Store) -> None:
    snapshot = store.snapshot()
    found = query_neighbourhood(context(store), "fused", 2000)
    named = 0
    for source, target, kind, triples in zip(
        found.edges.sources, found.edges.targets, found.edges.kinds, found.edges.triples, strict=True
    ):
        if EDGE_KINDS[kind] != "relation":
            assert not triples
            continue
        ends = {snapshot.phrase(int(found.nodes[source])), snapshot.phrase(int(found.nodes[target]))}
        alive = {
            snapshot.triple(row)
            for row in np.flatnonzero(snapshot.statement_alive).tolist()
            if {snapshot.triple(row)[0], snapshot.triple(row)[2]} == ends
        }
        assert triples and set(triples) <= alive and len(triples) == min(len(alive), 3)
        named += 1
    assert named > 10


@pytest.mark.parametrize("mode", WALKS)
def test_neighbourhood_paths_equal_the_explained_paths(store: Store, mode: str) -> None:
    question = context(store)
    ranking = MODES[mode].rank(question)
    explanations = explain(question, ranking, [hit.row for hit in top_hits(question, ranking, 4)])
    found = query_neighbourhood(context(store), mode, 2000)
    first = store.snapshot().n_phrases
    explained = {
        explanation.row: (
            explanation.path.share,
            [node.row + first * node.is_passage for node in explanation.path.nodes],
        )
        for explanation in explanations
        if explanation.path is not None and explanation.path.share >= MIN_PATH_SHARE
    }
    paths: dict[int, tuple[object, list[int]]] = {
        path.passage: (pytest.approx(path.share, rel=1e-4), list(path.nodes)) for path in found.paths
    }
    assert paths == explained
    assert explained


@pytest.mark.slow
@pytest.mark.parametrize("mode", WALKS)
@pytest.mark.parametrize("least", [1, 3, 17])
def test_path_search_from_few_nodes_finds_the_same_paths(
    store: Store, mode: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = store.snapshot()
    for query in QUERIES[:3]:
        pagerank = MODES[mode].rank(context(store, query)).pagerank
        if pagerank is None:
            continue

        def paths(first: int, growth: int, share: float, pagerank=pagerank) -> list[tuple[float, int] | None]:
            monkeypatch.setattr(memory.explain.strongest_path, "FIRST_SEARCH_NODES", first)
            monkeypatch.setattr(memory.explain.strongest_path, "SEARCH_GROWTH_FACTOR", growth)
            search = StrongestPathSearch(snapshot, pagerank)
            rows = range(0, snapshot.n_passages, 5)
            found = [search.to(passage_target(snapshot, pagerank, row), 1.0, share) for row in rows]
            return [each and (each[0], each[1][-1]) for each in found]

        for share in (0.0, 1e-4, 0.01):
            whole = paths(1_000_000, 2, share)
            expected: list[object] = [each and (pytest.approx(each[0], rel=1e-9), each[1]) for each in whole]
            assert paths(least, 2, share) == expected


@pytest.mark.parametrize("kind", ["phrase", "passage"])
def test_node_neighbours_are_ordered_by_edge_weight(store: Store, kind: str) -> None:
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
        found = node_neighbourhood(None, "fused", snapshot, centre, most)
        assert found.neighbours == len(weights) > 2
        assert found.nodes[0] == centre and found.mass is None
        others = found.nodes[1:].tolist()
        assert len(others) == min(most - 1, len(weights))
        assert sorted(weights.values(), reverse=True)[: len(others)] == pytest.approx(
            [weights[node] for node in others]
        )
        star = {key for key in every if centre in key[:2] and {key[0], key[1]} <= set(found.nodes.tolist())}
        assert star <= set(edges(found))
    ranked = node_neighbourhood(context(store), "fused", snapshot, centre, 2000)
    assert ranked.mass is not None and ranked.mass.sum() > 0


def test_neighbourhood_of_an_empty_memory_is_empty(tmp_path) -> None:
    with Store(tmp_path / "store", ENCODER.identity) as empty:
        for mode in MODES:
            found = query_neighbourhood(context(empty), mode, 50)
            assert len(found.nodes) == len(found.edges.sources) == 0


@pytest.mark.parametrize(
    "weights",
    [EdgeWeights(2.0, 2.0, 2.0, 1.0), EdgeWeights(1.0, 1.0, 1.0), EdgeWeights(2.0, 1.0, 2.0, 0.0, 1.0)],
)
def test_weights_between_selected_nodes_equal_those_of_the_full_graph(store: Store, weights: EdgeWeights) -> None:
    walk = store.snapshot().adjacency(weights)
    whole = walk.merged().toarray()
    chance = np.random.default_rng(1)
    for count in (0, 1, 20, walk.nodes):
        nodes = chance.permutation(walk.nodes)[:count]
        assert walk.among(nodes).toarray() == pytest.approx(whole[np.ix_(nodes, nodes)])
