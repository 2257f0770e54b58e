"""Computes the BM25 scores of passages from the passages that contain each word of a query.

BM25 with k1 = 1.2 and b = 0.75 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009, section 3.4), and with
an idf that is always positive: ln(1 + (N - df + 0.5) / (df + 0.5)).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75
ROUNDING = 1e-9
"""Allowed relative rounding error of a sum of scores."""

RETEST_SHARE = 0.9
"""The pruning test is repeated once the maximum contribution of the remaining words has fallen to this share of its value at
the previous test."""

JOINED_ENTRIES = 8_192
"""Maximum number of entries (pairs of a word and a passage) that are added in one step. With so few entries per word, the
overhead of a step would take longer than the additions."""

TermEntries = tuple[NDArray[Any], NDArray[Any]]
"""Rows in ascending order, and the frequency of a term or word in each row."""


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query: its inverse document frequency (`idf`), its frequency in the query (`repeats`), and the passages that
    contain it (`lists`).

    No passage is in more than one of the `lists`.
    """

    idf: float
    repeats: int
    lists: Sequence[TermEntries]

    @property
    def weight(self) -> float:
        return self.repeats * self.idf

    @property
    def max_score(self) -> float:
        """Upper bound of the word's contribution to a passage's score."""
        return self.weight * (K1 + 1)


@dataclass(frozen=True, slots=True)
class WordScores:
    """BM25 `scores` of the passages `rows` (ascending); `squares` is the sum of idf² over the words that each contains."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    squares: NDArray[np.float64]


def best_by_words(
    words: Sequence[QueryWord],
    lengths: NDArray[np.int32],
    mean: float,
    best: int | None,
    also: NDArray[Any],
) -> WordScores:
    """Returns the passages with the `best` scores, including ties, and the rows `also`.

    The rarest words, which few passages contain, are added in one step, the other words one by one. A passage without any of
    the words added so far can score at most the sum of the remaining words' contributions. Once this bound is below the
    `best`-th score, only the passages found so far matter. The remaining words, which are the most common, are then looked up
    only in these passages (MaxScore: Turtle and Flood, "Query evaluation: strategies and optimizations", 1995).
    """
    words = [word for word in words if word.lists]
    to_come = np.cumsum([word.max_score for word in reversed(words)])[::-1].tolist()
    tested_at = to_come[0] / 2 if words else 0.0
    # Pages that are never written take no memory.
    sums, squares, reached = np.zeros(len(lengths)), np.zeros(len(lengths)), np.zeros(len(lengths), np.bool_)
    joined = _add_joined(words, lengths, mean, sums, squares, reached)
    left: Sequence[QueryWord] = ()
    for at in range(joined, len(words)):
        # The test costs as much as adding a word, so a long query performs it only occasionally.
        if best is not None and to_come[at] <= tested_at and np.count_nonzero(reached) > best:
            tested_at = RETEST_SHARE * to_come[at]
            seen = np.flatnonzero(reached)
            kth_best = _kth_best(sums[seen], best) * (1 - ROUNDING)
            if to_come[at] < kth_best:
                reached[seen] = sums[seen] + to_come[at] >= kth_best
                left = words[at:]
                break
        for rows, counts in words[at].lists:
            reached[rows] = True
            sums[rows] += added_scores(words[at].weight, counts, lengths[rows], mean)
    reached[also] = True
    found = np.flatnonzero(reached)
    totals = sums[found]
    for word in left:
        counts = counts_in(word, found)
        has = counts > 0
        totals[has] += added_scores(word.weight, counts[has], lengths[found[has]], mean)
    scores = totals.astype(np.float32)
    if best is not None and best < len(found):
        enough = scores >= _kth_best(scores, best)
        enough[np.searchsorted(found, also)] = True
        found, scores = found[enough], scores[enough]
    covered = squares[found]
    for word in words[joined:]:
        covered += (counts_in(word, found) > 0) * word.idf**2
    return WordScores(found, scores, covered)


def _add_joined(
    words: Sequence[QueryWord],
    lengths: NDArray[np.int32],
    mean: float,
    sums: NDArray[np.float64],
    squares: NDArray[np.float64],
    reached: NDArray[np.bool_],
) -> int:
    """Adds the first words of `words` to the arrays in one step; returns the number of words added."""
    sizes = [sum(len(rows) for rows, _ in word.lists) for word in words]
    joined = int(np.searchsorted(np.cumsum(sizes), JOINED_ENTRIES, "right"))
    lists = [entries for word in words[:joined] for entries in word.lists]
    if lists:
        rows, counts = (np.concatenate(each) for each in zip(*lists, strict=True))
        factors = np.array([(word.weight, word.idf**2) for word in words[:joined]])
        weights, idf_squares = factors.repeat(sizes[:joined], axis=0).T
        reached[rows] = True
        places = rows.astype(np.intp)  # the index type, without which `add.at` is slow
        np.add.at(sums, places, added_scores(weights, counts, lengths[rows], mean))
        np.add.at(squares, places, idf_squares)
    return joined


def added_scores(
    weight: float | NDArray[np.float64], counts: NDArray[Any], lengths: NDArray[np.int32], mean: float
) -> NDArray[np.float64]:
    """Returns the contributions of words to the scores of passages, given the words' `counts` in these passages and the
    passages' `lengths`."""
    norms = K1 * (1 - B + B * lengths / mean)
    added: NDArray[np.float64] = weight * counts * (K1 + 1) / (counts + norms)
    return added


def counts_in(word: QueryWord, rows: NDArray[Any]) -> NDArray[np.int32]:
    """Returns the frequency of the word in each row of `rows`."""
    found, left = np.zeros(len(rows), np.int32), np.arange(len(rows))
    for held, counts in word.lists:
        sought = rows[left]
        places = np.minimum(np.searchsorted(held, sought), len(held) - 1)
        here = held[places] == sought
        found[left[here]] = counts[places[here]]
        left = left[~here]
    return found


def most_of(lists: Sequence[TermEntries]) -> TermEntries:
    """Merges several lists into one that has each row once, with its largest count."""
    rows, counts = (np.concatenate(parts) for parts in zip(*lists, strict=True))
    order = np.argsort(rows, kind="stable")
    rows, counts = rows[order], counts[order]
    starts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    return rows[starts], np.maximum.reduceat(counts, starts)


def _kth_best(scores: NDArray[Any], k: int) -> float:
    return float(np.partition(scores, len(scores) - k)[len(scores) - k])


def idf_of(living: int, holding: int) -> float:
    """Returns the inverse document frequency of a term that `holding` of `living` passages contain."""
    return float(np.log1p((living - holding + 0.5) / (holding + 0.5)))
