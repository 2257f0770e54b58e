"""Selects the best rows by score. The order depends on content only, so equal memories return equal answers."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.passage_weights import Floats
from store.index.vectors.matrix import VectorsView

RANKING_DECIMALS = 9
"""Number of decimals of a walk's score that determine the order of passages. Further decimals are rounding errors, which depend
on the order of arrival."""

COMPARED_ROWS = 4_096
"""Number of vectors compared with a query in one operation (12 MB). It bounds the memory if many vectors are equal."""

BLOCK = 64
"""Number of scores in a block; the blocks' maxima are compared first."""

EQUAL_SCORES = 1e-6
"""Scores that differ by less than this count as equal, because the rounding of a float32 cosine depends on its row's position
in the matrix."""


def top_k(
    scores: NDArray[Any], k: int, alive: NDArray[np.bool_], name: Callable[[int], str], decimals: int | None = None
) -> list[int]:
    """Returns the `k` best living rows, best first. Scores that are equal in `decimals` decimals are ordered by `name`.

    Rows are numbered in order of arrival, so a tie must not be decided by row.
    """

    def rounded(rows: NDArray[Any]) -> NDArray[Any]:
        values: NDArray[Any] = scores[rows]
        return values if decimals is None else np.round(values, decimals)

    # Most rows of a large memory have a score of 0.
    rows = np.flatnonzero(scores > 0)
    rows = rows[alive[rows]]
    values = rounded(rows)
    if len(rows) < k or np.count_nonzero(values > 0) < k:
        rows = np.flatnonzero(alive)
        values = rounded(rows)
    if k < len(rows):
        enough = values >= np.partition(values, len(rows) - k)[len(rows) - k]
        rows, values = rows[enough], values[enough]
    best: list[int] = rows[best_first(values, rows, k, name)].tolist()
    return best


def best_first(scores: NDArray[Any], rows: NDArray[Any], k: int, name: Callable[[int], str]) -> list[int]:
    """Returns the positions of the `k` largest `scores`, largest first. Equal scores are ordered by the `name` of their entries
    in `rows`.

    Names are read only to break ties, because they are decoded from bytes.
    """
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    places: list[int] = order.tolist()
    starts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    if len(starts) + 1 >= len(places):
        return places[:k]
    found: list[int] = []
    for start, end in pairwise([0, *starts.tolist(), len(places)]):
        if start >= k:
            break
        tied = places[start:end]
        found += sorted(tied, key=lambda place: name(int(rows[place]))) if len(tied) > 1 else tied
    return found[:k]


def is_top_k_certain(scores: NDArray[Any], k: int, error: float) -> bool:
    """Whether the `k` best of `scores` and their order are certain, if the errors of any two scores sum to at most `error`."""
    if k < len(scores):
        scores = np.partition(scores, len(scores) - k - 1)[-k - 1 :]
    gaps = np.diff(np.sort(scores))
    return bool(gaps.min(initial=np.inf) > error + 4 * 10.0**-RANKING_DECIMALS)


def is_top_k_certain_from_below(scores: NDArray[Any], bounds: NDArray[Any], k: int, elsewhere: float) -> bool:
    """Whether the `k` best of `scores` and their order are certain, if each exact score exceeds its score by 0 to its bound.

    `elsewhere`: upper bound of the scores that are missing in `scores`.
    """
    if not len(scores):
        return False
    order = np.argsort(-scores, kind="stable") if k >= len(scores) else _largest_first(scores, k)
    best, first = scores[order], order[:k]
    rest: NDArray[np.bool_] = np.ones(len(scores), np.bool_)
    rest[first] = False
    above = max(elsewhere, float((scores[rest] + bounds[rest]).max(initial=0.0)))
    # For each of the best rows: an upper bound of the exact scores of all rows after it.
    may_have = np.maximum.accumulate(np.concatenate([[above], (best + bounds[order])[::-1]]))[:-1][::-1]
    return bool((best > may_have + 4 * 10.0**-RANKING_DECIMALS).all())


def _largest_first(scores: NDArray[Any], k: int) -> NDArray[Any]:
    rows = np.argpartition(scores, len(scores) - k)[len(scores) - k :]
    return rows[np.argsort(-scores[rows], kind="stable")]


def top_k_by_cosine(
    vectors: VectorsView,
    query: NDArray[np.float32],
    scores: NDArray[Any],
    k: int,
    alive: NDArray[np.bool_],
    name: Callable[[int], str],
    error: float = EQUAL_SCORES,
) -> tuple[list[int], Floats]:
    """Returns the `k` living rows nearest to `query`, best first, and their cosines in float64.

    `scores`: cosines of all rows, each with an error of at most `error`. They select candidates that include the `k` nearest
    rows. Equal vectors get equal cosines, whatever their rows; ties are ordered by `name`.
    """
    rows = candidates(scores, k, alive, error)
    return order_by_name(rows, cosines(vectors, query, rows), k, name)


def order_by_name(rows: NDArray[Any], exact: Floats, k: int, name: Callable[[int], str]) -> tuple[list[int], Floats]:
    """Returns the `k` best of `rows`, best first, and their scores. Rows with equal scores in `exact` are ordered by `name`."""
    if len(rows) > k:
        # Only rows that may be among the best are ordered by name, even if many rows are equal.
        lower_bound = -np.partition(-exact, k - 1)[k - 1] if k else np.inf
        can_be_best = exact >= lower_bound
        rows, exact = rows[can_be_best], exact[can_be_best]
    order = best_first(exact, rows, k, name)
    return rows[order].tolist(), exact[order]


def candidates(scores: NDArray[Any], k: int, alive: NDArray[np.bool_], error: float) -> NDArray[Any]:
    """Returns the living rows that may be among the `k` best, if the error of each score is at most `error`."""
    living = int(np.count_nonzero(alive))
    if not 0 < k < living:
        return np.flatnonzero(alive)[: living if k else 0]
    values = scores if living == len(alive) else np.where(alive, scores, -np.inf)
    lower_bound = kth_best(values, k)
    # The `k` best rows by exact score have scores of at least this bound.
    return np.flatnonzero(values >= lower_bound - (2.0 * error if error > EQUAL_SCORES else error))


def kth_best(values: NDArray[Any], k: int) -> Any:
    """Returns the `k`-th largest value; there must be at least `k` values.

    The `k`-th largest of the blocks' maxima is a lower bound that leaves few values to select from.
    """
    whole = len(values) // BLOCK * BLOCK
    if whole >= 2 * BLOCK * k:
        maxima = values[:whole].reshape(-1, BLOCK).max(axis=1)
        values = values[values >= np.partition(maxima, len(maxima) - k)[len(maxima) - k]]
    return np.partition(values, len(values) - k)[len(values) - k]


def cosines(vectors: VectorsView, query: NDArray[np.float32], rows: NDArray[Any]) -> Floats:
    """Returns the cosines of `rows` with `query` in float64, shape (len(rows),), each summed in the same order."""
    summed: Floats = np.empty(len(rows))
    for start in range(0, len(rows), COMPARED_ROWS):
        part = vectors.rows(rows[start : start + COMPARED_ROWS])
        summed[start : start + len(part)] = np.multiply(part, query, dtype=np.float64).sum(axis=1)
    return summed
