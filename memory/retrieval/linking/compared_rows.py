"""Compares all vectors of one kind with a query: finds the nearest rows, and the scale of all cosines.

Kinds with few rows are compared row by row. From `GROUPED_MIN_ROWS` rows on, the search narrows the rows in three steps:
four-bit codes of all rows (`store.index.quantised`), one-byte codes of the rows that may be nearest, and the vectors
themselves. One-byte codes have a strict error bound; four-bit codes do not. The error of four-bit codes is random, because of a
rotation that is independent of the rows. The search misses one of the nearest rows only if its estimate is too low by more than
`SHORTFALL` standard deviations; the largest shortfall of 800,000 estimates was 5.8.

A one-byte code times its unit differs from the vector by at most half a unit in each component. The query is quantised to
integers too (q̂), with a known difference from q. The error of a cosine is therefore at most ½ · unit · ‖q̂‖₁ + ‖q - q̂‖₂ for
all vectors. Products of integers are exact, so a row's score depends only on the row and the query, not on the row's position.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import simsimd
from numpy.typing import NDArray

from memory.retrieval.passage_weights import Floats
from memory.retrieval.score_scaling import MinMax, StandardScore
from memory.retrieval.top_k import EQUAL_SCORES, candidates, cosines, order_by_name
from memory.retrieval.unlocked_property import unlocked_property
from store.index.parallel import in_parallel
from store.index.quantised.groups import SCORE_DEVIATION, FoundRows, Group, search_group
from store.index.vectors.codes import CODED_MIN_ROWS, GROUPED_MIN_ROWS, CodedBlock
from store.index.vectors.matrix import BLOCK_VECTORS, VectorsView

SHORTFALL = 8.0
FIRST_FOUND = 128
"""Initial number of rows taken from a group, plus four per requested row. If some of the nearest may be missing, `MORE_FOUND`
more are taken."""
MORE_FOUND = 1024
FIRST_EXACT_ROWS = 16
"""Initial number of best rows (plus two per requested row) whose exact cosines give a lower bound of the k-th nearest."""

MAX_QUERY_INTEGER = 127
"""Largest integer in a quantised query. Sums of products with it are exact in 32 bits."""
PARALLEL_MIN_ROWS = 65_536
"""Number of rows from which several threads compute the products. One thread takes half a millisecond for half as many rows."""


@dataclass(frozen=True, slots=True)
class RowScores:
    """`values` contains a score for every row, shape (rows,); each score has an error of at most `error`."""

    values: NDArray[np.float32]
    error: float = EQUAL_SCORES


def row_scores(vectors: VectorsView, query: NDArray[np.float32], living: int, exact: bool = False) -> RowScores:
    """Returns the cosine of every row with `query`, shape (dim,). Uses codes if at least `CODED_MIN_ROWS` rows are `living`.

    `exact`: always uses the vectors.
    """
    if exact or living < CODED_MIN_ROWS:
        return RowScores(vectors.scores(query))
    return coded_scores([block for _, block in vectors.coded_blocks()], query)


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


class ComparedRows:
    """Compares `query`, shape (dim,), with the rows of `vectors` that the mask `compared`, shape (rows,), selects."""

    def __init__(
        self, vectors: VectorsView, query: NDArray[np.float32], compared: NDArray[np.bool_], living: int, exact: bool
    ) -> None:
        """`living`: number of living rows of the kind. `exact`: compares the vectors themselves only."""
        self._vectors = vectors
        self._query = query
        self._compared = compared
        self._living = living
        self._exact = exact
        self._is_grouped = living >= GROUPED_MIN_ROWS and not exact

    @unlocked_property
    def scores(self) -> RowScores:
        """Cosines of all rows, or estimates with a bounded error."""
        return row_scores(self._vectors, self._query, self._living, self._exact)

    def may_be_nearest(self, k: int) -> NDArray[Any]:
        """Returns the rows, ascending, that may be among the `k` nearest, including ties."""
        if self._is_grouped and k and (rows := self._found_by_groups(k)) is not None:
            return rows
        return candidates(self.scores.values, k, self._compared, self.scores.error)

    def nearest(self, k: int, name: Callable[[int], str]) -> tuple[list[int], Floats]:
        """Returns the `k` nearest rows, best first (ties ordered by `name`), and their cosines in float64."""
        rows = self.may_be_nearest(k)
        return order_by_name(rows, cosines(self._vectors, self._query, rows), k, name)

    def min_max(self) -> MinMax:
        """Returns the scale from the smallest to the largest cosine."""
        if self._is_grouped and self._compared.any():
            opposite = ComparedRows(self._vectors, -self._query, self._compared, self._living, self._exact)
            lowest, highest = opposite.nearest(1, _nameless)[1], self.nearest(1, _nameless)[1]
            return MinMax(-float(lowest[0]), float(highest[0]))
        scores, compared = self.scores, self._compared
        if scores.error <= EQUAL_SCORES or not compared.any():
            return MinMax.of(scores.values, compared)
        lowest, highest = (candidates(values, 1, compared, scores.error) for values in (-scores.values, scores.values))
        return MinMax(
            float(cosines(self._vectors, self._query, lowest).min()),
            float(cosines(self._vectors, self._query, highest).max()),
        )

    def standard_score(self) -> StandardScore:
        """Returns the scale by mean and standard deviation of all cosines, or of the cosines of a sample."""
        if not self._is_grouped:
            return StandardScore.of(self.scores.values, self._compared)
        sums = self._vectors.sampled_sums(self._query, self._compared, self._living)
        return StandardScore.from_sums(sums.count, sums.products, sums.squares)

    def _found_by_groups(self, k: int) -> NDArray[Any] | None:
        """Returns the rows that may be among the `k` nearest; None if there are no groups, or if groups do not narrow the
        search."""
        groups = self._vectors.groups()
        if not groups:
            return None

        def search(group: Group, takes: int) -> FoundRows:
            return search_group(group, self._query, self._compared, takes)

        takes = FIRST_FOUND + 4 * k
        found = in_parallel(lambda group: search(group, takes), groups)
        estimates = np.concatenate([each.scores for each in found])
        rows = np.concatenate([each.rows for each in found])
        best = FIRST_EXACT_ROWS + 2 * k
        first = rows[np.argpartition(-estimates, best - 1)[:best]] if len(rows) > best else rows
        rest = self._rest(groups[-1].end, k)
        # The k-th nearest of a subset is never nearer than the k-th nearest of all rows.
        lower_bound = _kth(cosines(self._vectors, self._query, np.concatenate([first, rest])), k)
        enough = lower_bound - SHORTFALL * SCORE_DEVIATION / np.sqrt(self._vectors.dim)
        for at, group in enumerate(groups):
            if found[at].others >= enough:
                found[at] = search(group, takes + MORE_FOUND)
                if found[at].others >= enough:
                    return None
        may_be = np.concatenate([each.rows[each.scores >= enough] for each in found])
        return np.concatenate([self._near_by_codes(np.sort(may_be), lower_bound), rest])

    def _rest(self, behind: int, k: int) -> NDArray[Any]:
        """Returns the rows from `behind` on that may be among the `k` nearest of these rows."""
        if behind >= self._vectors.n:
            return np.empty(0, np.int64)
        blocks = [block for _, block in self._vectors.coded_blocks()[behind // BLOCK_VECTORS :]]
        scores = coded_scores(blocks, self._query)
        return behind + candidates(scores.values, k, self._compared[behind:], scores.error)

    def _near_by_codes(self, rows: NDArray[Any], lower_bound: float) -> NDArray[Any]:
        """Returns the rows whose cosine, according to their one-byte codes, may reach `lower_bound`. `rows` must be sorted."""
        scores = coded_scores([self._vectors.codes_of(rows)], self._query)
        near: NDArray[Any] = rows[scores.values >= lower_bound - scores.error]
        return near


def _kth(values: Floats, k: int) -> float:
    """Returns the `k`-th largest value; minus infinity if there are fewer values."""
    return -float(np.partition(-values, k - 1)[k - 1]) if k <= len(values) else -np.inf


def _nameless(_row: int) -> str:
    """A constant name, for searches whose result does not depend on the order of ties."""
    return ""
