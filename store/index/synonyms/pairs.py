"""Pairs of phrases as arrays, and the changes of synonym edges."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from store.rows import Rows64

Scored = tuple[Rows64, Rows64, NDArray[np.float64]]
"""(row, other row, cosine) of each pair, as three arrays of equal length."""
NO_PAIRS: Scored = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))


@dataclass(slots=True)
class SynonymChange:
    """The changes that one commit makes to synonym edges: pairs `a` < `b` with their new `weights` (0 removes an edge) and
    their old weights `before`. All arrays have the same length."""

    a: Rows64 = field(default_factory=lambda: NO_PAIRS[0])
    b: Rows64 = field(default_factory=lambda: NO_PAIRS[1])
    weights: NDArray[np.float64] = field(default_factory=lambda: NO_PAIRS[2])
    before: NDArray[np.float64] = field(default_factory=lambda: NO_PAIRS[2])
