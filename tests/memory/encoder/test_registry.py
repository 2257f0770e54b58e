"""Which encoder a configuration gives, models by name or folder, and what is said when there is none."""

import threading
from pathlib import Path

import pytest

from memory.encoder import EncoderUnavailable, identity_before_loading, make_encoder, packaged_model
from memory.encoder.priority import QueryPriority
from memory.encoder.registry import ENCODER_BACKENDS
from memory.encoder.unknown_text import Vocabulary


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
def test_script_is_known_if_the_vocabulary_has_enough_words_of_it(pieces: list[str], text: int, known: bool) -> None:
    vocabulary = Vocabulary(
        {piece: number for number, piece in enumerate(["[UNK]", "[CLS]", "7", ",", *pieces])}, "[UNK]", [1]
    )
    assert vocabulary.knows([1, 4 + text, 3]) == known
    assert vocabulary.knows([1, 4 + text, 2, 3]), "half of it is a number"
    assert not vocabulary.knows([0, 0, 2])
    assert vocabulary.knows([1, 3, 3]), "no word at all"


@pytest.mark.parametrize(("model", "device"), [("someone/other-model", "cpu"), ("all-MiniLM-L6-v2", "cuda")])
def test_error_for_a_missing_torch_extra_names_the_install_command(
    model: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.encoder.registry.find_spec", lambda _name: None)
    with pytest.raises(EncoderUnavailable, match=r"hippod\[torch\].*make install EXTRAS=torch"):
        make_encoder("sentence-transformers", model, 64, device)


def test_the_packaged_model_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.encoder.registry.find_spec", lambda _name: None)
    missing_package = ENCODER_BACKENDS["sentence-transformers"].missing_package
    for name in packaged_model.MINILM.names:
        assert missing_package(name, "auto") is missing_package(name, "cpu") is None


def test_the_multilingual_model_names_its_extra_and_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.encoder.packaged_model.find_spec", lambda _name: None)
    with pytest.raises(EncoderUnavailable, match=r"hippod\[multilingual\].*make install EXTRAS=multilingual"):
        make_encoder("sentence-transformers", "multilingual-e5-small-4bit", 64, "auto")


def test_the_multilingual_model_runs_on_the_cpu_only() -> None:
    with pytest.raises(EncoderUnavailable, match=r'\[encoder\] device to "auto" or "cpu"'):
        make_encoder("sentence-transformers", "multilingual-e5-small-4bit", 64, "cuda")


def test_error_for_missing_packaged_weights_names_folder_and_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.packaged_data.FOLDER", "nowhere_to_be_found")
    with pytest.raises(EncoderUnavailable, match=r"nowhere_to_be_found.*make install"):
        packaged_model.verified_weights(packaged_model.MINILM)


def test_weights_other_than_the_published_ones_are_refused(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"not a model")
    with pytest.raises(EncoderUnavailable, match=r"model\.safetensors.*SHA-256.*reinstall"):
        packaged_model.verify_checksum(weights, "0" * 64, "reinstall hippod")


def test_error_for_unreadable_weights_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(EncoderUnavailable, match=r"model\.safetensors.*No such file.*reinstall"):
        packaged_model.verify_checksum(tmp_path / "model.safetensors", "0" * 64, "reinstall hippod")


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


def test_indexing_waits_while_a_query_is_encoded() -> None:
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


def test_indexing_continues_after_its_patience_during_constant_queries() -> None:
    priority = QueryPriority()
    with priority.query_under_way():
        priority.yield_to_queries()
