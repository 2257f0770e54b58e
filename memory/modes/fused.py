"""HippoRAG 2 with seeds that do not depend on how much the memory holds.

Min-max-scaled cosines are flat: in a memory of n passages their sum grows with n, so that the more there is, the less the
linked phrases count; with 1,890 passages they have an eighth of the reset probability. Here similarities are measured in
standard deviations and go through a softmax, for passages and for triples alike, and both halves of the reset keep their
share. Names in the query that are phrases of the memory are seeds too: an embedding of the whole question tends to one of
the things it is about. `docs/retrieval.md` has what was tried and measured.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memory.asking import Asked, Floats, Ranking
from memory.entities import query_entities
from memory.linking import heaviest, holders, known_entities, nearest_triples, recognised, triple_scores
from memory.modes.walking import dense, walk
from memory.ranking import Standard
from memory.types import LinkedTriple, Seed
from store.snapshot import Snapshot
from store.walk import EdgeWeights

OCCURRENCES = EdgeWeights(relation=2.0, synonym=2.0, occurrence=1.0)
"""A passage is tied to a phrase as strongly as it states triples about it (HippoRAG counts occurrences so)."""
SEED_PASSAGES = 50
"""Further ones have weights that are noise, whose sum would grow with the memory."""


def fused(asked: Asked) -> Ranking:
    snapshot, settings = asked.snapshot, asked.settings
    if not snapshot.living_passages:
        return dense(asked)
    scores = triple_scores(asked)
    scale = Standard.of(scores, snapshot.triple_alive)
    triples = recognised(asked, nearest_triples(asked, scores, scale))
    with asked.stage("names"):
        named = known_entities(snapshot, query_entities(asked.query, snapshot))
    linked = _linked(snapshot, triples, settings.temperature)
    seeds = _together(linked, named, settings.name_share)
    if not settings.passage_nodes:
        return walk(asked, seeds, None, triples=triples)
    share = settings.passage_share if seeds else 1.0
    ranking = walk(asked, _scaled(seeds, 1 - share), share * _passages(asked), OCCURRENCES, triples)
    if seeds or ranking.note:
        return ranking
    return replace(ranking, note="no triple was kept and no name is known: from passages alone")


def _linked(snapshot: Snapshot, triples: Sequence[LinkedTriple], temperature: float) -> list[Seed]:
    """The phrases of the kept triples. A triple's softmax weight is shared by them in proportion to node specificity."""
    kept = [triple for triple in triples if triple.kept]
    if not kept:
        return []
    weights = _softmax(np.array([triple.score for triple in kept]), temperature)
    seeds = []
    for triple, weight in zip(kept, weights, strict=True):
        ends = {int(end): 1.0 / holders(snapshot, int(end)) for end in snapshot.triple_ends[triple.row]}
        whole = sum(ends.values())
        seeds += [
            Seed(row, snapshot.phrase(row), float(weight) * specificity / whole) for row, specificity in ends.items()
        ]
    return seeds


def _together(linked: Sequence[Seed], named: Sequence[Seed], name_share: float) -> list[Seed]:
    """One seed a phrase, weights summing to 1; where there are none of one sort, the other has all."""
    share = name_share if linked and named else float(bool(named))
    sums: dict[int, Seed] = {}
    for seed in [*_scaled(linked, 1 - share), *_scaled(named, share)]:
        before = sums[seed.row].weight if seed.row in sums else 0.0
        sums[seed.row] = replace(seed, weight=before + seed.weight)
    return heaviest([seed for seed in sums.values() if seed.weight > 0])


def _scaled(seeds: Sequence[Seed], to: float) -> list[Seed]:
    """The seeds with weights that sum to `to`."""
    whole = sum(seed.weight for seed in seeds)
    return [replace(seed, weight=seed.weight * to / whole) for seed in seeds] if whole and to else []


def _passages(asked: Asked) -> Floats:
    """Reset weights of the passages nearest to the query, shape (n_passages,), summing to 1."""
    alive = asked.snapshot.passage_alive
    scores = Standard.of(asked.similarities, alive)(asked.similarities)
    scores[~alive] = -np.inf
    out: Floats = np.zeros(len(scores))
    least = np.partition(scores, -SEED_PASSAGES)[-SEED_PASSAGES] if len(scores) > SEED_PASSAGES else -np.inf
    rows = np.flatnonzero(alive & (scores >= least))
    out[rows] = _softmax(scores[rows], asked.settings.temperature)
    return out


def _softmax(scores: NDArray[np.float64], temperature: float) -> Floats:
    weights: Floats = np.exp((scores - scores.max()) / temperature)
    weights /= weights.sum()
    return weights
