"""What an explanation says is so: shares are found again by leaving seeds out, ways by walking them."""

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from memory.asking import Asked, RetrievalSettings
from memory.encoder import make_encoder
from memory.explain import explain
from memory.modes import MODES
from memory.ppr import pagerank
from memory.retrieval import retrieve
from store.store import Store
from tests.memory.test_retrieval import DORN, HERON, TEA
from tests.memory.test_retrieval_reference import QUERIES, commit, document

ENCODER = make_encoder("hash", "64", 64, "cpu")
QUESTION = "Who trained the builder of the Heron gauge?"
WALKS = ["fused", "hipporag2", "query-to-node", "ner-to-node", "hipporag"]


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
def test_the_shares_of_a_score_are_what_each_seed_alone_brings(memory: Store, mode: str, nodes: bool) -> None:
    snapshot = memory.snapshot()
    for query in QUERIES[:3]:
        asked = Asked(snapshot, ENCODER, query, RetrievalSettings(passage_nodes=nodes))
        ranking = MODES[mode](asked)
        walked = ranking.walked
        if walked is None:
            continue
        whole = walked.reset.sum()
        rows = [hit.row for hit in retrieve(snapshot, ENCODER, query, mode, 4, asked.settings).hits]
        alone = {}
        for node in np.flatnonzero(walked.reset):
            only = np.zeros(len(walked.reset))
            only[node] = walked.reset[node]
            ranks = pagerank(walked.walk, walked.walk.degrees, only, walked.damping)
            # A restart at a node without edges stays there, which scales its PageRank: undone here.
            spread = 1.0 if walked.walk.degrees[node] > 0 else 1.0 - walked.damping
            alone[node] = ranks * spread * walked.reset[node] / whole
        for reason in explain(asked, ranking, rows):
            brought = {node: float(_score(snapshot, walked, ranks, reason.row)) for node, ranks in alone.items()}
            total = sum(brought.values())
            assert reason.own is not None and reason.others is not None
            for share in reason.phrases:
                assert share.share == pytest.approx(brought[share.row] / total, abs=1e-6)
            node = snapshot.n_phrases + reason.row
            assert reason.own == pytest.approx(brought.get(node, 0.0) / total, abs=1e-6)
            assert sum(share.share for share in reason.phrases) + reason.own + reason.others == pytest.approx(1.0)


def _score(snapshot, walked, ranks, row):
    if not walked.through_phrases:
        return ranks[snapshot.n_phrases + row]
    _, triples, _ = snapshot.incidence.entries(np.array([row]))
    return sum(ranks[end] for triple in triples for end in {int(end) for end in snapshot.triple_ends[triple]})


@pytest.mark.parametrize("mode", WALKS)
def test_the_way_is_the_strongest_of_all(memory: Store, mode: str) -> None:
    """Found again by relaxing every edge as often as there are nodes (Bellman and Ford)."""
    snapshot = memory.snapshot()
    asked = Asked(snapshot, ENCODER, QUERIES[2], RetrievalSettings())
    ranking = MODES[mode](asked)
    walked = ranking.walked
    assert walked is not None
    first = snapshot.n_phrases
    weights = walked.walk.merged().toarray()
    degrees = np.where(walked.walk.degrees > 0, walked.walk.degrees, 1.0)
    best = np.where(np.arange(len(degrees)) < first, walked.reset, 0.0)
    for _ in range(12):
        best = np.maximum(best, (walked.damping * weights / degrees * best).max(axis=1))
    for reason in explain(
        asked, ranking, [hit.row for hit in retrieve(snapshot, ENCODER, QUERIES[2], mode, 6, asked.settings).hits]
    ):
        assert reason.way is not None
        steps = reason.way.steps
        nodes = [step.row + first if step.is_passage else step.row for step in steps]
        assert nodes[-1] == first + reason.row
        assert not steps[0].is_passage
        if walked.through_phrases:
            nodes.pop()
        strength = walked.reset[nodes[0]]
        for a, b in pairwise(nodes):
            strength *= walked.damping * weights[b, a] / degrees[a]
        if not walked.through_phrases:
            assert strength == pytest.approx(best[nodes[-1]])
        assert 0 < reason.way.share <= 1


def test_the_way_from_the_question_goes_over_the_triple_to_the_passage(lab: Store) -> None:
    snapshot = lab.snapshot()
    found = retrieve(snapshot, ENCODER, QUESTION, "fused", 3, RetrievalSettings(), explained=True)
    [reason] = [each for hit, each in zip(found.hits, found.reasons, strict=True) if hit.title == "Casimir Dorn"]
    assert reason.way is not None
    last = reason.way.steps[-1]
    assert last.is_passage
    assert last.row == reason.row
    assert last.edge is not None
    assert last.edge.kind == "context"
    assert [vouched.triple for vouched in last.edge.triples] == [("casimir dorn", "trained by", "ludo pasternek")]
    assert last.edge.triples[0].passages == (reason.row,)


def test_a_relation_on_the_way_names_its_triples_and_who_states_them(lab: Store) -> None:
    from memory.edges import between

    snapshot = lab.snapshot()
    heron, dorn = snapshot.phrase_row("heron gauge"), snapshot.phrase_row("casimir dorn")
    assert heron is not None and dorn is not None
    for edge in (between(snapshot, heron, dorn), between(snapshot, dorn, heron)):
        assert (edge.kind, edge.weight) == ("relation", 1.0)
        [vouched] = edge.triples
        assert vouched.triple == ("heron gauge", "built by", "casimir dorn")
        assert [snapshot.passage(row).title for row in vouched.passages] == ["Heron"]


def test_where_nothing_walked_the_similarity_is_the_reason(lab: Store) -> None:
    snapshot = lab.snapshot()
    for mode in ("dense", "bm25"):
        found = retrieve(snapshot, ENCODER, QUESTION, mode, 3, RetrievalSettings(), explained=True)
        assert len(found.reasons) == len(found.hits)
        for hit, reason in zip(found.hits, found.reasons, strict=True):
            assert reason.row == hit.row
            assert reason.own is None and reason.way is None
            assert reason.similarity == pytest.approx(hit.score, abs=1e-6) or mode == "bm25"


def test_an_explanation_changes_no_answer(memory: Store) -> None:
    for mode in MODES:
        plain = retrieve(memory.snapshot(), ENCODER, QUERIES[2], mode, 5, RetrievalSettings())
        explained = retrieve(memory.snapshot(), ENCODER, QUERIES[2], mode, 5, RetrievalSettings(), explained=True)
        assert plain.hits == explained.hits
        assert not plain.reasons
        assert len(explained.reasons) == len(explained.hits)
