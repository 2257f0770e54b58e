"""Scores passages by Personalized PageRank from the seeds, with passages as nodes of the graph or without.

`rank_without_walk` has what HippoRAG 1 compares PageRank with.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.mode_result import PageRankResult, Ranking, dense_ranking
from memory.retrieval.ppr import IsPreciseEnough, pagerank_reordered
from memory.retrieval.query_context import Floats, QueryContext
from memory.retrieval.score_scaling import MinMax
from memory.retrieval.top_k import is_top_k_certain
from memory.types import LinkedTriple, Seed
from store.index.adjacency import EdgeWeights
from store.snapshot import Snapshot

HIPPORAG2_WEIGHTS = EdgeWeights(relation=2.0, synonym=2.0, context=1.0)
"""HippoRAG 2's code adds each edge between phrases twice (once per direction, to an undirected graph) and each context edge
once. Its published recall rests on that."""
PHRASE_GRAPH_WEIGHTS = EdgeWeights(relation=1.0, synonym=1.0)
NEIGHBOUR_SHARE = 0.5
"""What a neighbour of a seed gets of the least seed's weight where nothing walks, once for each seed (HippoRAG 1's code)."""


def walked_edges(context: QueryContext, weights: EdgeWeights) -> EdgeWeights:
    """`weights`, without synonym edges where the settings say so."""
    return weights if context.settings.synonym_edges else replace(weights, synonym=0.0)


def rank_by_pagerank(
    context: QueryContext,
    seeds: Sequence[Seed],
    passage_reset: Floats | None,
    weights: EdgeWeights = HIPPORAG2_WEIGHTS,
    triples: Sequence[LinkedTriple] = (),
) -> Ranking:
    """Ranks passages by PageRank from `seeds` and from `passage_reset`, reset weights of shape (n_passages,).

    Without `passage_reset`, passages are not nodes of the graph. A passage's score is then the sum of its phrases' PageRank,
    each counted as often as it occurs in the passage's triples (HippoRAG, section 2.3). If all reset weights are zero, the
    result is dense retrieval.
    """
    snapshot = context.snapshot
    reset: Floats = np.zeros(snapshot.n_phrases + snapshot.n_passages)
    for seed in seeds:
        reset[seed.row] = seed.weight
    if passage_reset is not None:
        reset[snapshot.n_phrases :] = passage_reset
    if not reset.any():
        return dense_ranking(context, triples, "no seed has any weight: dense retrieval")
    with context.stage("graph"):
        graph = snapshot.adjacency(
            walked_edges(context, weights if passage_reset is not None else PHRASE_GRAPH_WEIGHTS)
        )
    with context.stage("walk"):
        stop_early = _until_top_passages_are_certain(context) if passage_reset is not None else None
        ranks = pagerank_reordered(graph.inside, reset, context.settings.damping, stop_early)
        scores = ranks[snapshot.n_phrases :] if passage_reset is not None else scores_by_phrases(snapshot, ranks)
    result = PageRankResult(graph, reset, ranks, context.settings.damping, passage_reset is None)
    return Ranking(scores, triples=tuple(triples), seeds=tuple(seeds), pagerank=result)


def rank_as_hipporag2(context: QueryContext, seeds: Sequence[Seed], triples: Sequence[LinkedTriple] = ()) -> Ranking:
    """Ranks passages by PageRank from `seeds` and from every passage, whose reset weight is `passage_weight` times its
    min-max-scaled cosine.
    """
    if not context.settings.passage_nodes:
        return rank_by_pagerank(context, seeds, None, triples=triples)
    compared = context.passages_compared
    scaled = np.where(compared, MinMax.of(context.similarities, compared)(context.similarities), 0.0)
    return rank_by_pagerank(context, seeds, scaled * context.settings.passage_weight, triples=triples)


def rank_without_walk(context: QueryContext, seeds: Sequence[Seed], neighbours: bool) -> Ranking:
    """Ranks passages by the weights of their phrases alone: the seeds, and with `neighbours` the phrases next to them.

    HippoRAG's "Rq Nodes Only" and "Rq Nodes & Neighbors" (section 5.1), the second as in its code (`get_neighbors`).
    """
    snapshot = context.snapshot
    weights: Floats = np.zeros(snapshot.n_phrases + snapshot.n_passages)
    rows = np.array([seed.row for seed in seeds], np.int64)
    weights[rows] = [seed.weight for seed in seeds]
    if neighbours:
        with context.stage("graph"):
            graph = snapshot.adjacency(walked_edges(context, PHRASE_GRAPH_WEIGHTS))
        _, beside, _ = graph.neighbours(np.sort(rows))
        np.add.at(weights, beside, NEIGHBOUR_SHARE * min(seed.weight for seed in seeds))
    scores = scores_by_phrases(snapshot, weights)
    return Ranking(scores, seeds=tuple(seeds))


def _until_top_passages_are_certain(context: QueryContext) -> IsPreciseEnough:
    """Says when the walk may stop: the best `k` passages and their order are certain, given the L1 error of the ranks."""
    alive, first = np.flatnonzero(context.snapshot.passage_alive), context.snapshot.n_phrases
    return lambda ranks, error: is_top_k_certain(ranks[first:][alive], context.k, error)


def scores_by_phrases(snapshot: Snapshot, ranks: NDArray[np.float64]) -> Floats:
    """For each passage the sum of its phrases' ranks, over its triples; shape (n_passages,)."""
    subjects, objects = snapshot.triple_ends.T
    per_triple = ranks[subjects] + np.where(subjects != objects, ranks[objects], 0.0)
    # Rounding may leave a trace of the triples of a passage that was removed.
    return np.maximum(snapshot.incidence.matvec(per_triple), 0.0)
