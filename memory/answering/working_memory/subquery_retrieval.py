"""Retrieves for a subquery: entities among the candidates, then their triples and passages, all by cosine.

**Candidates** are formulas 6 and 7 of HGMem as masks over the snapshot's phrases. Local investigation of a point with entities
V(e): the neighbours of all v in V(e), in the graph (relation, mention and synonym edges) and in the memory (vertices that share
a point with v). Global exploration: the graph's phrases without the memory's vertices. Loops cover only the memory's few
entities; all other work is matrix and array operations.

**Descriptions.** In HGMem's graph, a model wrote a description of every entity and relation during indexing. hippod takes
sentences about phrases and triples from the passages nearest to the subquery instead.

If the encoder knows no word of the subquery, retrieval is by words (`_inquire_by_words`).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memory.answering.working_memory.inquiries import Concern, FoundEntity, FoundPassage, FoundTriple, Inquiry
from memory.answering.working_memory.points import MemoryPoint, WorkingMemory
from memory.answering.working_memory.trace import DeepSettings
from memory.phrase_normalisation import normalise_phrase
from memory.retrieval.linking.phrases import link_known_entities
from memory.retrieval.linking.query_entities import known_names
from memory.retrieval.linking.triples import link_triples
from memory.retrieval.query_context import QueryContext
from memory.retrieval.settings import RetrievalSettings
from memory.retrieval.top_k import cosines, order_by_name, top_k, top_k_by_cosine
from memory.types import Encoder
from store.index.graph.edge_entries import MIN_WEIGHT
from store.index.vectors.matrix import VectorsView
from store.snapshot import Snapshot

CANDIDATE_SHARE = 8
"""If less than 1/8 of the rows are candidates, cosines are computed for the candidates only."""
DESCRIBING_PASSAGES = 40
"""Number of nearest passages with a retrieved entity that are searched for descriptions."""
MAX_FOUND_PHRASES = 400
"""Maximum number of phrases listed with a retrieved passage."""
QueryVector = NDArray[np.float32]
MAX_SENTENCE_CHARS = 240
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=[^\W\d_a-z])|(?<=[。！？])|\n+")

Mask = NDArray[np.bool_]


def rows_of(snapshot: Snapshot, phrases: Iterable[str]) -> NDArray[np.int64]:
    """Returns the rows of the phrases that the snapshot contains, ascending."""
    found = {row for phrase in phrases if (row := snapshot.phrase_row(phrase)) is not None}
    return np.array(sorted(found), np.int64)


def local_candidates(snapshot: Snapshot, memory: WorkingMemory, point: MemoryPoint) -> Mask:
    """Returns formula 6: the neighbours of the point's entities in graph and memory, a mask of shape (n_phrases,).

    An entity of the point is a candidate only if it is a neighbour of another entity of the point. The cost depends on the
    number of the entities' edges, not on the size of the graph.
    """
    mask = np.zeros(snapshot.n_phrases, np.bool_)
    own = rows_of(snapshot, point.entities)
    if len(own):
        for edges in (snapshot.relation, snapshot.mention, snapshot.synonym):
            rows, cols, weights = edges.entries(own)
            mask[cols[(weights > MIN_WEIGHT) & (rows != cols)]] = True
    mask[rows_of(snapshot, memory.neighbours(point.entities))] = True
    return mask & snapshot.phrase_alive


def global_candidates(snapshot: Snapshot, memory: WorkingMemory) -> Mask:
    """Returns formula 7: the graph's phrases that are not vertices of the memory, a mask of shape (n_phrases,)."""
    mask = snapshot.phrase_alive.copy()
    mask[rows_of(snapshot, memory.vertices)] = False
    return mask


