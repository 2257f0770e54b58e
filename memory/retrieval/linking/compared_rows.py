"""All rows of one kind beside a query: the nearest of them, and the scale of all cosines.

Small kinds are compared row by row. In a large one (`GROUPED_MIN_ROWS`) rows are looked for in three steps, each over
what the one before leaves: codes of four bits of all rows (`store.index.quantised`), codes of one byte of those that may be
among the nearest, and the vectors themselves. The codes of four bits have no bound as those of one byte do: their error is
random, by a rotation that has nothing to do with the rows. What counts is whether a row that is among the nearest falls short
by more than `SHORTFALL` deviations; 5.8 is the most that was seen among 800,000.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.row_scores import RowScores, coded_scores, min_max, row_scores
from memory.retrieval.score_scaling import MinMax, StandardScore
from memory.retrieval.top_k import Scores, candidates, cosines, order_by_name
from store.index.parallel import in_parallel
from store.index.quantised.groups import SCORE_DEVIATION, FoundRows, Group, search_group
from store.index.vectors.codes import GROUPED_MIN_ROWS
from store.index.vectors.matrix import BLOCK_VECTORS, VectorsView

SHORTFALL = 8.0
FIRST_FOUND = 128
"""Rows that are taken from a group at first, and four for each that is wanted; `MORE_FOUND` more where those may not be all."""
MORE_FOUND = 1024
FIRST_LOOKED_AT = 16
"""Of these the best, beside two for each that is wanted: their vectors tell how near the last of the nearest is at least."""


class ComparedRows:
    """The `compared` rows of `vectors` (mask, shape (rows,)) beside `query`, shape (dim,)."""

    def __init__(
        self, vectors: VectorsView, query: NDArray[np.float32], compared: NDArray[np.bool_], living: int, exact: bool
    ) -> None:
        """`living`: how many rows of the kind live; `exact`: compare by the vectors alone."""
        self._vectors = vectors
        self._query = query
        self._compared = compared
        self._living = living
        self._exact = exact
        self._is_grouped = living >= GROUPED_MIN_ROWS and not exact

    @cached_property
    def scores(self) -> RowScores:
        """The cosine of every row."""
        return row_scores(self._vectors, self._query, self._living, self._exact)

    def may_be_nearest(self, k: int) -> NDArray[Any]:
        """In order, rows among which the `k` nearest are, and all that are as near as the last of them."""
        if self._is_grouped and k and (rows := self._found_by_groups(k)) is not None:
            return rows
        return candidates(self.scores.values, k, self._compared, self.scores.error)

    def nearest(self, k: int, name: Callable[[int], str]) -> tuple[list[int], Scores]:
        """The `k` nearest rows, best first, equal ones in order of `name`, and their cosines in float64."""
        rows = self.may_be_nearest(k)
        return order_by_name(rows, cosines(self._vectors, self._query, rows), k, name)

    def min_max(self) -> MinMax:
        """The scale from the least to the greatest cosine."""
        if self._is_grouped and self._compared.any():
            opposite = ComparedRows(self._vectors, -self._query, self._compared, self._living, self._exact)
            least, most = opposite.nearest(1, _nameless)[1], self.nearest(1, _nameless)[1]
            return MinMax(-float(least[0]), float(most[0]))
        return min_max(self._vectors, self._query, self.scores, self._compared)

    def standard_score(self) -> StandardScore:
        """The scale by mean and deviation of all cosines, or of those of a sample."""
        if not self._is_grouped:
            return StandardScore.of(self.scores.values, self._compared)
        sums = self._vectors.sampled_sums(self._query, self._compared, self._living)
        return StandardScore.from_sums(sums.count, sums.products, sums.squares)

    def _found_by_groups(self, k: int) -> NDArray[Any] | None:
        """The rows that may be among the `k` nearest; None where there are no groups or they are of no use."""
        groups = self._vectors.groups()
        if not groups:
            return None

        def search(group: Group, takes: int) -> FoundRows:
            return search_group(group, self._query, self._compared, takes)

        takes = FIRST_FOUND + 4 * k
        found = in_parallel(lambda group: search(group, takes), groups)
        estimates = np.concatenate([each.scores for each in found])
        rows = np.concatenate([each.rows for each in found])
        best = FIRST_LOOKED_AT + 2 * k
        first = rows[np.argpartition(-estimates, best - 1)[:best]] if len(rows) > best else rows
        rest = self._rest(groups[-1].end, k)
        # The k-th nearest of some rows is no nearer than the k-th nearest of all.
        least = _kth(cosines(self._vectors, self._query, np.concatenate([first, rest])), k)
        enough = least - SHORTFALL * SCORE_DEVIATION / np.sqrt(self._vectors.dim)
        for at, group in enumerate(groups):
            if found[at].others >= enough:
                found[at] = search(group, takes + MORE_FOUND)
                if found[at].others >= enough:
                    return None
        may_be = np.concatenate([each.rows[each.scores >= enough] for each in found])
        return np.concatenate([self._near_by_codes(np.sort(may_be), least), rest])

    def _rest(self, behind: int, k: int) -> NDArray[Any]:
        """The rows from `behind` on that may be among the `k` nearest of these."""
        if behind >= self._vectors.n:
            return np.empty(0, np.int64)
        blocks = [block for _, block in self._vectors.coded_blocks()[behind // BLOCK_VECTORS :]]
        scores = coded_scores(blocks, self._query)
        return behind + candidates(scores.values, k, self._compared[behind:], scores.error)

    def _near_by_codes(self, rows: NDArray[Any], least: float) -> NDArray[Any]:
        """Those of `rows`, which are in order, whose cosine may be `least` by their codes of one byte."""
        scores = coded_scores([self._vectors.codes_of(rows)], self._query)
        near: NDArray[Any] = rows[scores.values >= least - scores.error]
        return near


def _kth(values: Scores, k: int) -> float:
    """The `k`-th greatest; below all where there are fewer."""
    return -float(np.partition(-values, k - 1)[k - 1]) if k <= len(values) else -np.inf


def _nameless(_row: int) -> str:
    """For who asks how near the nearest is, whichever it is."""
    return ""
