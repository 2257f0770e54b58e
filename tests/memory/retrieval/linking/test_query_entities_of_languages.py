"""Names and known phrases in questions that are not in English."""

from collections.abc import Iterator

import pytest

from memory.retrieval.linking.query_entities import known_names, query_entities
from store.snapshot import Snapshot
from store.store import Store
from tests.memory.retrieval.test_reference import ENCODER, commit

PHRASES = ("灯塔", "林小梅", "leuchtturm", "verzeichnis", "灯台", "phare", "wer", "မီးပြတိုက်", "ប្រទីប", "등대", "등대 지기")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    """A memory that knows these phrases only."""
    with Store(tmp_path_factory.mktemp("memory"), ENCODER.identity) as memory:
        commit(memory, {"file:///a": ("", "a", [(phrase, "is", phrase) for phrase in PHRASES])})
        yield memory.snapshot()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Wer baute den Leuchtturm auf Aldersund?", ["Leuchtturm", "Aldersund"]),
        ("Quel gardien a vécu dans le phare ?", ["phare"]),
        ("Nordlicht 的灯塔是谁设计的？", ["Nordlicht", "灯塔"]),
        ("林小梅设计了什么？", ["林小梅"]),
        ("灯台は誰が建てたのですか？", ["灯台"]),
        ("ဘယ်သူကမီးပြတိုက်ကိုဆောက်ခဲ့သလဲ", ["မီးပြတိုက်"]),
        ("នរណាសាងសង់ប្រទីបនេះ?", ["ប្រទីប"]),
        ("등대를 누가 지었나요?", ["등대"]),
        ("등대 지기 는 누구인가요?", ["등대 지기"]),
        ("¿Quién construyó el faro de la isla de Odile Brandt?", ["Odile Brandt"]),
        ("Who built the leuchtturm of Aldersund?", ["Aldersund"]),
    ],
)
def test_query_names_exclude_question_words(query, names, snapshot):
    assert query_entities(query, snapshot) == names
    assert set(names) <= set(known_names(query, snapshot))
