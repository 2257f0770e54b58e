"""Every retrieval mode answers every query, the same each time, and says so when it had to fall back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memory.encoder import make_encoder
from memory.encoder.hashing import HashEncoder
from memory.retrieval.linking.query_entities import MAX_NAMES, query_entities
from memory.retrieval.modes import MODES
from memory.retrieval.query_context import QueryContext
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from memory.types import Retrieved
from store.store import Store
from tests.memory.retrieval.test_reference import TitledText, commit

ENCODER = make_encoder("hash", "64", 64, "cpu")
HERON = (
    "Heron",
    "The Heron gauge was built by Casimir Dorn in Tollmin.",
    [("heron gauge", "built by", "casimir dorn")],
)
DORN = ("Casimir Dorn", "Casimir Dorn was trained by Ludo.", [("casimir dorn", "trained by", "ludo pasternek")])
TEA = ("Tea", "Tea is made of leaves and water.", [("tea", "made of", "leaves"), ("tea", "is", "tea")])
TOKYO = ("東京", "東京は日本の首都です。", [("東京", "首都", "日本")])
BARE: TitledText = ("", "nothing is said about anything here", [])
MEMORIES: dict[str, list[TitledText]] = {
    "empty": [],
    "one passage": [HERON],
    "one passage without triples": [BARE],
    "no triples": [BARE, ("Other", "words", [])],
    "several": [HERON, DORN, TEA, TOKYO, BARE],
}
QUERY_TEXTS = {
    "a sentence": "Who trained the builder of the Heron gauge?",
    "one word": "tea",
    "one letter": "a",
    "no word": "?!",
    "another script": "日本の首都はどこですか",
    "right to left": "من بنى المقياس؟",
    "no known entity": "Which Zanzibar Quux frobnicated?",
    "10,000 words": " ".join(f"word{at} Heron" for at in range(5_000)),
    "one long word": "x" * 30_000,
    "names only": " and ".join(f"Name{at} Surname{at}" for at in range(300)),
    "control characters": "a\x00b\u202e\ud7ff \U0001f980",
}


@pytest.fixture(params=MEMORIES, scope="module")
def memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    passages = MEMORIES[request.param]
    with Store(tmp_path_factory.mktemp("memory") / "store", ENCODER.identity) as opened:
        commit(opened, {f"file:///{at}": each for at, each in enumerate(passages)})
        yield opened, len(passages)


def ask(memory: Store, query: str, mode: str, k: int = 100, **settings) -> Retrieved:
    return retrieve(memory.snapshot(), ENCODER, query, mode, k, RetrievalSettings(**settings))


class LessSure(HashEncoder):
    temperature_factor = 2.0


class RecordsCalls(HashEncoder):
    def __init__(self) -> None:
        super().__init__(64)
        self.calls: list[str] = []

    def begin_query(self, text: str) -> None:
        self.calls.append(f"begin {text}")

    def encode_query(self, text: str) -> NDArray[np.float32]:
        self.calls.append(f"wait for {text}")
        return super().encode_query(text)


def test_query_encoding_is_started_before_words_are_compared(several: Store) -> None:
    encoder = RecordsCalls()
    context = QueryContext(several.snapshot(), encoder, "tea leaves", RetrievalSettings())
    assert context.word_candidates
    assert not encoder.calls
    for mode, each in MODES.items():
        encoder.calls.clear()
        assert retrieve(several.snapshot(), encoder, "tea leaves", mode, 5, RetrievalSettings()).hits
        assert encoder.calls[:1] == (["begin tea leaves"] if each.needs_encoder else [])


def test_encoder_temperature_scale_equals_the_setting(tmp_path: Path) -> None:
    with Store(tmp_path, ENCODER.identity) as opened:
        commit(opened, {f"file:///{at}": each for at, each in enumerate(MEMORIES["several"])})
        query, snapshot = "Who trained the builder of the gauge?", opened.snapshot()
        doubled = RetrievalSettings(temperature=2 * RetrievalSettings().temperature)
        by_setting = retrieve(snapshot, ENCODER, query, "fused", 5, doubled).hits
        by_encoder = retrieve(snapshot, LessSure(64), query, "fused", 5, RetrievalSettings()).hits
        assert by_encoder == by_setting != retrieve(snapshot, ENCODER, query, "fused", 5, RetrievalSettings()).hits


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERY_TEXTS.values(), ids=QUERY_TEXTS)
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_answers_every_query(memory, mode: str, query: str) -> None:
    store, passages = memory
    found = ask(store, query, mode)
    if mode != "bm25":
        assert len(found.hits) == passages
    assert all(np.isfinite(hit.score) for hit in found.hits)
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
    assert found == ask(store, query, mode) or found.stages_ms
    assert [hit.id for hit in found.hits] == [hit.id for hit in ask(store, query, mode).hits]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("nodes", [True, False])
def test_extreme_settings_answer_too(memory, mode: str, nodes: bool) -> None:
    store, passages = memory
    extremes: dict[str, Any] = {
        "passage_weight": 0.0,
        "passage_share": 0.0,
        "temperature": 0.01,
        "damping": 0.99,
        "top_triples": 10_000,
    }
    found = ask(store, "Who trained the builder of the Heron gauge?", mode, passage_nodes=nodes, **extremes)
    assert len(found.hits) == passages or mode == "bm25"
    assert all(np.isfinite(hit.score) for hit in found.hits)


@pytest.fixture
def several(tmp_path: Path):
    with Store(tmp_path / "store", ENCODER.identity) as opened:
        commit(opened, {f"file:///{at}": each for at, each in enumerate(MEMORIES["several"])})
        yield opened


@pytest.mark.parametrize("mode", ["hipporag2", "fused", "ner-to-node", "hipporag"])
def test_walk_reaches_a_passage_over_a_shared_phrase(several: Store, mode: str) -> None:
    found = ask(several, "Who trained the builder of the Heron gauge?", mode, k=2)
    assert {hit.title for hit in found.hits} == {"Heron", "Casimir Dorn"}


@pytest.mark.slow
def test_k_limits_the_number_of_hits(several: Store) -> None:
    for mode in MODES:
        whole = [hit.id for hit in ask(several, "tea", mode).hits]
        assert [hit.id for hit in ask(several, "tea", mode, k=2).hits] == whole[:2]


def test_query_without_names_uses_dense_retrieval_with_a_note(several: Store) -> None:
    for mode in ("ner-to-node", "hipporag"):
        found = ask(several, "zzz qqq", mode)
        assert found.note == "no name in the query: dense retrieval"
        assert [hit.id for hit in found.hits] == [hit.id for hit in ask(several, "zzz qqq", "dense").hits]


@pytest.mark.parametrize("mode", MODES)
def test_query_to_an_empty_memory_returns_a_note_and_no_hits(tmp_path: Path, mode: str) -> None:
    with Store(tmp_path / "store", ENCODER.identity) as opened:
        found = ask(opened, "Who built the Heron gauge?", mode)
    assert (found.note, found.hits) == ("The memory, or the scope of the question, has no passage", ())


class KeepsNothing:
    def keep(self, query, triples):
        return []


class KeepsLast:
    def keep(self, query, triples):
        return [len(triples) - 1]


def test_dense_retrieval_answers_if_recognition_keeps_no_triple(several: Store) -> None:
    query, settings = "Who trained the builder of the Heron gauge?", RetrievalSettings()
    found = retrieve(several.snapshot(), ENCODER, query, "hipporag2", 5, settings, KeepsNothing())
    assert found.note == "recognition memory kept no triple: dense retrieval"
    assert found.triples
    assert not any(triple.kept for triple in found.triples)
    assert [hit.id for hit in found.hits] == [hit.id for hit in ask(several, query, "dense", 5).hits]
    fused = retrieve(
        several.snapshot(), ENCODER, query.lower().replace("heron", "hern"), "fused", 5, settings, KeepsNothing()
    )
    assert fused.note == "no triple was kept and no name is known: the walk starts from passages alone"
    assert not fused.seeds


@pytest.mark.parametrize("mode", ["hipporag2", "fused"])
def test_only_what_recognition_keeps_becomes_a_seed(several: Store, mode: str) -> None:
    query = "Who trained the builder of the Heron gauge?"
    found = retrieve(several.snapshot(), ENCODER, query, mode, 5, RetrievalSettings(), KeepsLast())
    assert [triple.kept for triple in found.triples] == [False] * (len(found.triples) - 1) + [True]
    last = found.triples[-1]
    named = {"heron gauge"} if mode == "fused" else set()
    assert {seed.phrase for seed in found.seeds} - named == {last.subject, last.object} - named


def test_error_for_an_unknown_mode_names_it(several: Store) -> None:
    with pytest.raises(ValueError, match=r'"magic".*hipporag2'):
        ask(several, "tea", "magic")


def test_equal_scores_are_in_order_of_passage_id(tmp_path: Path) -> None:
    twins: list[TitledText] = [("", f"same words {' ' * at}", []) for at in range(9)]
    with Store(tmp_path / "store", ENCODER.identity) as store:
        for at, each in enumerate(twins):
            commit(store, {f"file:///{at}": each})
        for mode in MODES:
            ids = [hit.id for hit in ask(store, "same words", mode).hits]
            assert ids == sorted(ids)
            assert len(ids) == len(twins)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Who was the first president of the association which published Journal of Psychotherapy Integration?",
         ["Journal of Psychotherapy Integration"]),
        ("When did the Admiral Twin open in the city where the Philbrook Museum is located?",
         ["Admiral Twin", "Philbrook Museum"]),
        ("Where was the author of \"the long way home\" born?", ["the long way home"]),
        ("In which year did Ludwig van Beethoven and Johann Sebastian Bach meet",
         ["Ludwig van Beethoven", "Johann Sebastian Bach"]),
        ("What Happened in May 1968?", ["Happened", "May 1968"]),
        ("is the heron gauge older than tea", ["heron gauge", "tea"]),
        ("日本の首都はどこですか", ["日本"]),
        ("Where is it?", []),
        ("", []),
    ],
)  # fmt: skip
def test_query_names_are_quoted_capitalised_or_known_phrases(several: Store, query: str, names: list[str]) -> None:
    assert query_entities(query, several.snapshot()) == names


def test_a_query_has_a_limited_number_of_names(several: Store) -> None:
    assert len(query_entities(QUERY_TEXTS["names only"], several.snapshot())) == MAX_NAMES
