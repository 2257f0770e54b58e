"""BM25 scores of passages, from the passages that contain each word of a query.

BM25 with k1 = 1.2 and b = 0.75: Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), section 3.4, with the
idf that stays positive, ln(1 + (N - df + 0.5) / (df + 0.5)).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75
ROUNDING = 1e-9
"""Relative rounding error allowed for a sum of scores."""

LOOK_AGAIN = 0.9
"""The pruning test runs again once the remaining words' maximal contribution fell to this share of its value at the last test.
"""

Entries = tuple[NDArray[Any], NDArray[Any]]
"""Rows in ascending order, and the frequency of a term or word in each."""


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query: its inverse document frequency, its frequency in the query, and the passages that contain it.

    The passages come in `lists` that share no passage.
    """

    idf: float
    repeats: int
    lists: Sequence[Entries]

    @property
    def max_score(self) -> float:
        """Upper bound of what the word adds to a passage's score."""
        return self.repeats * self.idf * (K1 + 1)


def best_by_words(
    words: Sequence[QueryWord], lengths: NDArray[np.int32], mean: float, best: int | None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Returns the rows with the `best` scores and all that tie with the last of them, ascending, and their scores.

    A passage without any of the words added so far scores at most what the remaining words can add. Once this bound is below
    the `best`-th score, only passages found so far count, and the remaining words, the commonest, are looked up in these
    passages alone (Turtle and Flood, "Query evaluation: strategies and optimizations", 1995: MaxScore).
    """
    words = [word for word in words if word.lists]
    to_come = np.cumsum([word.max_score for word in reversed(words)])[::-1]
    looked_at = to_come[0] / 2 if len(words) else 0.0
    sums = np.zeros(len(lengths))  # untouched pages take no memory
    reached: list[NDArray[Any]] = []
    for at, (word, others) in enumerate(zip(words, to_come.tolist(), strict=True)):
        # The test costs as much as adding a word, so a long query runs it only now and then.
        if best is not None and others <= looked_at and sum(map(len, reached)) > best:
            looked_at = LOOK_AGAIN * others
            seen = np.concatenate(reached)
            least = _kth_best(sums[seen], best) * (1 - ROUNDING)
            if others < least:
                return best_of(words[at:], np.sort(seen[sums[seen] + others >= least]), sums, lengths, mean, best)
        for rows, counts in word.lists:
            reached.append(rows[sums[rows] == 0])
            sums[rows] += added_scores(word, counts, lengths[rows], mean)
    found = np.sort(np.concatenate(reached)) if reached else np.empty(0, np.int64)
    return best_of((), found, sums, lengths, mean, best)


def best_of(
    words: Sequence[QueryWord],
    rows: NDArray[Any],
    sums: NDArray[np.float64],
    lengths: NDArray[np.int32],
    mean: float,
    best: int | None,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Returns the best of `rows` after adding the contributions of `words` to `sums`."""
    found = sums[rows]
    for word in words:
        counts = counts_in(word, rows)
        has = counts > 0
        found[has] += added_scores(word, counts[has], lengths[rows[has]], mean)
    scores = found.astype(np.float32)
    if best is not None and best < len(rows):
        enough = scores >= _kth_best(scores, best)
        rows, scores = rows[enough], scores[enough]
    return rows.astype(np.int64), scores


def added_scores(word: QueryWord, counts: NDArray[Any], lengths: NDArray[np.int32], mean: float) -> NDArray[np.float64]:
    norms = K1 * (1 - B + B * lengths / mean)
    added: NDArray[np.float64] = word.repeats * word.idf * counts * (K1 + 1) / (counts + norms)
    return added


def counts_in(word: QueryWord, rows: NDArray[Any]) -> NDArray[np.int32]:
    """Returns the frequency of the word in each of `rows`."""
    found, left = np.zeros(len(rows), np.int32), np.arange(len(rows))
    for held, counts in word.lists:
        sought = rows[left]
        places = np.minimum(np.searchsorted(held, sought), len(held) - 1)
        here = held[places] == sought
        found[left[here]] = counts[places[here]]
        left = left[~here]
    return found


def most_of(lists: Sequence[Entries]) -> Entries:
    """Merges several lists: each row once, with its largest count."""
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
