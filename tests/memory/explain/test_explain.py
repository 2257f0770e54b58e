"""What an explanation says is so: shares are found again by leaving seeds out, paths by walking them."""

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from memory.encoder import make_encoder
from memory.explain.explain import explain
from memory.retrieval.modes import MODES
from memory.retrieval.pagerank.chebyshev import pagerank_reordered
from memory.retrieval.query_context import QueryContext
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from store.store import Store
from tests.memory.retrieval.test_modes import DORN, HERON, TEA
from tests.memory.retrieval.test_reference import QUERIES, commit, document

ENCODER = make_encoder("hash", "64", 64, "cpu")
QUESTION = "Who trained the builder of the Heron gauge?"
WALKS = [name for name, mode in MODES.items() if mode.walks_graph]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory):
    chance = random.Random(11)
    with Store(tmp_path_factory.mktemp("memory") / "store", ENCODER.identity) as store:
        commit(store, {f"file:///{at}": document(chance) for at in range(60)})
        commit(store, {}, [f"file:///{at}" for at in range(0, 60, 7)])
        yield store


@pytest.fixture
def lab(tmp_path: Path):
    with Store(tmp_path / "store", ENCODER.identity) as store:
        commit(store, {"file:///heron": HERON, "file:///dorn": DORN, "file:///tea": TEA})
        yield store


@pytest.mark.parametrize("nodes", [True, False])
@pytest.mark.parametrize("mode", WALKS)
def test_shares_of_a_score_equal_the_ranks_of_each_seed_alone(memory: Store, mode: str, nodes: bool) -> None:
    snapshot = memory.snapshot()
    for query in QUERIES[:3]:
        context = QueryContext(snapshot, ENCODER, query, RetrievalSettings(passage_nodes=nodes))
        ranking = MODES[mode].rank(context)
        result = ranking.pagerank
        if result is None:
            continue
        whole = result.walk.reset.sum()
        rows = [hit.row for hit in retrieve(snapshot, ENCODER, query, mode, 4, context.settings).hits]
        alone = {}
        for node in np.flatnonzero(result.walk.reset).tolist():
            only = np.zeros(len(result.walk.reset))
            only[node] = result.walk.reset[node]
            ranks = pagerank_reordered(result.walk.graph.inside, only, result.walk.damping)
            # A restart at a node without edges stays there, which scales its PageRank: undone here.
            spread = 1.0 if result.walk.graph.degrees[node] > 0 else 1.0 - result.walk.damping
            alone[node] = ranks * spread * result.walk.reset[node] / whole
        for explanation in explain(context, ranking, rows):
            row = explanation.row if explanation.near_duplicate_of is None else explanation.near_duplicate_of
            node, factor = snapshot.n_phrases + row, explanation.hub_factor
            brought = {each: factor * float(_score(snapshot, result, ranks, row)) for each, ranks in alone.items()}
            if node in brought and factor < 1.0:
                isolated = sum(result.walk.reset[result.walk.graph.degrees == 0]) / whole
                own = (
                    (1.0 - result.walk.damping)
                    * result.walk.reset[node]
                    / whole
                    / (1.0 - result.walk.damping * isolated)
                )
                brought[node] += (1.0 - factor) * own
            total = sum(brought.values())
            assert explanation.own_share is not None and explanation.other_share is not None
            for share in explanation.phrase_shares:
                assert share.share == pytest.approx(brought[share.row] / total, abs=1e-6)
            assert explanation.own_share == pytest.approx(brought.get(node, 0.0) / total, abs=1e-6)
            assert sum(
                share.share for share in explanation.phrase_shares
            ) + explanation.own_share + explanation.other_share == pytest.approx(1.0)


def _score(snapshot, result, ranks, row):
    if not result.walk.through_phrases:
        return ranks[snapshot.n_phrases + row]
    _, triples, _ = snapshot.incidence.entries(np.array([row]))
    return sum(ranks[end] for triple in triples for end in {int(end) for end in snapshot.triple_ends[triple]})


