"""The packaged MiniLM: the library's vectors, the same in any batch, from any string, without a network."""

import os
import random
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memory.encoder import identity_before_loading, make_encoder
from memory.encoder.bert_encoder import BertEncoder
from store.types import EncoderIdentity

WORDS = [
    "harbour",
    "ferry",
    "1911",
    "Ørsted",
    "naïve",
    "glacier",
    "the",
    "of",
    "mill-owner",
    "telescope",
    "U.S.",
    "senate",
]
WORDS += [
    "chemistry",
    "Łódź",
    "queen's",
    "archive",
    "violin",
    "3.14",
    "observatory",
    "Mira",
    "founded",
    "near",
    "sister",
]


def prose(words: int, seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


TEXTS = [
    *(prose(length, seed) for seed, length in enumerate([1, 2, 2, 3, 3, 5, 8, 13, 21, 34, 55, 120])),
    "('mira ørsted', 'founded', 'harrow observatory')",
    "Harrow Observatory\nIt stands on Mount Harrow. It was founded by Mira Ørsted in 1911.",
    "emoji 👩‍🔬 and tabs\t\tand\nlines",
    "e\u0301 combining and \u200b invisible",
    "",
    "   ",
    "[CLS] [MASK] not special",
]
UNKNOWN = [
    "北京 天气 很好",
    "مرحبا بالعالم",
    "Привет, мир",
    "目录上的粘滞位有什么作用？",
    "debian 软件包",
    "한국어",
    "שלום",
    "สวัสดี",
    "νέα",
]
"""The model's tokeniser has the first two texts' characters one by one, of others none."""
PARTLY_KNOWN = ["debian 版", "größe", "Łódź", "paquets logiciels", "the λ calculus", "→ 1, 2!", "naïve café", "x"]
HOSTILE = [
    "",
    "\x00",
    "\x00\x01\x1b[31m",
    "\ud800",
    "\udfff\ud800 swapped surrogates",
    "a" * 1_000_000,
    "word " * 500,
    " " * 1_000_000 + "end",
    "\ud83d" * 1_000_000,
    "\u202e\ufeff\ufffe",
    "\U0010ffff" * 500,
    "é" * 5000,
    "\r\n" * 10_000,
]


GOLDEN_TEXT = "Harrow Observatory\nIt stands on Mount Harrow. It was founded by Mira Ørsted in 1911."
GOLDEN = [
    0.0274321,
    -0.0296918,
    -0.0127294,
    0.0536433,
    0.0164673,
    -0.0150373,
    -0.1287197,
    0.0138255,
    0.0105475,
    -0.0165866,
    0.0657683,
    -0.0152973,
]
"""The first components of the text's vector."""


@pytest.fixture
def encoder(minilm: BertEncoder) -> BertEncoder:
    return minilm


def cosines(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray((a * b).sum(axis=1))


def test_minilm_vectors_equal_those_of_sentence_transformers(encoder: BertEncoder) -> None:
    """The expected numbers were computed by sentence-transformers 6.2 with torch 2.13 in float32."""
    for vector in (encoder.encode([GOLDEN_TEXT])[0], encoder.encode_query(GOLDEN_TEXT)):
        np.testing.assert_allclose(vector[: len(GOLDEN)], GOLDEN, atol=2e-6)


def test_a_query_that_was_begun_has_the_same_vector(encoder: BertEncoder) -> None:
    encoder.begin_query(GOLDEN_TEXT + " begun")
    begun = encoder.encode_query(GOLDEN_TEXT + " begun")
    encoder._begun.cache_clear()
    assert np.array_equal(begun, encoder.encode_query(GOLDEN_TEXT + " begun"))


@pytest.mark.slow
def test_text_without_known_tokens_has_the_zero_vector(encoder: BertEncoder) -> None:
    among = [*UNKNOWN, *TEXTS, *PARTLY_KNOWN]
    for vectors in (
        encoder.encode(among),
        encoder.encode_low_precision(among),
        np.stack(list(map(encoder.encode_query, among))),
    ):
        lengths = np.linalg.norm(vectors, axis=1)
        assert not lengths[: len(UNKNOWN)].any()
        np.testing.assert_allclose(lengths[len(UNKNOWN) :], 1.0, atol=1e-6)


@pytest.mark.slow
def test_low_precision_vectors_are_close_and_independent_of_their_batch(encoder: BertEncoder) -> None:
    texts = [prose(1 + n % 40, n) for n in range(12)] + TEXTS
    rough = encoder.encode_low_precision(texts)
    assert rough.dtype == np.float32 and rough.shape == (len(texts), 384)
    np.testing.assert_allclose(np.linalg.norm(rough, axis=1), 1.0, atol=1e-6)
    assert cosines(rough, encoder.encode(texts)).min() >= 0.9999
    np.testing.assert_allclose(encoder.encode_low_precision(texts[::-1])[::-1], rough, atol=1e-6)
    for row in range(0, len(texts), 19):
        np.testing.assert_allclose(encoder.encode_low_precision([texts[row]])[0], rough[row], atol=1e-6)


@pytest.mark.slow
def test_rows_are_float32_of_length_one_in_the_order_given(encoder: BertEncoder) -> None:
    vectors = encoder.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.flags.c_contiguous
    assert vectors.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    backwards = encoder.encode(TEXTS[::-1])
    np.testing.assert_allclose(backwards[::-1], vectors, atol=1e-6)


def test_minilm_encoding_of_no_texts_is_an_empty_matrix(encoder: BertEncoder) -> None:
    assert encoder.encode([]).shape == (0, 384)


@pytest.mark.slow
def test_a_vector_does_not_depend_on_the_texts_beside_it(encoder: BertEncoder) -> None:
    alone = np.stack([encoder.encode([text])[0] for text in TEXTS])
    shuffled = random.Random(1)
    for others in (3, 30):
        crowd = TEXTS + [prose(shuffled.randint(1, 20), seed) for seed in range(others)]
        order = shuffled.sample(range(len(crowd)), len(crowd))
        found = np.empty((len(crowd), 384), dtype=np.float32)
        found[order] = encoder.encode([crowd[row] for row in order])
        np.testing.assert_allclose(found[: len(TEXTS)], alone, atol=1e-6)


@pytest.mark.slow
def test_a_vector_does_not_depend_on_the_batch_size(encoder: BertEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    together = encoder.encode(TEXTS)
    monkeypatch.setattr(encoder, "_batch_size", 1)
    np.testing.assert_allclose(encoder.encode(TEXTS), together, atol=1e-6)


@pytest.mark.slow
def test_a_query_has_the_vector_of_the_same_text_when_indexed(encoder: BertEncoder) -> None:
    queries = np.stack([encoder.encode_query(text) for text in TEXTS])
    np.testing.assert_allclose(queries, encoder.encode(TEXTS), atol=1e-6)


def test_cached_query_vector_is_read_only(encoder: BertEncoder) -> None:
    first = encoder.encode_query("who founded it?")
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 7.0
    assert np.array_equal(encoder.encode_query("who founded it?"), first)


def test_any_string_has_a_vector(encoder: BertEncoder) -> None:
    """Of length one, or zero where no word of it is known."""
    vectors = encoder.encode(HOSTILE)
    assert set(np.linalg.norm(vectors, axis=1).round(5).tolist()) == {0.0, 1.0}
    for text, vector in zip(HOSTILE, vectors, strict=True):
        np.testing.assert_allclose(encoder.encode_query(text), vector, atol=1e-6)


def test_surrogate_pair_is_encoded_like_its_character(encoder: BertEncoder) -> None:
    np.testing.assert_allclose(encoder.encode_query("fun \ud83d\ude00"), encoder.encode_query("fun 😀"), atol=1e-6)


def test_the_last_word_of_a_text_longer_than_the_model_reads_changes_its_vector(encoder: BertEncoder) -> None:
    long = prose(300, 7)
    one, other = encoder.encode([f"{long} glacier", f"{long} senate"])
    assert 0.9 < one @ other < 0.99999
    np.testing.assert_allclose(encoder.encode_query(f"{long} glacier"), one, atol=1e-6)


@pytest.mark.slow
def test_concurrent_threads_get_correct_vectors(encoder: BertEncoder) -> None:
    parts: list[Sequence[str]] = [[prose(1 + (i + j) % 17, 100 * i + j) for j in range(16)] for i in range(4)]
    expected = [encoder.encode(part) for part in parts]
    found: dict[int, np.ndarray] = {}

    def work(i: int) -> None:
        rows = encoder.encode(parts[i])
        query = encoder.encode_query(parts[i][0])
        found[i] = np.concatenate([rows, query[None]])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, rows in enumerate(expected):
        np.testing.assert_allclose(found[i], np.concatenate([rows, rows[:1]]), atol=1e-6)


@pytest.mark.slow
def test_queries_are_answered_while_indexing_goes_on(encoder: BertEncoder) -> None:
    indexing = threading.Thread(target=encoder.encode, args=([prose(150, seed) for seed in range(24)],))
    indexing.start()
    for i in range(5):
        encoder.encode_query(f"a question that nobody asked before, number {i}")
    assert indexing.is_alive()
    indexing.join()


@pytest.mark.slow
def test_short_lived_threads_are_answered_while_indexing_goes_on(encoder: BertEncoder) -> None:
    """The engine's own `infer` deadlocked when many threads called it once each and ended."""
    indexing = threading.Thread(target=encoder.encode, args=([prose(40, seed) for seed in range(20)],))
    indexing.start()
    answered: list[int] = []

    def ask(number: int) -> None:
        encoder.encode_query(f"question {number}")
        answered.append(number)

    for start in range(0, 80, 8):
        threads = [threading.Thread(target=ask, args=(start + i,), daemon=True) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
    indexing.join(timeout=120)
    assert not indexing.is_alive()
    assert sorted(answered) == list(range(80))


def test_the_identity_is_known_before_loading(encoder: BertEncoder) -> None:
    expected = EncoderIdentity("sentence-transformers/all-MiniLM-L6-v2+windows", 384)
    assert encoder.identity == expected
    assert identity_before_loading("sentence-transformers", "all-MiniLM-L6-v2") == expected
    assert identity_before_loading("sentence-transformers", "sentence-transformers/all-MiniLM-L6-v2") == expected


def test_a_store_of_an_earlier_release_keeps_vectors_of_the_first_256_tokens(encoder: BertEncoder) -> None:
    earlier = EncoderIdentity("sentence-transformers/all-MiniLM-L6-v2", 384)
    assert identity_before_loading("sentence-transformers", "all-MiniLM-L6-v2", earlier) == earlier
    made = make_encoder("sentence-transformers", "all-MiniLM-L6-v2", 64, "cpu", made_by=earlier)
    assert made.identity == earlier
    long = prose(300, 7)
    found = made.encode([long, f"{long} glacier", "Harrow Observatory"])
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    now = encoder.encode([long, "Harrow Observatory"])
    np.testing.assert_allclose(found[2], now[1], atol=1e-6)
    assert found[0] @ now[0] < 0.9999


@pytest.mark.process
def test_minilm_loads_in_a_thread_without_network_torch_and_telemetry() -> None:
    code = """
import socket, sys, threading
def refuse(*_): raise AssertionError("the network was touched")
socket.socket.connect = socket.getaddrinfo = refuse
from memory.encoder import make_encoder
import memory.encoder.e5
made = []
loading = threading.Thread(target=lambda: made.append(make_encoder("sentence-transformers", "all-MiniLM-L6-v2", 64, "cpu")))
loading.start()
loading.join()
[encoder] = made
assert encoder.encode(["hello"]).shape == (1, 384)
unwanted = ("torch", "sentence_transformers", "transformers", "sklearn", "openvino_telemetry", "openvino.tools.ovc")
loaded = [name for name, module in sys.modules.items() if module]
assert not [name for name in loaded if name in unwanted or name.startswith("openvino.tools.ovc.")]
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_known_words_returns_the_share_of_known_query_words(encoder: BertEncoder) -> None:
    assert encoder.known_words("Which command lists the files of a package?") == 1.0
    assert encoder.known_words("Wie vergrößert man die Auslagerungsdatei?") < 0.5
    assert encoder.known_words("怎样检测电脑内存") == 0.0
    assert encoder.known_words("") == encoder.known_words(" ?! ") == 1.0
