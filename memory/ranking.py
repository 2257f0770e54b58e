"""Scaling scores and taking the best of them, so that equal memories answer equally."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.growing import VectorsView

Scores = NDArray[np.float64]

DECIMALS = 9
"""Of a walk's score that order passages: what lies beyond is rounding, which depends on the order of arrival."""

SAME = 1e-6
"""Scores closer than this are one score: a float32 cosine depends so much on where in the matrix its row stands."""


Scale = Callable[[NDArray[Any]], Scores]
"""From cosines to comparable scores."""


@dataclass(frozen=True, slots=True)
class MinMax:
    """Scales the scores between `low` and `high` to [0, 1]; all to 1 where every score is the same."""

    low: float
    high: float

    @classmethod
    def of(cls, scores: NDArray[Any], alive: NDArray[np.bool_]) -> "MinMax":
        """That of the living."""
        living = scores[alive]
        return cls(float(living.min()), float(living.max())) if len(living) else cls(0.0, 0.0)

    def __call__(self, scores: NDArray[Any]) -> Scores:
        if self.high - self.low <= SAME:
            return np.ones(len(scores), np.float64)
        out: Scores = (scores.astype(np.float64) - self.low) / (self.high - self.low)
        # The ends were found in float32; a cosine in float64 may lie just outside.
        return np.clip(out, 0.0, 1.0, out)


@dataclass(frozen=True, slots=True)
class Standard:
    """Scales scores to standard deviations above the mean; all to 0 where every score is the same."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, scores: NDArray[Any], alive: NDArray[np.bool_]) -> "Standard":
        """That of the living."""
        living = scores[alive].astype(np.float64)
        return cls(float(living.mean()), float(living.std())) if len(living) else cls(0.0, 0.0)

    def __call__(self, scores: NDArray[Any]) -> Scores:
        if self.deviation <= SAME:
            return np.zeros(len(scores), np.float64)
        out: Scores = (scores.astype(np.float64) - self.mean) / self.deviation
        return out


def best(scores: NDArray[Any], k: int, alive: NDArray[np.bool_], name: Callable[[int], str]) -> list[int]:
    """The `k` best rows among the living, best first; equal scores in order of `name`.

    Rows number arrivals, so a tie decided by row would make the answer depend on the order of arrival.
    """
    rows = np.flatnonzero(alive)
    if k < len(rows):
        values = scores[rows]
        least = np.partition(values, len(rows) - k)[len(rows) - k]
        rows = rows[values >= least]
    return sorted((int(row) for row in rows), key=lambda row: (-scores[row], name(row)))[:k]


def is_ordered(scores: NDArray[Any], k: int, error: float) -> bool:
    """Whether the `k` best of `scores` and their order are sure when no two scores are off by more than `error` together."""
    if k < len(scores):
        scores = np.partition(scores, len(scores) - k - 1)[-k - 1 :]
    gaps = np.diff(np.sort(scores))
    return bool(gaps.min(initial=np.inf) > error + 4 * 10.0**-DECIMALS)


def nearest(
    vectors: VectorsView,
    query: NDArray[np.float32],
    scores: NDArray[Any],
    k: int,
    alive: NDArray[np.bool_],
    name: Callable[[int], str],
) -> tuple[list[int], Scores]:
    """The `k` living rows whose vectors are nearest to `query`, best first, and their cosines in float64.

    `scores` are the float32 cosines of all rows, which pick the candidates. Equal vectors get equal cosines here, wherever
    their rows are; ties are in order of `name`.
    """
    rows = np.flatnonzero(alive)
    if k < len(rows):
        values = scores[rows]
        least = np.partition(values, len(rows) - k)[len(rows) - k]
        rows = rows[values >= least - SAME]
    exact = cosines(vectors, query, rows)
    order = sorted(range(len(rows)), key=lambda at: (-exact[at], name(int(rows[at]))))[:k]
    return [int(rows[at]) for at in order], exact[order]


def cosines(vectors: VectorsView, query: NDArray[np.float32], rows: NDArray[Any]) -> Scores:
    """Cosines of some rows with `query`, shape (len(rows),), each summed in the same order, in float64."""
    whole: Scores = (vectors.rows(rows).astype(np.float64) * query).sum(axis=1)
    return whole
