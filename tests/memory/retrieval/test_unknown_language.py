"""Texts of which the encoder knows nothing are told apart by words, and take no part where cosines count."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memory.encoder.hashing import HashEncoder
from memory.retrieval.modes import MODES
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from memory.types import Encoder, Matrix, Retrieved
from store.store import Store
from tests.memory.retrieval.test_reference import commit


class EnglishEncoder(Encoder):
    """As the `hash` encoder, and knows nothing of a text with a Chinese character in it."""

    def __init__(self) -> None:
        self._inner = HashEncoder(64)
        self.identity = self._inner.identity

    def encode(self, texts: Sequence[str]) -> Matrix:
        vectors = self._inner.encode(texts)
        vectors[[_is_unknown(text) for text in texts]] = 0.0
        return vectors

    def encode_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.encode([text])[0]
        return vector


def _is_unknown(text: str) -> bool:
    return any("\u4e00" <= character <= "\u9fff" for character in text)


ENGLISH = [
    ("Heron", "The Heron gauge was built by Casimir Dorn.", [("heron gauge", "built by", "casimir dorn")]),
    ("Casimir Dorn", "Casimir Dorn was trained by Ludo.", [("casimir dorn", "trained by", "ludo pasternek")]),
    ("Tea", "Tea is made of leaves.", [("tea", "made of", "leaves")]),
    ("Mill", "The mill stands on the river.", [("mill", "stands on", "river")]),
]
CHINESE = [
    ("粘滞位", "目录上的粘滞位限制删除文件。", [("粘滞位", "限制", "删除文件")]),
    ("软件包", "软件包管理系统由开发者维护。", [("软件包管理系统", "维护", "开发者")]),
    ("发行版", "发行版的代号来自玩具总动员。", [("发行版代号", "来自", "玩具总动员")]),
    ("开发者", "开发者住在法国。", [("开发者", "住在", "法国")]),
]
ENCODER = EnglishEncoder()
ENGLISH_QUERIES = ["Who trained the builder of the Heron gauge?", "tea leaves", "What stands on the river?", "quux"]
SETTINGS = RetrievalSettings()


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory):
    opened = {}
    for name, passages in {"english": ENGLISH, "chinese": CHINESE, "both": [*CHINESE, *ENGLISH]}.items():
        opened[name] = Store(tmp_path_factory.mktemp(name) / "store", ENCODER.identity)
        commit(opened[name], {f"file:///{each[0]}": each for each in passages}, encoder=ENCODER)
    yield opened
    for store in opened.values():
        store.close()


def ask(memory: Store, query: str, mode: str, k: int = 10) -> Retrieved:
    return retrieve(memory.snapshot(), ENCODER, query, mode, k, SETTINGS)


@pytest.mark.parametrize("query", ENGLISH_QUERIES)
@pytest.mark.parametrize("mode", sorted(set(MODES) - {"bm25"}))
def test_passages_in_an_unknown_language_do_not_change_english_results(memories, mode: str, query: str) -> None:
    alone, beside = ask(memories["english"], query, mode), ask(memories["both"], query, mode)
    # What no walk reaches has no score in either.
    hits: list[object] = [(hit.id, pytest.approx(hit.score, rel=1e-5)) for hit in alone.hits if hit.score]
    assert [(hit.id, hit.score) for hit in beside.hits if hit.score] == hits
    triples: list[object] = [(t.subject, t.object, pytest.approx(t.score)) for t in alone.triples]
    assert triples == [(t.subject, t.object, t.score) for t in beside.triples]
    seeds: list[object] = [(s.phrase, pytest.approx(s.weight)) for s in alone.seeds]
    assert seeds == [(s.phrase, s.weight) for s in beside.seeds]


@pytest.mark.parametrize("memory", ["chinese", "both"])
@pytest.mark.parametrize("mode", MODES)
def test_query_unknown_to_the_encoder_is_matched_by_words(memories, memory: str, mode: str) -> None:
    for query, title in {
        "目录上的粘滞位有什么作用？": "粘滞位",
        "发行版的代号来自哪部电影？": "发行版",
        "维护软件包管理系统": "软件包",
    }.items():
        answer = ask(memories[memory], query, mode, 1)
        assert [hit.title for hit in answer.hits] == [title], (query, answer)


@pytest.mark.parametrize("mode", ["fused", "hipporag2"])
def test_triples_matched_by_words_lead_the_walk_to_another_passage(memories, mode: str) -> None:
    """Who maintains it is said in one passage, where they live in another, which shares no word with the question."""
    answer = ask(memories["both"], "谁维护软件包管理系统", mode, 2)
    assert [(t.subject, t.object) for t in answer.triples][:1] == [("软件包管理系统", "开发者")]
    assert {hit.title for hit in answer.hits} == {"软件包", "开发者"}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_known_query_to_a_memory_in_unknown_language_is_matched_by_words(memories, tmp_path: Path, mode: str) -> None:
    passages = [("Debra", "名字 Debra Ian 来自。", [("名字", "来自", "debra")]), ("二", "没有。", [])]
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, {f"file:///{at}": each for at, each in enumerate(passages)}, encoder=ENCODER)
        assert [hit.title for hit in ask(memory, "Who is Debra?", mode, 1).hits] == ["Debra"]
        for query in ("quux", "?!", "玩具"):
            assert ask(memory, query, mode).mode == mode


def test_the_note_says_what_the_encoder_does_not_know(tmp_path: Path) -> None:
    with Store(tmp_path / "store", ENCODER.identity) as opened:
        commit(opened, {f"file:///{at}": each for at, each in enumerate(CHINESE)}, encoder=ENCODER)
        notes = [retrieve(opened.snapshot(), ENCODER, query, "dense", 5, SETTINGS).note for query in ("tea", "软件包")]
    assert notes == [
        "the encoder knows nothing of any passage: compared by words",
        "the encoder knows no word of the query: compared by words",
    ]
