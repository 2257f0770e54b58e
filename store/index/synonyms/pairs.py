"""Pairs of phrases as arrays."""

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Scored = tuple[Rows, Rows, NDArray[np.float64]]
"""(row, other row, cosine) of each pair, as three arrays of equal length."""
NO_PAIRS: Scored = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))
