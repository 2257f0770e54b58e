"""Converts cosines to comparable scores: min-max-scaled as in the papers, standard scores for `fused`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.passage_weights import Floats
from memory.retrieval.top_k import EQUAL_SCORES

_PART_ROWS = 32_768

Scale = Callable[[NDArray[Any]], Floats]
"""Converts cosines to comparable scores of the same shape."""


@dataclass(frozen=True, slots=True)
class MinMax:
    """Scales scores from [`low`, `high`] to [0, 1]. If all scores are equal, each becomes 1."""

    low: float
    high: float

    @classmethod
    def of(cls, scores: NDArray[Any], alive: NDArray[np.bool_]) -> "MinMax":
        living = scores[alive]
        return cls(float(living.min()), float(living.max())) if len(living) else cls(0.0, 0.0)

    def __call__(self, scores: NDArray[Any]) -> Floats:
        if self.high - self.low <= EQUAL_SCORES:
            return np.ones(len(scores), np.float64)
        out: Floats = (scores.astype(np.float64) - self.low) / (self.high - self.low)
        # `low` and `high` are float32 values, so a cosine in float64 may lie slightly outside.
        return np.clip(out, 0.0, 1.0, out)


@dataclass(frozen=True, slots=True)
class StandardScore:
    """Scales scores to standard deviations above the mean. If all scores are equal, each becomes 0."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, scores: NDArray[Any], alive: NDArray[np.bool_]) -> "StandardScore":
        living = scores if alive.all() else scores[alive]
        if not len(living):
            return cls(0.0, 0.0)
        # Computed in parts that fit into the processor's cache; all scores in float64 would not fit.
        parts = range(0, len(living), _PART_ROWS)
        mean = sum(float(living[at : at + _PART_ROWS].sum(dtype=np.float64)) for at in parts) / len(living)
        squares = sum(float(np.square(living[at : at + _PART_ROWS] - np.float64(mean)).sum()) for at in parts)
        return cls(mean, float(np.sqrt(squares / len(living))))

    @classmethod
    def from_sums(cls, count: int, scores: float, squares: float) -> "StandardScore":
        """Returns the scale of `count` scores with the sum `scores` and the sum of squares `squares`."""
        if not count:
            return cls(0.0, 0.0)
        mean = scores / count
        return cls(mean, float(np.sqrt(max(squares / count - mean**2, 0.0))))

    def __call__(self, scores: NDArray[Any]) -> Floats:
        if self.deviation <= EQUAL_SCORES:
            return np.zeros(len(scores), np.float64)
        out: Floats = (scores.astype(np.float64) - self.mean) / self.deviation
        return out


def softmax(scores: NDArray[Any], temperature: float) -> Floats:
    """Returns exp(score / temperature), scaled to sum to 1. `scores` must not be empty."""
    weights: Floats = np.exp((scores.astype(np.float64) - float(scores.max())) / temperature)
    weights /= weights.sum()
    return weights
