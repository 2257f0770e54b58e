"""HippoRAG 2 with seeds that do not depend on the size of the memory.

Min-max-scaled cosines are flat: their sum grows with the number of passages, so the larger the memory is, the less the linked
phrases count. With 1,890 passages they have an eighth of the reset probability. This mode measures similarities in standard
deviations and puts them through a softmax, for passages and for triples; passages and phrases each keep a fixed share of the
reset. Names in the query that are phrases of the memory are seeds too, because the embedding of a whole question leans towards
one of the things it is about. `docs/retrieval.md` has what was tried and measured.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.linking import (
    filter_triples,
    heaviest_first,
    link_known_entities,
    nearest_triples,
    passage_count,
    triple_scores,
)
from memory.retrieval.mode_result import Ranking, dense_ranking
from memory.retrieval.ppr_scoring import rank_by_pagerank
from memory.retrieval.query_context import Floats, QueryContext
from memory.retrieval.query_entities import known_names, query_entities
from memory.retrieval.score_scaling import StandardScore
from memory.types import LinkedTriple, Seed
from store.index.adjacency import EdgeWeights
from store.snapshot import Snapshot

OCCURRENCE_WEIGHTS = EdgeWeights(relation=2.0, synonym=2.0, occurrence=1.0)
"""A context edge weighs as much as the number of the passage's triples with the phrase, as in HippoRAG 1."""
SEED_PASSAGES = 50
"""How many passages are seeds. The weights of the rest are noise, whose sum would grow with the memory."""


def rank(context: QueryContext) -> Ranking:
    snapshot, settings = context.snapshot, context.settings
    if not snapshot.living_passages:
        return dense_ranking(context)
    scores = triple_scores(context)
    compared = context.triples_compared & (scores > 0) if context.triples_by_words else context.triples_compared
    scale = StandardScore.of(scores, compared)
    triples = filter_triples(context, nearest_triples(context, scores, scale))
    with context.stage("names"):
        # If the encoder knows nothing of the query, every phrase in it counts, not its names alone.
        names = query_entities if context.is_known else known_names
        named = link_known_entities(snapshot, names(context.query, snapshot))
    linked = _triple_seeds(snapshot, triples, settings.temperature)
    seeds = _merge_seeds(linked, named, settings.name_share)
    if not settings.passage_nodes:
        return rank_by_pagerank(context, seeds, None, triples=triples)
    share = settings.passage_share if seeds else 1.0
    passage_reset = share * _passage_weights(context)
    ranking = rank_by_pagerank(context, _scale_seeds(seeds, 1 - share), passage_reset, OCCURRENCE_WEIGHTS, triples)
    if seeds or ranking.note:
        return ranking
    return replace(ranking, note="no triple was kept and no name is known: from passages alone")


def _triple_seeds(snapshot: Snapshot, triples: Sequence[LinkedTriple], temperature: float) -> list[Seed]:
    """The phrases of the kept triples as seeds. A triple's two phrases share its softmax weight by node specificity."""
    kept = [triple for triple in triples if triple.kept]
    if not kept:
        return []
    weights = _softmax(np.array([triple.score for triple in kept]), temperature)
    seeds = []
    for triple, weight in zip(kept, weights, strict=True):
        ends = {int(end): 1.0 / passage_count(snapshot, int(end)) for end in snapshot.triple_ends[triple.row]}
        total = sum(ends.values())
        seeds += [
            Seed(row, snapshot.phrase(row), float(weight) * specificity / total) for row, specificity in ends.items()
        ]
    return seeds


def _merge_seeds(linked: Sequence[Seed], named: Sequence[Seed], name_share: float) -> list[Seed]:
    """One seed per phrase, weights summing to 1. If one of the two kinds is missing, the other gets all the weight."""
    share = name_share if linked and named else float(bool(named))
    sums: dict[int, Seed] = {}
    for seed in [*_scale_seeds(linked, 1 - share), *_scale_seeds(named, share)]:
        before = sums[seed.row].weight if seed.row in sums else 0.0
        sums[seed.row] = replace(seed, weight=before + seed.weight)
    return heaviest_first([seed for seed in sums.values() if seed.weight > 0])


def _scale_seeds(seeds: Sequence[Seed], total: float) -> list[Seed]:
    """The seeds with weights that sum to `total`."""
    before = sum(seed.weight for seed in seeds)
    return [replace(seed, weight=seed.weight * total / before) for seed in seeds] if before and total else []


def _passage_weights(context: QueryContext) -> Floats:
    """Reset weights of the passages nearest to the query, shape (n_passages,), summing to 1.

    All are 0 if passages are compared by words and none has a word of the query.
    """
    alive = context.passages_compared
    if context.passages_by_words:
        alive = alive & (context.similarities > 0)
    scores = StandardScore.of(context.similarities, alive)(context.similarities)
    scores[~alive] = -np.inf
    weights: Floats = np.zeros(len(scores))
    if not alive.any():
        return weights
    least = np.partition(scores, -SEED_PASSAGES)[-SEED_PASSAGES] if len(scores) > SEED_PASSAGES else -np.inf
    rows = np.flatnonzero(alive & (scores >= least))
    weights[rows] = _softmax(scores[rows], context.settings.temperature)
    return weights


def _softmax(scores: NDArray[np.float64], temperature: float) -> Floats:
    weights: Floats = np.exp((scores - scores.max()) / temperature)
    weights /= weights.sum()
    return weights
