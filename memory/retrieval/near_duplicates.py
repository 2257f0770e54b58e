"""Groups passages with nearly the same text: among a query's candidates, and among its results.

Two passages are near-duplicates if their vectors and their words nearly agree. A group consists of a leader (its passage that
matches the query best) and near-duplicates of the leader itself. A chain of small changes therefore never joins different
passages. Groups are computed among the given passages only: nothing is stored, and passages outside the scope have no
influence.

**Candidates.** Only the leader of each group takes part in linking. Otherwise, a few hundred copies of one passage would fill
the lists of nearest passages and of passages with the query's words, make words and phrases look common, and attract the walk.
Passages outside the group get the scores that they would have if the copies were not in the memory. A copy that is left out
stays in the ranking: its score is the leader's score divided by the number of passages in the group.

**Results.** Versions of one text are one result: the newest version. Otherwise, `report_v1` to `report_v7`, or one page in two
exports, would fill all places. Versions may state different values, such as prices; the result names these values.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.query_context import START_PASSAGES, WORD_CANDIDATES, QueryContext
from memory.retrieval.top_k import best_first
from store.snapshot import DocumentLookup, Snapshot
from store.text.words import split_words
from store.types import document_time

MIN_GROUP_PASSAGES = 3
"""Minimum number of passages in a group. Two versions of one text are common, and each of the two may be an answer."""
MAX_ROUNDS = 6
"""Maximum number of searches for near-duplicates per query. Each search covers the candidates that took the places of
near-duplicates which earlier searches left out."""
WIDENING_FACTOR = 4
"""Factor by which the number of candidates grows after a round in which at least half of them were near-duplicates."""
MAX_WIDENING = 16
"""Maximum product of these factors. A round then compares at most 2,400 passages, so a query leaves out at most about
10,000."""
NEAR_COSINE = 0.8
"""Minimum cosine of near-duplicates. Passages that the encoder does not know are compared by words only."""
SHARED_WORDS = 0.8
"""Minimum Jaccard index of the words of near-duplicates: number of shared words divided by number of distinct words (Broder,
"On the resemblance and containment of documents", 1997)."""
ROUNDING = 1e-5
"""Float32 cosines at most this far below `NEAR_COSINE` are computed again in float64."""
CACHED_TEXTS = 512
"""Number of passages whose words are cached; passages with a near-duplicate are compared in many queries."""

_VALUE = re.compile(r"\w*\d(?:[\w.,:/-]*\w)?%?")
"""Words with a digit: numbers, amounts, dates and codes."""
MAX_VALUES = 10
MAX_GROUPED_PASSAGES = 2_400
"""Maximum number of best passages compared with each other; later ones are separate results. The matrix of all pairs takes 46
MB."""


def near_duplicates(snapshot: Snapshot, rows: Sequence[int]) -> dict[int, int]:
    """Maps each near-duplicate of a better passage in `rows` to the leader of its group.

    `rows`: passages in order of their match with the query, best first. The result depends only on the passages and their
    order.
    """
    vectors = snapshot.passage_vectors.rows(rows)
    known = snapshot.passage_vectors.known[np.asarray(rows, np.int64)]
    later = vectors @ vectors.T >= NEAR_COSINE - ROUNDING
    if not known.all():
        later = np.where(known[:, None], later, ~known)
    later &= ~np.tri(len(rows), dtype=np.bool_)
    may_lead = np.asarray(later.any(axis=1))
    if not may_lead.any():
        return {}
    words = _Words(snapshot, rows, np.logical_or(may_lead, later.any(axis=0)))
    is_free: NDArray[np.bool_] = np.ones(len(rows), np.bool_)
    leader_of: dict[int, int] = {}
    for place in np.flatnonzero(may_lead).tolist():
        others = np.flatnonzero(later[place] & is_free)
        if is_free[place] and len(others):
            # A fixed order of summation gives the same sum for every pair, unlike a product of matrices.
            exact = np.multiply(vectors[others], vectors[place], dtype=np.float64).sum(axis=1)
            others = others[(exact >= NEAR_COSINE) | ~known[others]]
            found = others[words.shared(place, others) >= SHARED_WORDS]
            leader_of.update((rows[other], rows[place]) for other in found.tolist())
            is_free[found] = False
    return leader_of


class _Words:
    """The words of passages as numbers, so that one passage is compared with many in one operation."""

    def __init__(self, snapshot: Snapshot, rows: Sequence[int], is_compared: NDArray[np.bool_]) -> None:
        """`is_compared`: mask of the `rows` that will be compared; only these are split into words."""
        number_of: dict[str, int] = {}
        numbers: list[list[int]] = [[]] * len(rows)
        for place in np.flatnonzero(is_compared).tolist():
            words = _distinct_words(snapshot.passage(rows[place]).full)
            numbers[place] = [number_of.setdefault(word, len(number_of)) for word in words]
        self._counts = np.array([len(each) for each in numbers], np.int64)
        self._ends = np.cumsum(self._counts)
        self._numbers = np.fromiter(chain.from_iterable(numbers), np.int64, int(self._counts.sum()))
        self._places = np.repeat(np.arange(len(rows)), self._counts)
        self._is_shared: NDArray[np.bool_] = np.zeros(len(number_of), np.bool_)

    def shared(self, place: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the Jaccard indices of the words of the passage `place` and of each of `others`; 1 if neither has words."""
        ours = self._numbers[self._ends[place] - self._counts[place] : self._ends[place]]
        self._is_shared[ours] = True
        both = np.bincount(self._places[self._is_shared[self._numbers]], minlength=len(self._counts))[others]
        self._is_shared[ours] = False
        either = self._counts[place] + self._counts[others] - both
        return np.where(either, both / np.maximum(either, 1), 1.0)


