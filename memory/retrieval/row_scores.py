"""Cosines of all rows with a query: exact, or by codes of one byte a component with a bound on the error.

By codes a query reads half of the bytes. A code times its unit is off by half a unit in each component at most. The query
becomes whole numbers too, q̂, and how far off those are is known. So a cosine is off by at most ½ · unit · ‖q̂‖₁ + ‖q - q̂‖₂,
whatever the vectors are. Products of whole numbers are exact: a row's score depends on row and query alone, not on where the
row stands.
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

QUERY_MAX = 127
"""Largest of a query's whole numbers. Products are summed in 32 bits, exactly."""


@dataclass(frozen=True, slots=True)
class RowScores:
    """`values`: a score for every row, shape (rows,). Each is off by at most `error`."""

    values: NDArray[np.float32]
    error: float = EQUAL_SCORES


def row_scores(vectors: VectorsView, query: NDArray[np.float32], living: int, exact: bool = False) -> RowScores:
    """Cosine of every row with `query`, shape (dim,). By codes from `CODED_MIN_ROWS` `living` rows on, unless `exact`."""
    if exact or living < CODED_MIN_ROWS:
        return RowScores(vectors.scores(query))
    return _coded_scores(vectors, query)


def min_max(vectors: VectorsView, query: NDArray[np.float32], scores: RowScores, compared: NDArray[np.bool_]) -> MinMax:
    """The scale of the exact cosines of the compared rows, of which `scores` are estimates."""
    if scores.error <= EQUAL_SCORES or not compared.any():
        return MinMax.of(scores.values, compared)
    least, most = (candidates(values, 1, compared, scores.error) for values in (-scores.values, scores.values))
    return MinMax(float(cosines(vectors, query, least).min()), float(cosines(vectors, query, most).max()))


def _coded_scores(vectors: VectorsView, query: NDArray[np.float32]) -> RowScores:
    return coded_scores([block for _, block in vectors.coded_blocks()], query)


def coded_scores(blocks: Sequence[CodedBlock], query: NDArray[np.float32]) -> RowScores:
    """Cosine with `query` of all rows of `blocks`, one block behind the other."""
    unit = float(np.abs(query).max()) / QUERY_MAX or 1.0
    whole = np.rint(query / unit).astype(np.int8)
    ends = np.cumsum([0, *(len(block.units) for block in blocks)])
    out = np.empty(int(ends[-1]), np.float32)

    def fill(at: int) -> float:
        block = blocks[at]
        if len(block.units):
            products = np.asarray(simsimd.inner(block.codes, whole[None]))
            np.multiply(products, block.units, out=out[ends[at] : ends[at + 1]], casting="unsafe")
        return float(block.units.max(initial=0.0))

    largest = max(in_parallel(fill, range(len(blocks))), default=0.0)
    out *= np.float32(unit)
    rounded = whole.astype(np.float64) * unit
    error = 0.5 * largest * float(np.abs(rounded).sum()) + float(np.linalg.norm(query - rounded))
    return RowScores(out, error + EQUAL_SCORES)
