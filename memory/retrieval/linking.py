"""Linking: from a query to the nearest triples, the nearest phrases, and the phrases that it names."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memory.phrase_normalisation import normalise_phrase
from memory.retrieval.query_context import QueryContext
from memory.retrieval.query_entities import known_names, query_entities
from memory.retrieval.score_scaling import MinMax, Scale
from memory.retrieval.top_k import top_k, top_k_by_cosine
from memory.types import LinkedTriple, Seed
from store.snapshot import Snapshot

BM25_PASSAGES = 50
"""Compared by words, only the triples of this many passages (the best by BM25) count: a triple's words are its passage's."""


def triple_scores(context: QueryContext) -> NDArray[np.float32]:
    """Cosine of every triple with the query, shape (n_triples,); BM25 where they are compared by words."""
    vector = context.vector
    with context.stage("triples"):
        return _triple_bm25(context) if context.triples_by_words else context.snapshot.triple_vectors.scores(vector)


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
    scale = MinMax.of(scores := triple_scores(context), context.triples_compared)
    return filter_triples(context, nearest_triples(context, scores, scale))


def nearest_triples(context: QueryContext, scores: NDArray[np.float32], scale: Scale) -> list[LinkedTriple]:
    """The `top_triples` living triples nearest to the query, with scaled scores. Ties are ordered by text."""
    snapshot, k = context.snapshot, context.settings.top_triples

    def name(row: int) -> str:
        return "\0".join(snapshot.triple(row))

    exact: NDArray[np.floating]
    if context.triples_by_words:
        rows = top_k(scores, k, context.triples_compared & (scores > 0), name)
        exact = scores[rows]
    else:
        rows, exact = top_k_by_cosine(
            snapshot.triple_vectors, context.vector, scores, k, context.triples_compared, name
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


def link_phrases(context: QueryContext) -> list[Seed]:
    """The `seed_phrases` phrases nearest to the query, weighted by min-max-scaled cosine / `passage_count`."""
    snapshot = context.snapshot
    vector = context.vector
    alive = snapshot.phrase_alive & snapshot.phrase_vectors.known
    if not context.is_known or not alive.any():
        return link_known_entities(snapshot, known_names(context.query, snapshot))
    with context.stage("phrases"):
        scores = snapshot.phrase_vectors.scores(vector)
        rows, cosines = top_k_by_cosine(
            snapshot.phrase_vectors, vector, scores, context.settings.seed_phrases, alive, snapshot.phrase
        )
        scaled = MinMax.of(scores, alive)(cosines)
    return heaviest_first(
        [
            Seed(row, snapshot.phrase(row), float(score) / passage_count(snapshot, row))
            for row, score in zip(rows, scaled, strict=True)
        ]
    )


def link_query_entities(context: QueryContext) -> list[Seed]:
    """The phrase nearest to each name in the query, weighted by 1 / `passage_count` (HippoRAG, section 2.2)."""
    snapshot = context.snapshot
    with context.stage("names"):
        names = query_entities(context.query, snapshot)
    if not snapshot.living_phrases:
        return []
    rows = {_nearest_phrase(context, name) for name in names}
    return heaviest_first(
        [Seed(row, snapshot.phrase(row), 1.0 / passage_count(snapshot, row)) for row in rows if row is not None]
    )


def link_known_entities(snapshot: Snapshot, names: Sequence[str]) -> list[Seed]:
    """Seeds for those names that are phrases of the memory, weighted by 1 / `passage_count`."""
    rows = {snapshot.phrase_row(normalise_phrase(name)) for name in names}
    return heaviest_first(
        [Seed(row, snapshot.phrase(row), 1.0 / passage_count(snapshot, row)) for row in rows if row is not None]
    )


def _nearest_phrase(context: QueryContext, name: str) -> int | None:
    """The row of the phrase nearest to `name`. None if it is no phrase of the memory and unknown to the encoder."""
    snapshot = context.snapshot
    phrase = normalise_phrase(name)
    # A phrase is nearest to itself: no need to encode it.
    row = snapshot.phrase_row(phrase)
    if row is not None:
        return row
    with context.stage("encode"):
        vector = context.encoder.encode_query(phrase)
    with context.stage("phrases"):
        vectors = snapshot.phrase_vectors
        candidates = snapshot.phrase_alive & vectors.known
        rows = (
            top_k_by_cosine(vectors, vector, vectors.scores(vector), 1, candidates, snapshot.phrase)[0]
            if vector.any()
            else []
        )
        return rows[0] if rows else None


def heaviest_first(seeds: Sequence[Seed]) -> list[Seed]:
    """The seeds in order of weight; equal weights by phrase."""
    return sorted(seeds, key=lambda seed: (-seed.weight, seed.phrase))


def passage_count(snapshot: Snapshot, phrase: int) -> int:
    """How many living passages contain the phrase, at least 1: the inverse of its node specificity."""
    return max(int(snapshot.phrase_passages[phrase]), 1)
