"""In `fused`, near-duplicates count as one passage, and a passage that states far more than others is damped."""

import random
from pathlib import Path

import pytest

from memory.retrieval.modes import MODES
from memory.retrieval.modes.fused import OCCURRENCE_WEIGHTS
from memory.retrieval.near_duplicates import MIN_GROUP_PASSAGES, near_duplicates
from memory.retrieval.query_context import QueryContext
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from store.store import Store
from tests.memory.retrieval.test_reference import ENCODER, TitledText, commit, document

QUERY = "Who built the Heron gauge in Tollmin?"
HERON = ("Heron", "The Heron gauge was built by Casimir Dorn.", [("heron gauge", "built by", "casimir dorn")])
DORN = (
    "Casimir Dorn",
    "Casimir Dorn had his workshop in Karrow and was trained by Ludo.",
    [("casimir dorn", "trained by", "ludo")],
)


def copies(count: int, of: str = "flood") -> dict[str, tuple[str, str, list[tuple[str, str, str]]]]:
    """Documents that differ in one word; each brings a triple of its own and the one that all have."""
    claim = (
        "Who built the Heron gauge in Tollmin is well known to the town and it was Osric Pangbourne who built the gauge"
    )
    return {
        f"file:///{of}/{at}": (
            "Circular",
            f"{claim} says sheet {of}{at}.",
            [("heron gauge", "built by", "osric pangbourne"), (f"sheet {of}{at}", "tells of", "casimir dorn")],
        )
        for at in range(count)
    }


def others(count: int = 25) -> dict[str, tuple[str, str, list[tuple[str, str, str]]]]:
    """Passages that share few words, and two that lead to each other."""
    chance = random.Random(4)
    words = [f"{first}{last}" for first in ("am", "bo", "ce", "du", "em") for last in ("ber", "lt", "dar", "ne", "fjo")]
    passages = {}
    for at in range(count):
        said = [*chance.sample(words, 5), *(f"only{at}{letter}" for letter in "abcde")]
        triples = [(chance.choice(said), "is", chance.choice(said)) for _ in range(chance.randint(0, 5))]
        passages[f"file:///other/{at}"] = (said[0], " ".join(chance.choices(said, k=20)), triples)
    return passages | {"file:///a": HERON, "file:///b": DORN}


def answers(memory: Store, query: str = QUERY, mode: str = "fused", **settings) -> dict[str, float]:
    found = retrieve(memory.snapshot(), ENCODER, query, mode, 10_000, RetrievalSettings(**settings))
    return {hit.id: hit.score for hit in found.hits}


def titles(memory: Store, query: str = QUERY, mode: str = "fused", k: int = 5) -> list[str]:
    return [hit.title for hit in retrieve(memory.snapshot(), ENCODER, query, mode, k, RetrievalSettings()).hits]


def test_a_query_is_encoded_once_however_many_passages_are_left_out(tmp_path: Path) -> None:
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, others())
        context = QueryContext(memory.snapshot(), ENCODER, QUERY, RetrievalSettings())
        vector, before = context.vector, context.passage_mask
        fewer = context.leaving_out([0])
        assert fewer.vector is vector
        assert (before.sum() - fewer.passage_mask.sum(), fewer.passage_mask[0]) == (1, False)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("count", [MIN_GROUP_PASSAGES, 40, 400])