class Descriptions:
    """Finds sentences in passages, in the order of the passages."""

    def __init__(self, passages: Sequence[FoundPassage]) -> None:
        self._sentences = [
            (passage.id, sentence.strip(), f" {normalise_phrase(sentence)} ")
            for passage in passages
            for sentence in _SENTENCE_END.split(passage.text)
            if sentence.strip()
        ]

    def of(self, *phrases: str) -> tuple[str, str]:
        """Returns the first sentence that contains all `phrases` (normalised), and its passage's id; ("", "") if there is
        none."""
        for passage, sentence, words in self._sentences:
            if all(f" {phrase} " in words for phrase in phrases):
                return sentence[:MAX_SENTENCE_CHARS], passage
        return "", ""


def inquire(
    snapshot: Snapshot, encoder: Encoder, memory: WorkingMemory, concern: Concern, settings: DeepSettings
) -> Inquiry:
    """Finds nothing if the concern's point is not in the memory."""
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
    if not vector.any():
        return _inquire_by_words(snapshot, encoder, concern, among, settings)
    rows, scores = best_rows(snapshot.phrase_vectors, vector, among, settings.entities, snapshot.phrase)
    near = passages_of(snapshot, vector, rows, max(settings.passages, DESCRIBING_PASSAGES))
    return _described(
        Inquiry(
            concern,
            candidates,
            tuple(FoundEntity(snapshot.phrase(row), score) for row, score in zip(rows, scores, strict=True)),
            _nearest_triples(snapshot, encoder.encode_triple_query(concern.subquery), rows, settings.triples),
            near[: settings.passages],
        ),
        near,
    )


def _described(inquiry: Inquiry, passages: Sequence[FoundPassage]) -> Inquiry:
    descriptions = Descriptions(passages)
    entities = []
    for entity in inquiry.entities:
        sentence, source = descriptions.of(entity.phrase)
        entities.append(replace(entity, description=sentence, source=source))
    triples = []
    for triple in inquiry.triples:
        sentence, source = descriptions.of(triple.subject, triple.object)
        triples.append(replace(triple, description=sentence, source=source))
    return replace(inquiry, entities=tuple(entities), triples=tuple(triples))


def _inquire_by_words(
    snapshot: Snapshot, encoder: Encoder, concern: Concern, candidates: Mask, settings: DeepSettings
) -> Inquiry:
    """Retrieves by words: the entities that the subquery names, then the entities of its nearest triples by BM25; the passages
    by BM25.

    The passages' scores are divided by the best score.
    """
    context = QueryContext(
        snapshot, encoder, concern.subquery, RetrievalSettings(top_triples=max(settings.entities, settings.triples))
    )
    named = link_known_entities(context, known_names(concern.subquery, snapshot))
    triples = link_triples(context)
    ends = [int(end) for triple in triples for end in snapshot.triple_ends[triple.row]]
    entities = [row for row in dict.fromkeys([*(seed.row for seed in named), *ends]) if candidates[row]][
        : settings.entities
    ]
    chosen = set(entities)
    scores = snapshot.bm25(concern.subquery)
    inside = passages_with(snapshot, entities) & (scores > 0)
    passages = top_k(scores, max(settings.passages, DESCRIBING_PASSAGES), inside, snapshot.passage_id)
    best_score = float(scores.max(initial=0.0)) or 1.0
    near = found_passages(snapshot, passages, [float(scores[row]) / best_score for row in passages])
    inquiry = Inquiry(
        concern,
        int(candidates.sum()),
        tuple(FoundEntity(snapshot.phrase(row), 1.0) for row in entities),
        tuple(
            FoundTriple(triple.subject, triple.predicate, triple.object, triple.score)
            for triple in triples
            if not chosen.isdisjoint(snapshot.triple_ends[triple.row].tolist())
        ),
        near[: settings.passages],
    )
    return _described(inquiry, near)


