"""From a query to what the memory holds: the nearest triples, the nearest phrases, the names in it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memory.asking import Asked
from memory.phrases import normalise_phrase
from memory.ranking import MinMax, Scale, nearest
from memory.types import LinkedTriple, Seed
from store.snapshot import Snapshot


def triple_scores(asked: Asked) -> NDArray[np.float32]:
    """Cosine of every triple with the query, shape (n_triples,)."""
    vector = asked.vector
    with asked.stage("triples"):
        return asked.snapshot.triple_vectors.scores(vector)


def link_triples(asked: Asked) -> list[LinkedTriple]:
    """The `top_triples` nearest to the query, with cosines min-max scaled over all living triples; recognised."""
    scale = MinMax.of(scores := triple_scores(asked), asked.snapshot.triple_alive)
    return recognised(asked, nearest_triples(asked, scores, scale))


def nearest_triples(asked: Asked, scores: NDArray[np.float32], scale: Scale) -> list[LinkedTriple]:
    """The `top_triples` living triples nearest to the query, with their cosines scaled; equal ones by their text."""
    snapshot = asked.snapshot
    rows, cosines = nearest(
        snapshot.triple_vectors,
        asked.vector,
        scores,
        asked.settings.top_triples,
        snapshot.triple_alive,
        lambda row: "\0".join(snapshot.triple(row)),
    )
    return [
        LinkedTriple(row, *snapshot.triple(row), score=float(score), kept=True)
        for row, score in zip(rows, scale(cosines), strict=True)
    ]


def recognised(asked: Asked, triples: list[LinkedTriple]) -> list[LinkedTriple]:
    """The triples, those marked as dropped that recognition memory does not keep."""
    if asked.recognition is None or not triples:
        return triples
    with asked.stage("recognition"):
        kept = set(asked.recognition.keep(asked.query, [(t.subject, t.predicate, t.object) for t in triples]))
    return [replace(triple, kept=at in kept) for at, triple in enumerate(triples)]


def link_phrases(asked: Asked) -> list[Seed]:
    """The `seed_phrases` phrases nearest to the query, weighted by min-max-scaled cosine / number of holding passages."""
    snapshot = asked.snapshot
    vector = asked.vector
    alive = snapshot.phrase_alive
    with asked.stage("phrases"):
        scores = snapshot.phrase_vectors.scores(vector)
        rows, cosines = nearest(
            snapshot.phrase_vectors, vector, scores, asked.settings.seed_phrases, alive, snapshot.phrase
        )
        scaled = MinMax.of(scores, alive)(cosines)
    return heaviest(
        [
            Seed(row, snapshot.phrase(row), float(score) / holders(snapshot, row))
            for row, score in zip(rows, scaled, strict=True)
        ]
    )


def link_entities(asked: Asked, names: Sequence[str]) -> list[Seed]:
    """The phrase nearest to each name, weighted by 1 / number of holding passages (HippoRAG, section 2.2)."""
    snapshot = asked.snapshot
    if not snapshot.living_phrases:
        return []
    rows = {_nearest(asked, name) for name in names}
    return heaviest([Seed(row, snapshot.phrase(row), 1.0 / holders(snapshot, row)) for row in rows])


def known_entities(snapshot: Snapshot, names: Sequence[str]) -> list[Seed]:
    """The names that are phrases of the memory themselves, weighted by 1 / number of holding passages."""
    rows = {snapshot.phrase_row(normalise_phrase(name)) for name in names}
    return heaviest([Seed(row, snapshot.phrase(row), 1.0 / holders(snapshot, row)) for row in rows if row is not None])


def _nearest(asked: Asked, name: str) -> int:
    snapshot = asked.snapshot
    phrase = normalise_phrase(name)
    # A phrase is nearest to itself: no need to encode it.
    row = snapshot.phrase_row(phrase)
    if row is not None:
        return row
    with asked.stage("encode"):
        vector = asked.encoder.encode_query(phrase)
    with asked.stage("phrases"):
        vectors = snapshot.phrase_vectors
        return nearest(vectors, vector, vectors.scores(vector), 1, snapshot.phrase_alive, snapshot.phrase)[0][0]


def heaviest(seeds: Sequence[Seed]) -> list[Seed]:
    """The seeds, heaviest first; equal weights by phrase."""
    return sorted(seeds, key=lambda seed: (-seed.weight, seed.phrase))


def holders(snapshot: Snapshot, phrase: int) -> int:
    """In how many living passages a phrase stands, at least 1: the inverse of its node specificity."""
    return max(int(snapshot.phrase_passages[phrase]), 1)
