"""Which encoder a configuration gives, models by name or folder, and what is said when there is none."""

import threading
from pathlib import Path

import numpy as np
import pytest

from memory.encoder import EncoderUnavailable, identity_before_loading, make_encoder, packaged_model
from memory.encoder.priority import QueryPriority
from memory.encoder.sentence_transformer import SentenceTransformerEncoder
from memory.encoder.unknown_text import Vocabulary

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
    return packaged_model.model_dir()


@pytest.fixture(scope="module")
def from_folder(folder: Path) -> SentenceTransformerEncoder:
    made = make_encoder("sentence-transformers", str(folder), 2, "cpu")
    assert isinstance(made, SentenceTransformerEncoder)
    return made


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
def test_a_text_of_which_a_library_models_tokeniser_knows_nothing_has_the_zero_vector(
    from_folder: SentenceTransformerEncoder,
) -> None:
    unknown = ["目录上的粘滞位", "Привет, мир"]
    vectors = from_folder.encode([unknown[0], "two words", unknown[1]])
    assert vectors.any(axis=1).tolist() == [False, True, False]
    assert not any(from_folder.encode_query(text).any() for text in unknown)


@pytest.mark.parametrize(
    ("pieces", "text", "known"),
    [
        # A vocabulary of an alphabet's words, of its letters alone, and of some thousand characters that are words themselves.
        ([f"сло{chr(1072 + i % 32)}{chr(1072 + i // 32)}" for i in range(200)], 0, True),
        ([chr(1072 + i) for i in range(32)], 0, False),
        ([chr(0x4E00 + i) for i in range(3_000)], 0, True),
        ([chr(0x4E00 + i) for i in range(500)], 0, False),
    ],
)
def test_a_script_is_known_by_what_the_vocabulary_has_of_it(pieces: list[str], text: int, known: bool) -> None:
    vocabulary = Vocabulary(
        {piece: number for number, piece in enumerate(["[UNK]", "[CLS]", "7", ",", *pieces])}, "[UNK]", [1]
    )
    assert vocabulary.knows([1, 4 + text, 3]) == known
    assert vocabulary.knows([1, 4 + text, 2, 3]), "half of it is a number"
    assert not vocabulary.knows([0, 0, 2])
    assert vocabulary.knows([1, 3, 3]), "no word at all"


def test_no_texts(from_folder: SentenceTransformerEncoder) -> None:
    assert from_folder.encode([]).shape == (0, 384)


@pytest.mark.slow
def test_a_library_model_is_used_by_threads_at_once(from_folder: SentenceTransformerEncoder) -> None:
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
        packaged_model.verify_checksum(weights, "0" * 64)


def test_weights_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(EncoderUnavailable, match=r"model\.safetensors.*No such file.*reinstall"):
        packaged_model.verify_checksum(tmp_path / "model.safetensors", "0" * 64)


def test_an_unknown_backend_and_an_impossible_batch_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r'"elsewhere".*"sentence-transformers", "openai" or "hash"'):
        make_encoder("elsewhere", "m", 64, "cpu")
    with pytest.raises(ValueError, match="batch_size is 0"):
        make_encoder("hash", "", 0, "cpu")


@pytest.mark.parametrize("model", ["0", "8193", "9" * 5000])
def test_a_hash_encoder_of_an_impossible_dimension_is_refused(model: str) -> None:
    with pytest.raises(ValueError, match="from 1 to 8192"):
        make_encoder("hash", model, 64, "cpu")
    assert make_encoder("hash", "8192", 64, "cpu").identity.dim == 8192


def test_another_models_identity_is_not_known_before_loading() -> None:
    assert identity_before_loading("sentence-transformers", "someone/other-model") is None
    assert identity_before_loading("elsewhere", "m") is None


def test_indexing_steps_aside_while_a_query_is_under_way() -> None:
    priority = QueryPriority(patience_s=60)
    steps: list[str] = []

    def index() -> None:
        priority.yield_to_queries()
        steps.append("indexed")

    with priority.query_under_way():
        with priority.query_under_way():
            pass
        indexing = threading.Thread(target=index)
        indexing.start()
        steps.append("asked")
    indexing.join()
    assert steps == ["asked", "indexed"]


def test_indexing_goes_on_under_queries_without_end() -> None:
    priority = QueryPriority()
    with priority.query_under_way():
        priority.yield_to_queries()