@pytest.mark.parametrize("mode", WALKS)
def test_explained_path_is_the_strongest_path(memory: Store, mode: str) -> None:
    """Found again by relaxing every edge as often as there are nodes (Bellman and Ford)."""
    snapshot = memory.snapshot()
    context = QueryContext(snapshot, ENCODER, QUERIES[2], RetrievalSettings())
    ranking = MODES[mode].rank(context)
    result = ranking.pagerank
    assert result is not None
    first = snapshot.n_phrases
    weights = result.walk.graph.merged().toarray()
    degrees = np.where(result.walk.graph.degrees > 0, result.walk.graph.degrees, 1.0)
    best = np.where(np.arange(len(degrees)) < first, result.walk.reset, 0.0)
    for _ in range(12):
        best = np.maximum(best, (result.walk.damping * weights / degrees * best).max(axis=1))
    paths = 0
    for explanation in explain(
        context, ranking, [hit.row for hit in retrieve(snapshot, ENCODER, QUERIES[2], mode, 6, context.settings).hits]
    ):
        if explanation.path is None:
            # A passage that states no triple: its score is its own.
            assert best[first + explanation.row] == 0.0
            assert explanation.own_share == pytest.approx(1.0)
            continue
        paths += 1
        path = explanation.path.nodes
        nodes = [node.row + first if node.is_passage else node.row for node in path]
        leader = explanation.near_duplicate_of
        assert nodes[-1] == first + (explanation.row if leader is None else leader)
        assert not path[0].is_passage
        if result.walk.through_phrases:
            nodes.pop()
        strength = result.walk.reset[nodes[0]]
        for a, b in pairwise(nodes):
            strength *= result.walk.damping * weights[b, a] / degrees[a]
        if not result.walk.through_phrases:
            assert strength == pytest.approx(best[nodes[-1]])
        assert 0 < explanation.path.share <= 1
    assert paths >= 4


def test_the_path_from_the_question_goes_over_the_triple_to_the_passage(lab: Store) -> None:
    snapshot = lab.snapshot()
    found = retrieve(snapshot, ENCODER, QUESTION, "fused", 3, RetrievalSettings(), explained=True)
    [explanation] = [
        each for hit, each in zip(found.hits, found.explanations, strict=True) if hit.title == "Casimir Dorn"
    ]
    assert explanation.path is not None
    last = explanation.path.nodes[-1]
    assert last.is_passage
    assert last.row == explanation.row
    assert last.edge is not None
    assert last.edge.kind == "context"
    assert [stated.triple for stated in last.edge.triples] == [("casimir dorn", "trained by", "ludo pasternek")]
    assert last.edge.triples[0].passages == (explanation.row,)


def test_relation_on_a_path_names_its_triples_and_their_passages(lab: Store) -> None:
    from memory.explain.explain import phrase_edge

    snapshot = lab.snapshot()
    heron, dorn = snapshot.phrase_row("heron gauge"), snapshot.phrase_row("casimir dorn")
    assert heron is not None and dorn is not None
    for edge in (phrase_edge(snapshot, heron, dorn), phrase_edge(snapshot, dorn, heron)):
        assert (edge.kind, edge.weight) == ("relation", 1.0)
        [stated] = edge.triples
        assert stated.triple == ("heron gauge", "built by", "casimir dorn")
        assert [snapshot.passage(row).title for row in stated.passages] == ["Heron"]


def test_modes_without_a_walk_are_explained_by_similarity(lab: Store) -> None:
    snapshot = lab.snapshot()
    for mode in ("dense", "bm25"):
        found = retrieve(snapshot, ENCODER, QUESTION, mode, 3, RetrievalSettings(), explained=True)
        assert len(found.explanations) == len(found.hits)
        for hit, explanation in zip(found.hits, found.explanations, strict=True):
            assert explanation.row == hit.row
            assert explanation.own_share is None and explanation.path is None
            assert explanation.similarity == pytest.approx(hit.score, abs=1e-6) or mode == "bm25"


def test_an_explanation_changes_no_answer(memory: Store) -> None:
    for mode in MODES:
        plain = retrieve(memory.snapshot(), ENCODER, QUERIES[2], mode, 5, RetrievalSettings())
        explained = retrieve(memory.snapshot(), ENCODER, QUERIES[2], mode, 5, RetrievalSettings(), explained=True)
        assert plain.hits == explained.hits
        assert not plain.explanations
        assert len(explained.explanations) == len(explained.hits)
