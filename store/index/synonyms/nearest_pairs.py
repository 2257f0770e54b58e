"""The nearest pairs of each row, out of any number of pairs that come some at a time."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

CUT_PAIRS = 1 << 19
"""Pairs that `Nearest` holds, 12 MB, before it leaves out those that are not among the nearest; and how many it orders at a
time, but for a row that has more."""

COUNTED_BITS = 6
"""Where there are fewer rows than the largest number over two to this, they are sorted to be counted."""

Rows = NDArray[np.int64]
Scored = tuple[Rows, Rows, NDArray[np.float64]]
"""(row, other row, cosine) of pairs, three arrays of one length."""
NO_PAIRS: Scored = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))


class Nearest:
    """Takes pairs in any order and keeps for each row those with its `cap` nearest others, ties going to the smaller text."""

    def __init__(self, cap: int, text: Callable[[int], str]) -> None:
        self._cap = cap
        self._text = text
        self._found: tuple[list[NDArray[Any]], ...] = [], [], []
        self._count = 0
        self._cut_at = CUT_PAIRS

    def add(self, rows: Rows, others: Rows, scores: NDArray[np.float64]) -> None:
        """Takes more pairs, each of which comes once."""
        if not len(rows):
            return
        self._hold(rows, others, scores)
        if self._count >= self._cut_at:
            self.pairs()
            # Where most of them stay, the next cut waits until there are half as many again.
            self._cut_at = max(CUT_PAIRS, self._count + self._count // 2)

    def _hold(self, rows: Rows, others: Rows, scores: NDArray[np.float64]) -> None:
        for column, part in zip(self._found, (rows, others, scores), strict=True):
            column.append(part)
        self._count += len(rows)

    def pairs(self) -> Scored:
        """(row, other, cosine) of all that are among the nearest of their row so far, by row."""
        if not self._count:
            return NO_PAIRS
        rows, others, scores = (_joined(column) for column in self._found)
        many = _counts(rows) > self._cap
        kept = np.flatnonzero(~many)
        if many.any():
            kept = np.concatenate([kept, *self._nearest(np.flatnonzero(many), rows, others, scores)])
        kept = kept[np.argsort(rows[kept], kind="stable")]
        found = rows[kept], others[kept], scores[kept]
        self._count = 0
        self._hold(*found)
        return found

    def _nearest(self, inside: Rows, rows: Rows, others: Rows, scores: NDArray[np.float64]) -> Iterator[Rows]:
        """The members of `inside` that are among the nearest of their row, some rows at a time."""
        inside = inside[np.argsort(rows[inside], kind="stable")]
        ordered = rows[inside]
        start = 0
        while start < len(inside):
            # A row's pairs are cut together.
            end = np.searchsorted(ordered, ordered[min(start + CUT_PAIRS, len(inside)) - 1], side="right")
            yield self._cut(inside[start:end], rows, others, scores)
            start = int(end)

    def _cut(self, inside: Rows, rows: Rows, others: Rows, scores: NDArray[np.float64]) -> Rows:
        """The members of `inside` that are among the nearest of their row."""
        names, places = np.unique(others[inside], return_inverse=True)
        ranks = np.empty(len(names), np.int64)
        ranks[sorted(range(len(names)), key=[self._text(row) for row in names.tolist()].__getitem__)] = np.arange(
            len(names)
        )
        order = np.lexsort((ranks[places], -scores[inside], rows[inside]))
        ordered = rows[inside][order]
        begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        place = np.arange(len(ordered)) - np.repeat(begins, np.diff(np.append(begins, len(ordered))))
        return inside[order[place < self._cap]]


def _counts(rows: Rows) -> Rows:
    """How often each of `rows` stands in them. O(theirs), however large the numbers are."""
    if len(rows) > int(rows.max()) >> COUNTED_BITS:
        found: Rows = np.bincount(rows)[rows]
        return found
    _, places, counts = np.unique(rows, return_inverse=True, return_counts=True)
    every: Rows = counts[places]
    return every


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """All `parts` as one; leaves none of them."""
    whole: NDArray[Any] = parts[0] if len(parts) == 1 else np.concatenate(parts)
    parts.clear()
    return whole


def needed(nearest: Scored, cap: int) -> tuple[Rows, NDArray[np.float64]]:
    """Of what `Nearest.pairs` gives: each row that has `cap` pairs, and the cosine of its farthest."""
    rows, _, scores = nearest
    begins = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]])) if len(rows) else np.empty(0, np.int64)
    counts = np.diff(np.append(begins, len(rows)))
    least = np.minimum.reduceat(scores, begins) if len(begins) else NO_PAIRS[2]
    return rows[begins[counts >= cap]], least[counts >= cap]
