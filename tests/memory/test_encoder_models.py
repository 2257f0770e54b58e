"""Which encoder a configuration gives, models by name or folder, and what is said when there is none."""

import threading
from pathlib import Path

import numpy as np
import pytest

from memory.encoder import EncoderUnavailable, identity_before_loading, make_encoder, packaged
from memory.encoder.library import LibraryEncoder
from memory.encoder.turns import Turns

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
    return packaged.model_dir()


@pytest.fixture(scope="module")
def from_folder(folder: Path) -> LibraryEncoder:
    made = make_encoder("sentence-transformers", str(folder), 2, "cpu")
    assert isinstance(made, LibraryEncoder)
    return made


def test_a_folder_with_a_model_is_loaded_by_the_library(folder: Path, from_folder: LibraryEncoder) -> None:
    assert from_folder.identity.name == str(folder)
    assert from_folder.identity.dim == 384
    own = make_encoder("sentence-transformers", "all-MiniLM-L6-v2", 64, "cpu").encode(TEXTS)
    np.testing.assert_allclose(from_folder.encode(TEXTS), own, atol=1e-5)


def test_a_library_models_vector_does_not_depend_on_its_neighbours(from_folder: LibraryEncoder) -> None:
    alone = np.stack([from_folder.encode([text])[0] for text in TEXTS])
    np.testing.assert_allclose(from_folder.encode(TEXTS), alone, atol=1e-6)
    queries = np.stack([from_folder.encode_query(text) for text in TEXTS])
    np.testing.assert_allclose(queries, alone, atol=1e-6)


def test_no_texts(from_folder: LibraryEncoder) -> None:
    assert from_folder.encode([]).shape == (0, 384)


def test_a_library_model_is_used_by_threads_at_once(from_folder: LibraryEncoder) -> None:
    expected = from_folder.encode_query("the question")
    indexing = threading.Thread(target=from_folder.encode, args=([f"text {i} of many" for i in range(60)],))
    indexing.start()
    asked = [from_folder.encode_query("the question")]
    indexing.join()
    np.testing.assert_allclose(asked[0], expected, atol=1e-6)


def test_a_model_that_is_not_there_is_named_with_what_to_do(tmp_path: Path) -> None:
    missing = str(tmp_path / "no" / "model")
    with pytest.raises(EncoderUnavailable, match=r"no/model.*cpu.*all-MiniLM-L6-v2"):
        make_encoder("sentence-transformers", missing, 64, "cpu")


def test_a_device_that_is_not_there_is_named(folder: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(EncoderUnavailable, match="cuda"):
        make_encoder("sentence-transformers", "all-MiniLM-L6-v2", 64, "cuda")


def test_weights_other_than_the_published_ones_are_refused(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"not a model")
    with pytest.raises(EncoderUnavailable, match=r"model\.safetensors.*SHA-256.*reinstall"):
        packaged.verify(weights, "0" * 64)


def test_weights_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(EncoderUnavailable, match=r"model\.safetensors.*No such file.*reinstall"):
        packaged.verify(tmp_path / "model.safetensors", "0" * 64)


def test_an_unknown_backend_and_an_impossible_batch_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r'"elsewhere".*"sentence-transformers" or "hash"'):
        make_encoder("elsewhere", "m", 64, "cpu")
    with pytest.raises(ValueError, match="batch_size is 0"):
        make_encoder("hash", "", 0, "cpu")


def test_another_models_identity_is_not_known_before_loading() -> None:
    assert identity_before_loading("sentence-transformers", "someone/other-model") is None
    assert identity_before_loading("elsewhere", "m") is None


def test_indexing_steps_aside_while_a_query_is_under_way() -> None:
    turns = Turns(patience_s=60)
    steps: list[str] = []

    def index() -> None:
        turns.give_way()
        steps.append("indexed")

    with turns.query():
        with turns.query():
            pass
        indexing = threading.Thread(target=index)
        indexing.start()
        steps.append("asked")
    indexing.join()
    assert steps == ["asked", "indexed"]


def test_indexing_goes_on_under_queries_without_end() -> None:
    turns = Turns()
    with turns.query():
        turns.give_way()
