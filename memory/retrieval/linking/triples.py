"""Links a query to its nearest triples; recognition memory then filters them."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.linking.compared_rows import ComparedRows
from memory.retrieval.query_context import QueryContext
from memory.retrieval.score_scaling import MinMax, Scale, StandardScore
from memory.retrieval.top_k import cosines, top_k
from memory.retrieval.unlocked_property import unlocked_property
from memory.types import LinkedTriple

BM25_PASSAGES = 50
"""Number of best passages by BM25 whose triples are compared by words. Other triples need no comparison: a triple's words also
occur in its passage."""

MENTION_FACTOR = 0.9
"""Factor of the scores of mentions, because a mention says less than a statement of equal similarity. On 2Wiki, recall@5 is
0.961 with a factor of 0.9 or 1, 0.951 with 0.85, and 0.931 with the mean cosine of the two ends. With 1, mentions displace
statements that answer the question."""


class ComparedTriples:
    """Compares all statements with the query: by cosine, or by BM25 if the encoder does not know the query or knows no
    statement."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context

    @unlocked_property
    def _rows(self) -> ComparedRows:
        context, snapshot = self._context, self._context.snapshot
        exact = context.settings.exact
        return ComparedRows(
            snapshot.triple_vectors, context.triple_vector, context.triple_mask, snapshot.living_statements, exact
        )

    @unlocked_property
    def _by_words(self) -> NDArray[np.float32]:
        return _triple_bm25(self._context)

    def nearest(self) -> tuple[list[int], NDArray[np.floating]]:
        """Returns the `top_triples` living statements nearest to the query, best first, and their scores.

        Ties are ordered by text.
        """
        snapshot, k = self._context.snapshot, self._context.settings.top_triples

        def name(row: int) -> str:
            return "\0".join(snapshot.triple(row))

        with self._context.stage("triples"):
            if not self._context.triples_by_words:
                return self._rows.nearest(k, name)
            scores = self._by_words
            rows = top_k(scores, k, self._context.triple_mask & (scores > 0), name)
            return rows, scores[rows]

    def of(self, triples: NDArray[np.integer[Any]]) -> NDArray[np.floating]:
        """Returns the scores of the statements and mention edges in rows `triples`."""
        context, snapshot = self._context, self._context.snapshot
        if context.triples_by_words:
            by_words: NDArray[np.floating] = self._by_words[triples]
            return by_words
        scores = cosines(snapshot.triple_vectors, context.triple_vector, triples)
        mentions = ~snapshot.is_statement[triples]
        if mentions.any():
            scores[mentions] = mention_scores(context, triples[mentions])
        return scores

    def min_max(self) -> MinMax:
        with self._context.stage("triples"):
            if self._context.triples_by_words:
                return MinMax.of(self._by_words, self._context.triple_mask)
            return self._rows.min_max()

    def standard_score(self) -> StandardScore:
        """Returns the scale of all scores. By words, it is the scale of the triples that share a word with the query."""
        with self._context.stage("triples"):
            if self._context.triples_by_words:
                return StandardScore.of(self._by_words, self._context.triple_mask & (self._by_words > 0))
            return self._rows.standard_score()


def mention_scores(context: QueryContext, mentions: NDArray[np.integer[Any]]) -> NDArray[np.floating]:
    """Returns the scores of the mention edges `mentions` (rows), on the scale of the cosines of statements.

    A score is `MENTION_FACTOR` times the larger cosine of the edge's two phrases.
    """
    snapshot = context.snapshot
    ends, places = np.unique(snapshot.triple_ends[mentions], return_inverse=True)
    found = cosines(snapshot.phrase_vectors, context.vector, ends)
    larger: NDArray[np.floating] = MENTION_FACTOR * found[places].reshape(-1, 2).max(axis=1)
    return larger


def _triple_bm25(context: QueryContext) -> NDArray[np.float32]:
    """Returns BM25 scores of the triples of the best `BM25_PASSAGES` passages; 0 for all other triples; shape (n_triples,)."""
    snapshot = context.snapshot
    out = np.zeros(snapshot.n_triples, np.float32)
    scores = snapshot.bm25(context.query)
    passages = top_k(scores, BM25_PASSAGES, context.taking_part & (scores > 0), snapshot.passage_id)
    if passages:
        rows = np.unique(snapshot.incidence.entries(np.array(passages))[1])
        out[rows] = snapshot.bm25_of(context.query, [" ".join(snapshot.triple(int(row))) for row in rows])
    return out


def link_triples(context: QueryContext) -> list[LinkedTriple]:
    """Returns the `top_triples` triples nearest to the query, filtered by recognition memory. Scores are min-max-scaled over
    all living triples."""
    compared = ComparedTriples(context)
    return filter_triples(context, nearest_triples(context, compared, compared.min_max()))


def nearest_triples(context: QueryContext, compared: ComparedTriples, scale: Scale) -> list[LinkedTriple]:
    """Returns the `top_triples` living triples nearest to the query, with scaled scores."""
    rows, scores = compared.nearest()
    return [
        LinkedTriple(row, *context.snapshot.triple(row), score=float(score), kept=True)
        for row, score in zip(rows, scale(scores), strict=True)
    ]


def filter_triples(context: QueryContext, triples: list[LinkedTriple]) -> list[LinkedTriple]:
    """Returns all triples; `kept` is false for a triple that recognition memory drops."""
    if context.recognition is None or not triples:
        return triples
    with context.stage("recognition"):
        kept = set(context.recognition.keep(context.query, [(t.subject, t.predicate, t.object) for t in triples]))
    return [replace(triple, kept=at in kept) for at, triple in enumerate(triples)]