def _nearest_triples(
    snapshot: Snapshot, vector: QueryVector, entities: Sequence[int], k: int
) -> tuple[FoundTriple, ...]:
    """Returns the `k` living statements about each entity that are nearest to the subquery, in one list, best first."""
    if not snapshot.n_triples:
        return ()
    chosen = np.zeros(snapshot.n_phrases, np.bool_)
    chosen[entities] = True
    candidates = chosen[snapshot.triple_ends].any(axis=1) & snapshot.statement_alive
    ranked = best_rows(
        snapshot.triple_vectors,
        vector,
        candidates,
        int(candidates.sum()),
        lambda row: "\0".join(snapshot.triple(row)),
    )
    left = dict.fromkeys(entities, k)
    found = []
    for row, score in zip(*ranked, strict=True):
        ends = [end for end in {int(each) for each in snapshot.triple_ends[row]} if left.get(end)]
        for end in ends:
            left[end] -= 1
        if ends:
            found.append(FoundTriple(*snapshot.triple(row), score))
        if not any(left.values()):
            break
    return tuple(found)


def passages_with(snapshot: Snapshot, entities: Sequence[int] | NDArray[np.int64]) -> Mask:
    """Returns the living passages that contain one of the phrases, as a mask of shape (n_passages,)."""
    chosen = np.zeros(snapshot.n_phrases)
    chosen[entities] = 1.0
    return (snapshot.context.matvec(chosen) > MIN_WEIGHT) & snapshot.passage_alive


def passages_of(snapshot: Snapshot, vector: QueryVector, entities: Sequence[int], k: int) -> tuple[FoundPassage, ...]:
    """Returns the `k` passages nearest to `vector` among those that contain one of the entities."""
    rows, scores = best_passages(snapshot, vector, passages_with(snapshot, entities), k)
    return found_passages(snapshot, rows, scores)


def best_passages(snapshot: Snapshot, vector: QueryVector, among: Mask, k: int) -> tuple[list[int], list[float]]:
    """Returns the `k` passages of `among` nearest to `vector`, and their cosines; ties are ordered by id."""
    return best_rows(snapshot.passage_vectors, vector, among, k, snapshot.passage_id)


def found_passages(snapshot: Snapshot, rows: Sequence[int], scores: Iterable[float]) -> tuple[FoundPassage, ...]:
    if not len(rows):
        return ()
    of_passage, phrases, weights = snapshot.context.entries(np.asarray(rows))
    contained = (weights > MIN_WEIGHT) & snapshot.phrase_alive[phrases]
    of_passage, phrases = of_passage[contained], phrases[contained]
    found = []
    for row, score in zip(rows, scores, strict=True):
        text = snapshot.passage(row)
        inside = sorted(snapshot.phrase(int(phrase)) for phrase in phrases[of_passage == row])
        found.append(FoundPassage(text.id, text.title, text.text, score, tuple(inside[:MAX_FOUND_PHRASES])))
    return tuple(found)


def best_rows(
    vectors: VectorsView, vector: QueryVector, among: Mask, k: int, name: Callable[[int], str]
) -> tuple[list[int], list[float]]:
    """Returns the `k` rows of `among` nearest to `vector`, best first, and their cosines; ties are ordered by `name`."""
    candidates = np.flatnonzero(among)
    if k < 1 or not len(candidates):
        return [], []
    if len(candidates) * CANDIDATE_SHARE >= len(among):
        rows, exact = top_k_by_cosine(vectors, vector, vectors.scores(vector), k, among, name)
        return rows, exact.tolist()
    rows, exact = order_by_name(candidates, cosines(vectors, vector, candidates), k, name)
    return rows, exact.tolist()


def supported_points(memory: WorkingMemory, snapshot: Snapshot) -> tuple[WorkingMemory, tuple[str, ...]]:
    """Returns the memory with the points that this snapshot supports, and the ids of the dropped points.

    Removed passages are removed from the points. Entities that the graph no longer has are marked absent. A point is dropped if
    it has no passage left, or no entity in the graph.
    """
    kept = []
    for point in memory.points:
        passages = tuple(id for id in point.passages if snapshot.passage_row(id) is not None)
        absent = tuple(entity for entity in point.entities if snapshot.phrase_row(entity) is None)
        if passages and len(absent) < len(point.entities):
            kept.append(type(point)(point.id, point.description, point.entities, passages, absent))
    left = {point.id for point in kept}
    return WorkingMemory(tuple(kept), memory.made), tuple(point.id for point in memory.points if point.id not in left)
