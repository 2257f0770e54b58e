"""Which cosine makes synonyms, and which is weak: known constants, or what labelled pairs say of an encoder."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from memory.encoder import calibration
from memory.encoder.bert_encoder import BertEncoder
from memory.encoder.calibration import calibrate, known_calibration
from memory.encoder.hashing import HashEncoder
from memory.encoder.packaged_model import E5, MINILM
from memory.types import Encoder, Matrix
from store.types import Calibration, EncoderIdentity


def test_packaged_encoders_have_known_calibrations() -> None:
    assert MINILM.beginnings_only is not None
    for identity in (MINILM.identity, MINILM.beginnings_only):
        assert known_calibration(identity) == Calibration(0.8, 0.43)
    assert known_calibration(E5.identity) == E5.calibration
    for dim in (256, 8):
        assert known_calibration(HashEncoder(dim).identity) == Calibration(0.8, None)
    assert known_calibration(EncoderIdentity("intfloat/multilingual-e5-small", 384)) is None


def test_calibration_of_minilm_gives_its_recorded_constants(minilm: BertEncoder) -> None:
    found = calibrate(minilm)
    assert found.synonym_threshold == MINILM.calibration.synonym_threshold
    assert found.weak_below == pytest.approx(MINILM.calibration.weak_below, abs=0.05)


class Narrow(Encoder):
    """An encoder whose cosines are those of another one in a narrow range."""

    def __init__(self, noise: float = 0.0) -> None:
        self._wide = HashEncoder(64)
        self._noise = noise
        self.identity = EncoderIdentity("narrow", 65)

    def encode(self, texts: Sequence[str]) -> Matrix:
        wide = self._wide.encode(texts) + np.float32(self._noise)
        vectors = np.hstack([wide, np.full((len(texts), 1), 3.0, np.float32)])
        unit: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def encode_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.encode([text])[0]
        return vector


def test_calibration_follows_the_cosine_range_of_the_encoder() -> None:
    """Of 9 + cosine, divided by 10."""
    found = calibrate(Narrow())
    assert 0.95 < found.synonym_threshold < 1
    assert found.weak_below is not None and 0.85 < found.weak_below < 0.95
    assert all(
        value * 100 == pytest.approx(round(value * 100)) for value in (found.synonym_threshold, found.weak_below)
    )
    assert calibrate(Narrow(1e-7)) == found


def test_encoder_that_gives_zero_vectors_gets_default_calibration() -> None:
    class Empty(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Matrix:
            return np.zeros((len(texts), 256), np.float32)

    assert calibrate(Empty()) == Calibration(0.8, None)


def test_labelled_pairs_are_balanced_and_unique() -> None:
    labelled = json.loads(calibration.PAIRS.read_bytes())
    assert labelled["phrases"].keys() == labelled["questions"].keys()
    count = 0
    for language in labelled["phrases"].values():
        pairs = [tuple(pair) for kind in ("same", "other") for pair in language[kind]]
        assert len(set(pairs)) == len(pairs) == 2 * len(language["same"])
        assert all(phrase == phrase.lower() for pair in pairs for phrase in pair)
        count += len(pairs)
    assert count >= 150