@lru_cache(CACHED_TEXTS)
def _distinct_words(text: str) -> frozenset[str]:
    return frozenset(split_words(text))


def leave_out_duplicates(context: QueryContext) -> tuple[QueryContext, Mapping[int, int]]:
    """Returns a context in which only leaders take part, and by row the leader of each passage that was left out."""
    leaders: dict[int, int] = {}
    factor = 1
    for _ in range(MAX_ROUNDS):
        rows = _candidates(context, factor)
        with context.stage("duplicates"):
            found = _large_groups(leaders | near_duplicates(context.snapshot, rows))
        new = found.keys() - leaders.keys()
        if not new:
            break
        leaders = found
        context = context.leaving_out(new)
        if 2 * len(new) >= len(rows):
            factor = min(factor * WIDENING_FACTOR, MAX_WIDENING)
    return context, leaders


def _large_groups(leaders: Mapping[int, int]) -> dict[int, int]:
    """Returns, by row, the leader of each near-duplicate in a group of at least `MIN_GROUP_PASSAGES` passages.

    A leader of one round may itself be a near-duplicate of a better passage that a later round found.
    """
    last = {row: _last(leaders, row) for row in leaders}
    sizes = Counter(last.values())
    return {row: leader for row, leader in last.items() if sizes[leader] + 1 >= MIN_GROUP_PASSAGES}


def _last(leaders: Mapping[int, int], row: int) -> int:
    while row in leaders:
        row = leaders[row]
    return row


def _candidates(context: QueryContext, factor: int) -> list[int]:
    """Returns the rows of the best passages by cosine and by words, nearest first.

    `factor`: how many times as many candidates to return as the starts of a walk use.
    """
    snapshot = context.snapshot
    by_words = context.best_by_words(factor * WORD_CANDIDATES)
    if context.passages_by_words:
        return by_words
    rows = np.union1d(by_words, context.nearest_passages(factor * START_PASSAGES)).astype(np.int64)
    near = context.exact_cosines(rows)
    ordered: list[int] = rows[best_first(near, rows, len(rows), snapshot.passage_id)].tolist()
    return ordered


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of one text, by row: the newest passage, and the other passages, newest first.

    `values` contains words with a digit that only some of the versions contain, in alphabetical order, at most `MAX_VALUES`.
    """

    newest: int
    others: tuple[int, ...] = ()
    values: tuple[str, ...] = ()


def group_versions(snapshot: Snapshot, documents: DocumentLookup, rows: Sequence[int]) -> list[Versions]:
    """Groups the passages of `rows`, which are ordered best first. A group has the position of its best passage."""
    leaders = near_duplicates(snapshot, rows[:MAX_GROUPED_PASSAGES])
    groups: dict[int, list[int]] = {}
    for row in rows:
        groups.setdefault(leaders.get(row, row), []).append(row)
    return [_versions(snapshot, documents, group) for group in groups.values()]


def _versions(snapshot: Snapshot, documents: DocumentLookup, rows: Sequence[int]) -> Versions:
    if len(rows) == 1:
        return Versions(rows[0])
    newest, *others = sorted(rows, key=lambda row: (-_time(snapshot, documents, row), snapshot.passage_id(row)))
    stated = [frozenset(_VALUE.findall(snapshot.passage(row).text)) for row in rows]
    values = sorted(frozenset.union(*stated) - frozenset.intersection(*stated))
    return Versions(newest, tuple(others), tuple(values[:MAX_VALUES]))


def _time(snapshot: Snapshot, documents: DocumentLookup, row: int) -> float:
    """Returns the time of the last change of the newest document with the passage, in Unix seconds; 0 if unknown."""
    found = map(documents.document, documents.documents_with_passage(snapshot.passage_id(row)))
    return max((document_time(each) or 0.0 for each in found if each is not None), default=0.0)
