"""Runs one query on one snapshot: from its text to ranked passages."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memory.explain.explain import explain
from memory.explain.explanation import PassageExplanation
from memory.retrieval.followed_links import first_documents, limit_documents
from memory.retrieval.mode_result import Ranking
from memory.retrieval.modes import MODES
from memory.retrieval.near_duplicates import MAX_WIDENING, WIDENING_FACTOR, Versions, group_versions
from memory.retrieval.query_context import BEST_PASSAGES, EntityReader, QueryContext, RecognitionMemory
from memory.retrieval.settings import RetrievalSettings
from memory.retrieval.top_k import RANKING_DECIMALS, top_k, top_k_by_cosine
from memory.types import Encoder, Hit, Retrieved
from store.snapshot import DocumentLookup, Snapshot
from store.types import Pause, no_pause

NO_PASSAGES = "The memory, or the scope of the question, has no passage"
"""Note for an empty memory or scope; it replaces the mode's note."""


def retrieve(
    snapshot: Snapshot,
    encoder: Encoder,
    query: str,
    mode: str,
    k: int,
    settings: RetrievalSettings,
    recognition: RecognitionMemory | None = None,
    *,
    explained: bool = False,
    entity_reader: EntityReader | None = None,
    documents: DocumentLookup | None = None,
    pause: Pause = no_pause,
) -> Retrieved:
    """Returns the `k` best passages for `query` in `mode`, a key of `MODES`.

    Every mode supports every query; an empty memory has no passages to return. `explained` adds an explanation of each passage,
    at the cost of one more walk per passage. `entity_reader` is the model that extracts the query's entities, if there is one.
    `documents` are the snapshot's documents; without them, no link is followed, and the number of passages per document is not
    limited. `pause` is called after each stage. Raises `ValueError` for an unknown mode.
    """
    if mode not in MODES:
        raise ValueError(f'"{mode}" is not a retrieval mode; the modes are {", ".join(MODES)}.')
    if MODES[mode].needs_encoder:
        encoder.begin_query(query)
    context = QueryContext(
        snapshot, encoder, query, settings, recognition, k, entity_reader, documents=documents, pause=pause
    )
    ranking = MODES[mode].rank(context)
    with context.stage("rank"):
        hits = top_hits(context, ranking, k)
    best_cosine = None
    if MODES[mode].needs_encoder and not context.passages_by_words:
        with context.stage("cosines"):
            hits = _with_cosines(context, hits)
            best_cosine = context.best_cosine
    explanations: tuple[PassageExplanation, ...] = ()
    if explained:
        with context.stage("explain"):
            explanations = explain(context, ranking, [hit.row for hit in hits])
    return Retrieved(
        query,
        mode,
        snapshot.commit,
        hits,
        ranking.triples,
        ranking.seeds,
        ranking.note if snapshot.passage_alive.any() else NO_PASSAGES,
        stages_ms=context.stages_ms,
        best_cosine=best_cosine,
        explanations=explanations,
    )


def _with_cosines(context: QueryContext, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    rows = np.array([hit.row for hit in hits], np.int64)
    near = context.exact_cosines(rows).tolist()
    return tuple(replace(hit, cosine=cosine) for hit, cosine in zip(hits, near, strict=True))


def top_hits(context: QueryContext, ranking: Ranking, k: int) -> tuple[Hit, ...]:
    """Returns the `k` best living passages of a ranking; ties are ordered by passage id."""
    snapshot = context.snapshot
    candidates: NDArray[np.bool_] = snapshot.passage_alive
    if ranking.candidates is not None:
        candidates = candidates & ranking.candidates

    if ranking.is_dense:
        vectors, error = snapshot.passage_vectors, context.passage_scores.error
        rows, scores = top_k_by_cosine(
            vectors, context.vector, ranking.scores, k, candidates, snapshot.passage_id, error
        )
    else:
        documents, per_document = context.documents, ranking.document_passages
        if documents is not None and per_document is not None:
            return _merged_hits(context, documents, ranking, candidates, per_document, k)
        rows = top_k(ranking.scores, k, candidates, snapshot.passage_id, RANKING_DECIMALS)
        scores = ranking.scores[rows].astype(np.float64)
    return tuple(_hit(snapshot, Versions(row), float(score)) for row, score in zip(rows, scores, strict=True))


def _merged_hits(
    context: QueryContext,
    documents: DocumentLookup,
    ranking: Ranking,
    candidates: NDArray[np.bool_],
    per_document: int,
    k: int,
) -> tuple[Hit, ...]:
    """Returns the `k` best candidates; all versions of a passage are one hit.

    The first places contain at most `per_document` hits of one document. The result is shorter than `k` if there are no more
    passages, or if the `k` hits have more than `MAX_WIDENING` times `k` versions.
    """
    snapshot = context.snapshot
    wanted = max(k, BEST_PASSAGES)
    widest = MAX_WIDENING * wanted
    while True:
        rows = top_k(ranking.scores, wanted, candidates, snapshot.passage_id, RANKING_DECIMALS)
        groups = {group.newest: group for group in group_versions(snapshot, documents, rows)}
        if len(groups) >= k or len(rows) < wanted or wanted >= widest:
            break
        wanted = min(WIDENING_FACTOR * wanted, widest)
    shown = limit_documents(list(groups), first_documents(snapshot, documents), per_document)[:k]
    best = [max(ranking.scores[[newest, *groups[newest].others]]) for newest in shown]
    # A passage that the limit per document moves back gets a score that fits its new place.
    placed = np.minimum.accumulate(np.array(best, np.float64)).tolist()
    return tuple(_hit(snapshot, groups[newest], score) for newest, score in zip(shown, placed, strict=True))


def _hit(snapshot: Snapshot, versions: Versions, score: float) -> Hit:
    passage = snapshot.passage(versions.newest)
    older = tuple(map(snapshot.passage_id, versions.others))
    return Hit(
        versions.newest,
        passage.id,
        passage.title,
        passage.text,
        score,
        versions=older,
        conflicting_values=versions.values,
    )


def is_weak(weak_below: float | None, best_cosine: float | None) -> bool | None:
    """Whether no passage answers the query well, judged by the cosine of the nearest passage.

    Returns None if the encoder has no threshold (`memory.encoder.calibration`), or if passages were compared by words.
    """
    return None if weak_below is None or best_cosine is None else best_cosine < weak_below
