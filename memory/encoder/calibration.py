"""The constants of the method that depend on the encoder: which cosine makes two phrases synonyms, and which is a weak match.

Of an encoder whose constants are not known they are found from labelled pairs in eight languages, a part of hippod.
"""

import json
from collections.abc import Sequence
from math import floor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory.encoder.hashing import HASH_ENCODER_NAME
from memory.encoder.packaged_model import PACKAGED_MODELS
from memory.types import Encoder
from store.types import Calibration, EncoderIdentity

PAIRS = Path(__file__).with_name("labelled_pairs.json")
"""Pairs of phrases that mean the same thing, pairs of phrases that differ though they are near, and questions with a sentence
that answers them, by language."""

LINKED_SHARE = 0.05
"""Share of the phrases' pairs with other meanings that the threshold may link. With it, all-MiniLM-L6-v2 has the threshold 0.8
that was chosen by answers to questions."""
WEAK_SHARE = 0.1
"""Share of the questions whose answer's cosine may be weak."""
STEPS = 100
"""Per unit of cosine: results are whole hundredths, so that rounding on another machine changes none."""
LEAST_THRESHOLD = 0.66
"""Lower ones make each new phrase be compared with all (`store.index.synonyms.lsh`)."""

_KNOWN = {
    identity.name: model.calibration
    for model in PACKAGED_MODELS
    for identity in (model.identity, model.beginnings_only)
    if identity is not None
} | {HASH_ENCODER_NAME: Calibration(0.8, None)}


def known_calibration(encoder: EncoderIdentity) -> Calibration | None:
    """That of hippod's own encoders, whose digests are verified when they are loaded; None for others."""
    return _KNOWN.get(encoder.name)


def calibrate(encoder: Encoder) -> Calibration:
    """Encodes the labelled pairs: some 340 short texts. Pairs of which the encoder knows nothing do not count."""
    labelled = json.loads(PAIRS.read_bytes())
    others = [pair for language in labelled["phrases"].values() for pair in language["other"]]
    answers = [pair for language in labelled["questions"].values() for pair in language]
    questions = np.stack([encoder.encode_query(question) for question, _ in answers])
    far = _cosines(encoder.encode([a for a, _ in others]), encoder.encode([b for _, b in others]))
    near = _cosines(questions, encoder.encode([answer for _, answer in answers]))
    return Calibration(_threshold(far), _weak_below(near))


def _threshold(far: Sequence[float]) -> float:
    """The lowest threshold that at most `LINKED_SHARE` of `far` reach."""
    allowed = int(LINKED_SHARE * len(far))
    if not far:
        return 0.8
    above = sorted(far, reverse=True)[allowed]
    return min(max(floor(above * STEPS + 1) / STEPS, LEAST_THRESHOLD), 1.0)


def _weak_below(near: Sequence[float]) -> float | None:
    return floor(float(np.quantile(near, WEAK_SHARE)) * STEPS) / STEPS if near else None


def _cosines(a: NDArray[np.float32], b: NDArray[np.float32]) -> list[float]:
    """Of the rows that are known in both."""
    known = a.any(axis=1) & b.any(axis=1)
    return [float(cosine) for cosine in (a[known] * b[known]).sum(axis=1)]
