"""The constants of the method that depend on the encoder: the synonym threshold, and the cosine below which a match is weak.

For encoders without known constants, hippod computes them from labelled pairs in eight languages, which are part of hippod.
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
"""By language: pairs of phrases with equal meaning, pairs of similar phrases with different meanings, and questions with a
sentence that answers them."""

LINKED_SHARE = 0.05
"""Maximum share of the pairs with different meanings whose cosine may reach the threshold. For all-MiniLM-L6-v2, this gives
0.8, which is also the threshold with the best answers to questions."""
WEAK_SHARE = 0.1
"""Share of the questions whose answer counts as a weak match."""
STEPS = 100
"""Steps per unit of cosine: results are multiples of 1/100, so that machines with other rounding get the same results."""
MIN_THRESHOLD = 0.66
"""Below this threshold, each new phrase would have to be compared with all other phrases (`store.index.synonyms.lsh`)."""

_KNOWN = {
    identity.name: model.calibration
    for model in PACKAGED_MODELS
    for identity in (model.identity, model.beginnings_only)
    if identity is not None
} | {HASH_ENCODER_NAME: Calibration(0.8, None)}


def known_calibration(encoder: EncoderIdentity) -> Calibration | None:
    """Returns the constants of a packaged encoder, whose digest is verified at loading; None for other encoders."""
    return _KNOWN.get(encoder.name)


def calibrate(encoder: Encoder) -> Calibration:
    """Computes the constants by encoding the labelled pairs, about 340 short texts. Pairs with a zero vector are ignored."""
    labelled = json.loads(PAIRS.read_bytes())
    others = [pair for language in labelled["phrases"].values() for pair in language["other"]]
    answers = [pair for language in labelled["questions"].values() for pair in language]
    questions = np.stack([encoder.encode_query(question) for question, _ in answers])
    far = _cosines(encoder.encode([a for a, _ in others]), encoder.encode([b for _, b in others]))
    near = _cosines(questions, encoder.encode([answer for _, answer in answers]))
    return Calibration(_threshold(far), _weak_below(near))


def _threshold(far: Sequence[float]) -> float:
    """Returns the lowest threshold that at most `LINKED_SHARE` of the cosines `far` reach."""
    allowed = int(LINKED_SHARE * len(far))
    if not far:
        return 0.8
    above = sorted(far, reverse=True)[allowed]
    return min(max(floor(above * STEPS + 1) / STEPS, MIN_THRESHOLD), 1.0)


def _weak_below(near: Sequence[float]) -> float | None:
    return floor(float(np.quantile(near, WEAK_SHARE)) * STEPS) / STEPS if near else None


def _cosines(a: NDArray[np.float32], b: NDArray[np.float32]) -> list[float]:
    """Returns the cosines of the rows that are not zero in both matrices."""
    known = a.any(axis=1) & b.any(axis=1)
    return [float(cosine) for cosine in (a[known] * b[known]).sum(axis=1)]
