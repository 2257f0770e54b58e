"""Groups near-duplicates among the candidates of a query; only the leader of each group takes part in linking.

Otherwise a few hundred copies of one passage take all places among the nearest passages and among those with the query's words,
make words and phrases look common, and draw the walk to themselves. The other passages score as if the copies were not in the
memory. A copy that is left out stays in the ranking: its
score is that of the leader divided by the number of passages in the group.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from memory.retrieval.near_duplicates import near_duplicates
from memory.retrieval.query_context import START_PASSAGES, WORD_CANDIDATES, QueryContext
from memory.retrieval.top_k import best_first, cosines

MIN_GROUP_PASSAGES = 3
"""Minimum number of passages in a group. Two versions of one text are common, and each may be an answer."""
MAX_ROUNDS = 6
"""Maximum number of searches for near-duplicates per query. Each searches the candidates that replace those left out before."""
WIDENING_FACTOR = 4
"""Factor by which the number of candidates grows after a round in which at least half of them were near-duplicates."""
MAX_WIDENING = 16
"""Maximum product of these factors. A round then compares at most 2,400 passages, so a query leaves out about 10,000 at most.
"""


def leave_out_duplicates(context: QueryContext) -> tuple[QueryContext, Mapping[int, int]]:
    """Returns the context in which only leaders take part, and the leader of each passage that was left out, by row."""
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
    """Returns the leader of each near-duplicate whose group has at least `MIN_GROUP_PASSAGES` passages.

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

    `factor` multiplies the number of candidates that the starts of a walk use.
    """
    snapshot = context.snapshot
    by_words = context.best_by_words(factor * WORD_CANDIDATES)
    if context.passages_by_words:
        return by_words
    rows = np.union1d(by_words, context.nearest_passages(factor * START_PASSAGES)).astype(np.int64)
    near = cosines(snapshot.passage_vectors, context.vector, rows)
    ordered: list[int] = rows[best_first(near, rows, len(rows), snapshot.passage_id)].tolist()
    return ordered
