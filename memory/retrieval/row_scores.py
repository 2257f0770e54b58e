"""Cosines of all rows with a query: exact, or from one-byte codes with a bound on the error.

With codes, a query reads half as many bytes. A code times its unit differs from the vector by at most half a unit in each
component. The query is quantised to integers too, q̂, with a known difference. The error of a cosine is therefore at most ½ ·
unit · ‖q̂‖₁ + ‖q - q̂‖₂, whatever the vectors are. Products of integers are exact, so a row's score depends only on the row and
the query, and not on the row's position.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import simsimd
from numpy.typing import NDArray

from memory.retrieval.score_scaling import MinMax
from memory.retrieval.top_k import EQUAL_SCORES, candidates, cosines
from store.index.parallel import in_parallel
from store.index.vectors.codes import CODED_MIN_ROWS, CodedBlock
from store.index.vectors.matrix import VectorsView

MAX_QUERY_INTEGER = 127
"""Largest integer of a quantised query. Products are summed exactly in 32 bits."""
PARALLEL_MIN_ROWS = 65_536
"""Number of rows from which threads share the products. One thread takes half a millisecond for half as many."""


@dataclass(frozen=True, slots=True)
class RowScores:
    """`values` contains a score for every row, shape (rows,); the error of each is at most `error`."""

    values: NDArray[np.float32]
    error: float = EQUAL_SCORES


def row_scores(vectors: VectorsView, query: NDArray[np.float32], living: int, exact: bool = False) -> RowScores:
    """Returns the cosine of every row with `query`, shape (dim,), from codes if at least `CODED_MIN_ROWS` rows are `living`.

    `exact` always uses the vectors.
    """
    if exact or living < CODED_MIN_ROWS:
        return RowScores(vectors.scores(query))
    return coded_scores([block for _, block in vectors.coded_blocks()], query)


def min_max(vectors: VectorsView, query: NDArray[np.float32], scores: RowScores, compared: NDArray[np.bool_]) -> MinMax:
    """Returns the scale of the exact cosines of the compared rows. `scores` are estimates of these cosines."""
    if scores.error <= EQUAL_SCORES or not compared.any():
        return MinMax.of(scores.values, compared)
    lowest, highest = (candidates(values, 1, compared, scores.error) for values in (-scores.values, scores.values))
    return MinMax(float(cosines(vectors, query, lowest).min()), float(cosines(vectors, query, highest).max()))


def coded_scores(blocks: Sequence[CodedBlock], query: NDArray[np.float32]) -> RowScores:
    """Returns the cosines with `query` of all rows of `blocks`, in the order of the blocks."""
    unit = float(np.abs(query).max()) / MAX_QUERY_INTEGER or 1.0
    whole = np.rint(query / unit).astype(np.int8)
    ends = np.cumsum([0, *(len(block.units) for block in blocks)])
    out = np.empty(int(ends[-1]), np.float32)

    def fill(at: int) -> float:
        block = blocks[at]
        if len(block.units):
            products = np.asarray(simsimd.inner(block.codes, whole[None]))
            np.multiply(products, block.units, out=out[ends[at] : ends[at + 1]], casting="unsafe")
        return float(block.units.max(initial=0.0))

    each = range(len(blocks))
    largest = max(in_parallel(fill, each) if len(out) >= PARALLEL_MIN_ROWS else map(fill, each), default=0.0)
    out *= np.float32(unit)
    rounded = whole.astype(np.float64) * unit
    error = 0.5 * largest * float(np.abs(rounded).sum()) + float(np.linalg.norm(query - rounded))
    return RowScores(out, error + EQUAL_SCORES)
