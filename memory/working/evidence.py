"""What is retrieved for a subquery: entities among the candidates, then their triples and passages, all by cosine."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from memory.ranking import SAME, cosines, nearest
from memory.types import Encoder
from memory.working.candidates import Mask, global_candidates, local_candidates, rows_of
from memory.working.types import (
    Concern,
    DeepSettings,
    FoundEntity,
    FoundPassage,
    FoundTriple,
    Inquiry,
    Memory,
)
from store.growing import VectorsView
from store.snapshot import Snapshot
from store.walk import LEAST

FEW = 8
"""Up to one row in so many, cosines are worked out for the candidates alone rather than for all rows."""
PHRASES_OF_A_PASSAGE = 400
"""Most that are kept with a retrieved passage."""

Vector = NDArray[np.float32]


def inquire(snapshot: Snapshot, encoder: Encoder, memory: Memory, concern: Concern, settings: DeepSettings) -> Inquiry:
    """What the graph holds for the concern's subquery. A point that the memory lacks has no neighbourhood: nothing."""
    if concern.point is None:
        among = global_candidates(snapshot, memory)
    else:
        point = memory.point(concern.point)
        if point is None:
            return Inquiry(concern, 0)
        among = local_candidates(snapshot, memory, point)
    candidates = int(among.sum())
    if not candidates:
        return Inquiry(concern, 0)
    vector = encoder.encode_query(concern.subquery)
    rows, scores = best_rows(snapshot.phrase_vectors, vector, among, settings.entities, snapshot.phrase)
    return Inquiry(
        concern,
        candidates,
        tuple(FoundEntity(snapshot.phrase(row), score) for row, score in zip(rows, scores, strict=True)),
        _triples(snapshot, vector, rows, settings.triples),
        passages_of(snapshot, vector, rows, settings.passages),
    )


def _triples(snapshot: Snapshot, vector: Vector, entities: Sequence[int], k: int) -> tuple[FoundTriple, ...]:
    """The `k` living triples nearest to the subquery whose subject or object is one of the entities."""
    if not snapshot.n_triples:
        return ()
    chosen = np.zeros(snapshot.n_phrases, np.bool_)
    chosen[entities] = True
    among = chosen[snapshot.triple_ends].any(axis=1) & snapshot.triple_alive
    rows, scores = best_rows(snapshot.triple_vectors, vector, among, k, lambda row: "\0".join(snapshot.triple(row)))
    return tuple(FoundTriple(*snapshot.triple(row), score) for row, score in zip(rows, scores, strict=True))


def holding(snapshot: Snapshot, entities: Sequence[int] | NDArray[np.int64]) -> Mask:
    """The living passages in which one of the phrases stands, shape (n_passages,)."""
    chosen = np.zeros(snapshot.n_phrases)
    chosen[entities] = 1.0
    return (snapshot.context.matvec(chosen) > LEAST) & snapshot.passage_alive


def passages_of(snapshot: Snapshot, vector: Vector, entities: Sequence[int], k: int) -> tuple[FoundPassage, ...]:
    """The `k` passages nearest to `vector` among those that hold one of the entities."""
    rows, scores = best_passages(snapshot, vector, holding(snapshot, entities), k)
    return found_passages(snapshot, rows, scores)


def best_passages(snapshot: Snapshot, vector: Vector, among: Mask, k: int) -> tuple[list[int], list[float]]:
    """The `k` passages of `among` nearest to `vector`; equal ones by id."""
    return best_rows(snapshot.passage_vectors, vector, among, k, lambda row: snapshot.passage(row).id)


def found_passages(snapshot: Snapshot, rows: Sequence[int], scores: Iterable[float]) -> tuple[FoundPassage, ...]:
    """Passages by row, with the phrases that stand in them."""
    if not len(rows):
        return ()
    of_passage, phrases, weights = snapshot.context.entries(np.asarray(rows))
    stands = (weights > LEAST) & snapshot.phrase_alive[phrases]
    of_passage, phrases = of_passage[stands], phrases[stands]
    found = []
    for row, score in zip(rows, scores, strict=True):
        text = snapshot.passage(row)
        inside = sorted(snapshot.phrase(int(phrase)) for phrase in phrases[of_passage == row])
        found.append(FoundPassage(text.id, text.title, text.text, score, tuple(inside[:PHRASES_OF_A_PASSAGE])))
    return tuple(found)


def best_rows(
    vectors: VectorsView, vector: Vector, among: Mask, k: int, name: Callable[[int], str]
) -> tuple[list[int], list[float]]:
    """The `k` rows of `among` whose vectors are nearest to `vector`, best first, with their cosines; ties by `name`."""
    candidates = np.flatnonzero(among)
    if k < 1 or not len(candidates):
        return [], []
    if len(candidates) * FEW >= len(among):
        rows, exact = nearest(vectors, vector, vectors.scores(vector), k, among, name)
        return rows, [float(score) for score in exact]
    scores = cosines(vectors, vector, candidates)
    if k < len(candidates):
        least = np.partition(scores, len(candidates) - k)[len(candidates) - k]
        kept = scores >= least - SAME
        candidates, scores = candidates[kept], scores[kept]
    order = sorted(range(len(candidates)), key=lambda at: (-scores[at], name(int(candidates[at]))))[:k]
    return [int(candidates[at]) for at in order], [float(scores[at]) for at in order]


def vouched(memory: Memory, snapshot: Snapshot) -> tuple[Memory, tuple[str, ...]]:
    """Earlier points as this snapshot vouches for them, and ids of those that it no longer does.

    Passages that are gone are left out, entities that the graph lost (or has gained since) are marked so; a point without a
    passage or without an entity of the graph goes.
    """
    kept = []
    for point in memory.points:
        passages = tuple(id for id in point.passages if snapshot.passage_row(id) is not None)
        absent = tuple(entity for entity in point.entities if snapshot.phrase_row(entity) is None)
        if passages and len(absent) < len(point.entities):
            kept.append(type(point)(point.id, point.description, point.entities, passages, absent))
    left = {point.id for point in kept}
    return Memory(tuple(kept), memory.made), tuple(point.id for point in memory.points if point.id not in left)


__all__ = ["best_passages", "best_rows", "found_passages", "holding", "inquire", "passages_of", "rows_of", "vouched"]
