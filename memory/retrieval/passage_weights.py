"""Sparse weights of passages."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Weights, scores or ranks."""


@dataclass(frozen=True, slots=True)
class PassageWeights:
    """Weights of some passages: sorted, distinct `rows` and their `weights`, shape (k,). All other passages have the weight
    0."""

    rows: NDArray[np.int64]
    weights: Floats

    @classmethod
    def sum_of(cls, *parts: "tuple[float, PassageWeights]") -> "PassageWeights":
        """Returns the sum of the parts, each multiplied by its factor."""
        found = [(factor * part.weights, part.rows) for factor, part in parts if len(part.rows)]
        if not found:
            return cls(np.empty(0, np.int64), np.empty(0))
        rows, places = np.unique(np.concatenate([each for _, each in found]), return_inverse=True)
        weights: Floats = np.bincount(places, np.concatenate([each for each, _ in found])).astype(np.float64)
        return cls(rows, weights)

    def of(self, rows: NDArray[Any]) -> Floats:
        """Returns the weights of `rows`, in their shape."""
        if not len(self.rows):
            return np.zeros(len(rows))
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[places] == rows, self.weights[places], 0.0)

    @property
    def total(self) -> float:
        return float(self.weights.sum())