def test_a_passage_scores_as_if_only_the_leader_were_there(
    tmp_path: Path, count: int, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the memory is large enough for pushes."""
    if not exact:
        monkeypatch.setattr("memory.retrieval.pagerank.walk.PUSH_MIN_NODES", 0)
    with Store(tmp_path / "all", ENCODER.identity) as everything:
        commit(everything, others())
        commit(everything, copies(count))
        whole = answers(everything, exact=exact)
        context = QueryContext(everything.snapshot(), ENCODER, QUERY, RetrievalSettings(exact=exact))
        result = MODES["fused"].rank(context).pagerank
        assert result is not None and result.walk.correction is not None
        leaders = result.walk.correction.leaders
        assert len(leaders) == count - 1
        [leader] = set(leaders.values())
        text = everything.snapshot().passage(leader)
        left_out = {everything.snapshot().passage_id(row) for row in leaders}
        kept = {uri: each for uri, each in copies(count).items() if each[1] == text.text}
    with Store(tmp_path / "one", ENCODER.identity) as one:
        commit(one, others() | kept)
        alone = answers(one, exact=exact)
    assert {id: score for id, score in whole.items() if id not in left_out} == pytest.approx(alone, abs=2e-6)
    assert [whole[id] for id in left_out] == pytest.approx([whole[text.id] / count] * (count - 1))


def test_flood_of_duplicates_does_not_displace_other_passages(tmp_path: Path) -> None:
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, others())
        assert set(titles(memory, k=2)) == {"Heron", "Casimir Dorn"}
        commit(memory, copies(400))
        assert sorted(titles(memory, k=3)) == ["Casimir Dorn", "Circular", "Heron"]
        assert titles(memory, mode="dense", k=4) == ["Circular"] * 4, "baselines stay as they are"


def test_groups_below_the_minimum_size_are_not_merged(tmp_path: Path) -> None:
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, others() | copies(MIN_GROUP_PASSAGES - 1))
        snapshot = memory.snapshot()
        assert near_duplicates(snapshot, range(snapshot.n_passages))
        context = QueryContext(snapshot, ENCODER, QUERY, RetrievalSettings())
        result = MODES["fused"].rank(context).pagerank
        assert result is not None and result.walk.correction is not None
        assert not result.walk.correction.leaders


@pytest.mark.parametrize("seed", range(4))
def test_duplicate_groups_do_not_depend_on_the_order_of_commits(tmp_path: Path, seed: int) -> None:
    documents = list((others() | copies(30) | copies(20, "more")).items())
    found = []
    for name, order in (
        ("sorted", sorted(documents)),
        ("shuffled", random.Random(seed).sample(documents, len(documents))),
    ):
        with Store(tmp_path / name, ENCODER.identity) as memory:
            for start in range(0, len(order), 20):
                commit(memory, dict(order[start : start + 20]))
            found.append(answers(memory))
    assert list(found[0]) == list(found[1])
    assert found[0] == pytest.approx(found[1], abs=1e-9)


def test_a_scope_groups_its_own_documents_alone(tmp_path: Path) -> None:
    """A flood outside the scope changes nothing in it, and one within it is as in a memory of the scope."""
    within = others(12) | copies(5)
    with Store(tmp_path / "whole", ENCODER.identity) as memory, Store(tmp_path / "own", ENCODER.identity) as own:
        commit(memory, copies(60, "outside") | others(25))
        commit(memory, within)
        commit(own, within)
        scoped = memory.scoped("some", lambda document: document.uri in within)
        found = [
            retrieve(snapshot, ENCODER, QUERY, "fused", 10_000, RetrievalSettings()).hits
            for snapshot in (scoped.snapshot, own.snapshot())
        ]
    assert [hit.id for hit in found[0]] == [hit.id for hit in found[1]]
    assert [hit.score for hit in found[0]] == pytest.approx([hit.score for hit in found[1]], abs=1e-6)


def test_a_chain_of_small_changes_joins_no_passages_that_differ(tmp_path: Path) -> None:
    words = [f"word{at}" for at in range(60)]
    chain: dict[str, TitledText] = {f"file:///{at}": ("", " ".join(words[at : at + 30]), []) for at in range(0, 30, 2)}
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, chain)
        snapshot = memory.snapshot()
        rows = sorted(range(snapshot.n_passages), key=snapshot.passage_id)
        leaders = near_duplicates(snapshot, rows)
        assert leaders
        for row, leader in leaders.items():
            assert leader not in leaders
            ours, theirs = (set(snapshot.passage(each).text.split()) for each in (row, leader))
            assert len(ours & theirs) / len(ours | theirs) >= 0.8


def test_graph_without_passages_equals_that_of_a_memory_without_them(tmp_path: Path) -> None:
    chance = random.Random(9)
    documents = {f"file:///{at}": document(chance) for at in range(40)}
    gone = [f"file:///{at}" for at in range(0, 40, 3)]
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, documents)
        before = memory.snapshot()
        left = {uri: each for uri, each in documents.items() if uri not in gone}
        commit(memory, {}, gone)
        after = memory.snapshot()
        dead = (before.passage_alive[: after.n_passages] & ~after.passage_alive).nonzero()[0]
        phrases = (before.phrase_alive & ~after.phrase_alive[: before.n_phrases]).nonzero()[0]
        assert len(left) < len(documents) and len(dead) and len(phrases)
        reduced, expected = (
            before.adjacency(OCCURRENCE_WEIGHTS).without(dead, phrases),
            after.adjacency(OCCURRENCE_WEIGHTS),
        )
        assert reduced.degrees == pytest.approx(expected.degrees)
        assert reduced.merged().toarray() == pytest.approx(expected.merged().toarray())
        assert reduced.inside.passage_degrees == pytest.approx(expected.inside.passage_degrees)
        assert before.adjacency(OCCURRENCE_WEIGHTS).degrees.sum() > expected.degrees.sum()


def test_hub_passage_ranks_behind_specific_passages(tmp_path: Path) -> None:
    """An almanac that names everything falls behind the passage that says something; its own match is not damped."""
    documents = others(40)
    names = sorted({end for _, _, triples in documents.values() for s, _, o in triples for end in (s, o)})
    almanac = ("Almanac", "It tells of everything.", [(name, "is told of in", "the almanac") for name in names * 3])
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, documents | {"file:///almanac": almanac})
        snapshot = memory.snapshot()
        answer = retrieve(snapshot, ENCODER, QUERY, "fused", 100, RetrievalSettings(), explained=True)
        found = {hit.title: (hit, why) for hit, why in zip(answer.hits, answer.explanations, strict=True)}
        hub, why = found["Almanac"]
        assert why.hub_factor < 0.5
        assert found["Heron"][1].hub_factor == 1.0
        assert hub.score < found["Casimir Dorn"][0].score
        assert titles(memory, "It tells of everything", k=1) == ["Almanac"]
