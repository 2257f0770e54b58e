"""Linking to triples: those nearest to the query, and what recognition memory keeps of them."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.query_context import QueryContext
from memory.retrieval.row_scores import RowScores, min_max, row_scores
from memory.retrieval.score_scaling import MinMax, Scale
from memory.retrieval.top_k import top_k, top_k_by_cosine
from memory.types import LinkedTriple

BM25_PASSAGES = 50
"""Compared by words, only the triples of this many passages (the best by BM25) count: a triple's words are its passage's."""


def triple_scores(context: QueryContext) -> RowScores:
    """Cosine of every triple with the query, shape (n_triples,); BM25 where they are compared by words."""
    if context.triples_by_words:
        with context.stage("triples"):
            return RowScores(_triple_bm25(context))
    vector, snapshot = context.triple_vector, context.snapshot
    with context.stage("triples"):
        return row_scores(snapshot.triple_vectors, vector, snapshot.living_triples, context.settings.exact)


def _triple_bm25(context: QueryContext) -> NDArray[np.float32]:
    """BM25 of the triples of the best `BM25_PASSAGES` passages, 0 for all other triples; shape (n_triples,)."""
    snapshot = context.snapshot
    out = np.zeros(snapshot.n_triples, np.float32)
    scores = snapshot.bm25(context.query)
    passages = top_k(scores, BM25_PASSAGES, snapshot.passage_alive & (scores > 0), lambda row: snapshot.passage(row).id)
    if passages:
        rows = np.unique(snapshot.incidence.entries(np.array(passages))[1])
        out[rows] = snapshot.bm25_of(context.query, [" ".join(snapshot.triple(int(row))) for row in rows])
    return out


def link_triples(context: QueryContext) -> list[LinkedTriple]:
    """The `top_triples` triples nearest to the query, filtered. Scores are min-max scaled over all living triples."""
    scores = triple_scores(context)
    if context.triples_by_words:
        scale = MinMax.of(scores.values, context.triples_compared)
    else:
        with context.stage("triples"):
            vectors = context.snapshot.triple_vectors
            scale = min_max(vectors, context.triple_vector, scores, context.triples_compared)
    return filter_triples(context, nearest_triples(context, scores, scale))


def nearest_triples(context: QueryContext, scores: RowScores, scale: Scale) -> list[LinkedTriple]:
    """The `top_triples` living triples nearest to the query, with scaled scores. Ties are ordered by text."""
    snapshot, k = context.snapshot, context.settings.top_triples

    def name(row: int) -> str:
        return "\0".join(snapshot.triple(row))

    exact: NDArray[np.floating]
    if context.triples_by_words:
        rows = top_k(scores.values, k, context.triples_compared & (scores.values > 0), name)
        exact = scores.values[rows]
    else:
        with context.stage("triples"):
            rows, exact = top_k_by_cosine(
                snapshot.triple_vectors,
                context.triple_vector,
                scores.values,
                k,
                context.triples_compared,
                name,
                scores.error,
            )
    return [
        LinkedTriple(row, *snapshot.triple(row), score=float(score), kept=True)
        for row, score in zip(rows, scale(exact), strict=True)
    ]


def filter_triples(context: QueryContext, triples: list[LinkedTriple]) -> list[LinkedTriple]:
    """The same triples; `kept` is false for those that recognition memory drops."""
    if context.recognition is None or not triples:
        return triples
    with context.stage("recognition"):
        kept = set(context.recognition.keep(context.query, [(t.subject, t.predicate, t.object) for t in triples]))
    return [replace(triple, kept=at in kept) for at, triple in enumerate(triples)]
