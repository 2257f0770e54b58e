"""The hash encoder: the same vector for a text anywhere, near vectors for near texts, no model."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.encoder import identity_before_loading, make_encoder
from memory.encoder.hashing import HashEncoder

ROOT = Path(__file__).parents[3]
SAMPLE = [
    "Ada Lovelace wrote the first program",
    "",
    "Straße STRASSE ﬁn",
    "北京 has 21 million people",
    "  ...!  ",
    "a",
    "naïve \ud800 text\x00",
]
# Of the float32 bytes of SAMPLE's vectors, little-endian: what a store on another machine was made with.
DIGEST = "76b908dbd2c9d5d81c76c07b95cb673f36e72c483f30c4939c4178494a0ef981"


def digest_of_sample() -> str:
    return hashlib.sha256(HashEncoder().encode(SAMPLE).astype("<f4").tobytes()).hexdigest()


def test_hash_vectors_equal_the_recorded_digest() -> None:
    assert digest_of_sample() == DIGEST


@pytest.mark.process
def test_vectors_do_not_depend_on_pythons_hash_seed() -> None:
    code = "from tests.memory.encoder.test_hashing import digest_of_sample; print(digest_of_sample())"
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert (run.returncode, run.stdout.strip()) == (0, DIGEST), run.stderr


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=8), st.data())
def test_a_vector_is_of_length_one_and_does_not_depend_on_its_neighbours(texts: list[str], data: st.DataObject) -> None:
    encoder = HashEncoder(64)
    together = encoder.encode(texts)
    row = data.draw(st.integers(0, len(texts) - 1))
    assert together.dtype == np.float32
    assert together.shape == (len(texts), 64)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-6)
    assert np.array_equal(together[row], encoder.encode([texts[row]])[0])
    assert np.array_equal(together[row], encoder.encode_query(texts[row]))


def test_many_texts_keep_their_order_across_chunks() -> None:
    encoder = HashEncoder(32)
    texts = [f"text number {i}" for i in range(9000)]
    vectors = encoder.encode(texts)
    for row in (0, 4095, 4096, 8999):
        assert np.array_equal(vectors[row], encoder.encode_query(texts[row]))


def test_texts_that_share_words_are_nearer_than_those_that_do_not() -> None:
    encoder = HashEncoder()
    query = encoder.encode_query("Who founded the observatory on Mount Harrow?")
    near, far = encoder.encode(
        ["The observatory on Mount Harrow was founded in 1911.", "Goats eat nearly anything they find."]
    )
    assert query @ near > 0.4 > 0.2 > query @ far


def test_spellings_of_one_name_are_near() -> None:
    a, b, c = HashEncoder().encode(["jonathan smith", "jonathon smith", "margaret olsen"])
    assert a @ b > 0.6
    assert abs(a @ c) < 0.3


def test_capitals_and_punctuation_do_not_count() -> None:
    a, b = HashEncoder().encode(["Hello, World!", "hello world"])
    assert np.array_equal(a, b)


def test_a_text_without_words_has_a_fixed_vector() -> None:
    encoder = HashEncoder(8)
    first = np.eye(8, dtype=np.float32)[0]
    for text in ("", " ", "\x00\x01", "?!", "\ud800"):
        assert np.array_equal(encoder.encode_query(text), first)


def test_hash_encoding_of_no_texts_is_an_empty_matrix() -> None:
    assert HashEncoder().encode([]).shape == (0, 256)


@pytest.mark.parametrize("text", ["x" * 1_000_000, "word " * 200_000, "\ud83d" * 1_000_000])
def test_huge_texts_are_encoded(text: str) -> None:
    assert np.linalg.norm(HashEncoder().encode_query(text)) == pytest.approx(1.0, abs=1e-6)


def test_numeric_model_name_sets_the_dimension_of_the_hash_encoder() -> None:
    assert make_encoder("hash", "512", 64, "cpu").encode(["a"]).shape == (1, 512)
    assert make_encoder("hash", "all-MiniLM-L6-v2", 64, "auto").identity.dim == 256
    for model in ("512", "all-MiniLM-L6-v2"):
        assert identity_before_loading("hash", model) == make_encoder("hash", model, 64, "cpu").identity


def test_hash_encoders_of_different_dimensions_have_different_identities() -> None:
    assert make_encoder("hash", "128", 64, "cpu").identity != make_encoder("hash", "", 64, "cpu").identity


def test_a_dimension_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="dimension"):
        make_encoder("hash", "0", 64, "cpu")
