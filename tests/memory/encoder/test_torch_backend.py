"""The backend sentence-transformers with torch: models by folder or name, and the packaged model against the light engine."""

import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from memory.encoder import EncoderUnavailable, make_encoder, packaged_model
from memory.encoder.sentence_transformer import SentenceTransformerEncoder
from tests.torch_extra import needs_torch

pytestmark = needs_torch

TEXTS = [
    "one",
    "two words",
    "two others",
    "a rather longer text\nwith two lines",
    "",
    "lone \ud800 surrogate",
    "x" * 300_000,
]


@pytest.fixture(scope="module")
def folder() -> Path:
    return packaged_model.verified_weights(packaged_model.MINILM).parent


@pytest.fixture(scope="module")
def from_folder(folder: Path) -> SentenceTransformerEncoder:
    made = make_encoder("sentence-transformers", str(folder), 2, "cpu")
    assert isinstance(made, SentenceTransformerEncoder)
    return made


def test_torch_extra_is_installed() -> None:
    assert find_spec("sentence_transformers") is not None, "install it: make install EXTRAS=torch"


@pytest.mark.slow
def test_packaged_engine_gives_the_vectors_of_sentence_transformers(from_folder: SentenceTransformerEncoder) -> None:
    light = make_encoder("sentence-transformers", "all-MiniLM-L6-v2", 64, "cpu")
    texts = [*TEXTS[:5], *(" ".join(f"word{i * n % 97} glacier" for i in range(n)) for n in (3, 17, 60, 140, 400))]
    library = from_folder.encode(texts)
    assert (light.encode(texts) * library).sum(axis=1).min() >= 0.9999992
    assert (light.encode_low_precision(texts) * library).sum(axis=1).min() >= 0.9999
    queries = np.stack([light.encode_query(text) for text in texts])
    assert (queries * library).sum(axis=1).min() >= 0.9999992


@pytest.mark.slow
def test_a_folder_with_a_model_is_loaded_by_the_library(folder: Path, from_folder: SentenceTransformerEncoder) -> None:
    assert from_folder.identity.name == str(folder)
    assert from_folder.identity.dim == 384
    own = make_encoder("sentence-transformers", "all-MiniLM-L6-v2", 64, "cpu").encode(TEXTS)
    np.testing.assert_allclose(from_folder.encode(TEXTS), own, atol=1e-5)


@pytest.mark.slow
def test_a_library_models_vector_does_not_depend_on_its_neighbours(from_folder: SentenceTransformerEncoder) -> None:
    alone = np.stack([from_folder.encode([text])[0] for text in TEXTS])
    np.testing.assert_allclose(from_folder.encode(TEXTS), alone, atol=1e-6)
    queries = np.stack([from_folder.encode_query(text) for text in TEXTS])
    np.testing.assert_allclose(queries, alone, atol=1e-6)


@pytest.mark.slow
def test_text_without_known_tokens_has_the_zero_vector(
    from_folder: SentenceTransformerEncoder,
) -> None:
    unknown = ["目录上的粘滞位", "Привет, мир"]
    vectors = from_folder.encode([unknown[0], "two words", unknown[1]])
    assert vectors.any(axis=1).tolist() == [False, True, False]
    assert not any(from_folder.encode_query(text).any() for text in unknown)


def test_library_encoding_of_no_texts_is_an_empty_matrix(from_folder: SentenceTransformerEncoder) -> None:
    assert from_folder.encode([]).shape == (0, 384)


@pytest.mark.slow
def test_library_model_gives_correct_vectors_in_concurrent_threads(from_folder: SentenceTransformerEncoder) -> None:
    expected = from_folder.encode_query("the question")
    indexing = threading.Thread(target=from_folder.encode, args=([f"text {i} of many" for i in range(60)],))
    indexing.start()
    asked = [from_folder.encode_query("the question")]
    indexing.join()
    np.testing.assert_allclose(asked[0], expected, atol=1e-6)


def test_error_for_a_missing_model_names_it_and_an_alternative(tmp_path: Path) -> None:
    missing = str(tmp_path / "no" / "model")
    with pytest.raises(EncoderUnavailable, match=r"no/model.*cpu.*all-MiniLM-L6-v2"):
        make_encoder("sentence-transformers", missing, 64, "cpu")


def test_error_for_a_missing_device_names_it(folder: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(EncoderUnavailable, match="cuda"):
        make_encoder("sentence-transformers", "all-MiniLM-L6-v2", 64, "cuda")
