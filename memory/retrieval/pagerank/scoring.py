"""Scores passages by Personalized PageRank from the seeds, with or without passages as nodes of the graph.

`rank_without_walk` is the baseline with which the HippoRAG 1 paper compares PageRank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.mode_result import Ranking, dense_ranking
from memory.retrieval.pagerank.chebyshev import unscaled_sum
from memory.retrieval.pagerank.walk import HUB_DEGREE, ScoreCorrection, Walk, compute_pagerank, passage_scores
from memory.retrieval.passage_weights import Floats, PassageWeights
from memory.retrieval.query_context import QueryContext
from memory.retrieval.score_scaling import MinMax
from memory.types import LinkedTriple, Seed
from store.index.graph.adjacency import Adjacency
from store.index.graph.edge_entries import EdgeWeights
from store.snapshot import Snapshot

HIPPORAG2_WEIGHTS = EdgeWeights(relation=2.0, mention=2.0, synonym=2.0, context=1.0)
"""HippoRAG 2's code adds each edge between phrases twice to an undirected graph (once per direction), and each context edge
once. Its published recall was measured with these weights."""
PHRASE_GRAPH_WEIGHTS = EdgeWeights(relation=1.0, mention=1.0, synonym=1.0)
"""The graph of HippoRAG 1 has no passages. Mention edges have the weight of relation edges in every walk. If all triples are
statements, as in the papers' published data, the graph is the papers' graph."""
NEIGHBOUR_SHARE = 0.5
"""Without a walk, each seed adds this share of the smallest seed weight to each of its neighbours (HippoRAG 1's code)."""


def walked_graph(context: QueryContext, weights: EdgeWeights) -> Adjacency:
    """Returns the graph of the passages that take part, with the edges that the settings allow."""
    return context.graph(walked_edges(context, weights))


def walked_edges(context: QueryContext, weights: EdgeWeights) -> EdgeWeights:
    """Returns `weights`, without synonym edges if the settings exclude them."""
    return weights if context.settings.synonym_edges else replace(weights, synonym=0.0)


def rank_by_pagerank(
    context: QueryContext,
    seeds: Sequence[Seed],
    passage_reset: PassageWeights | None,
    weights: EdgeWeights = HIPPORAG2_WEIGHTS,
    triples: Sequence[LinkedTriple] = (),
    leaders: Mapping[int, int] | None = None,
) -> Ranking:
    """Ranks passages by PageRank from `seeds` and from passages; `passage_reset` contains the passages' reset weights.

    With `leaders`, hubs lose score, and each near-duplicate left out of `context` gets its share of its leader's score
    (`memory.retrieval.pagerank.walk`). Passages must then be nodes of the graph.

    Without `passage_reset`, passages are not nodes of the graph. A passage's score is then the sum of its phrases' PageRank
    over their occurrences in its triples (HippoRAG, section 2.3). If all reset weights are zero, dense retrieval ranks the
    passages.
    """
    snapshot = context.snapshot
    starts, start_weights = _starts(snapshot, seeds, passage_reset)
    if not len(starts):
        return dense_ranking(context, triples, "no seed has any weight: dense retrieval")
    with context.stage("graph"):
        graph = walked_graph(context, weights if passage_reset is not None else PHRASE_GRAPH_WEIGHTS)
    correction = None if leaders is None else _score_correction(context, graph, starts, start_weights, leaders)
    walk = Walk(graph, starts, start_weights, context.settings.damping, passage_reset is None, correction)
    with context.stage("walk"):
        result = compute_pagerank(context, walk)
        if walk.through_phrases:
            scores = scores_by_phrases(snapshot, result.ranks)
        else:
            scores = passage_scores(snapshot, walk, result.found)
    return Ranking(scores, triples=tuple(triples), seeds=tuple(seeds), pagerank=result)


def _starts(
    snapshot: Snapshot, seeds: Sequence[Seed], passage_reset: PassageWeights | None
) -> tuple[NDArray[np.int64], Floats]:
    """Returns the distinct nodes with a reset weight, and the weights."""
    weighted = {seed.row: seed.weight for seed in seeds}
    nodes, weights = np.array(list(weighted), np.int64), np.array(list(weighted.values()), np.float64)
    if passage_reset is not None:
        nodes = np.concatenate([nodes, passage_reset.rows + snapshot.n_phrases])
        weights = np.concatenate([weights, passage_reset.weights])
    return nodes[weights != 0], weights[weights != 0]


def _score_correction(
    context: QueryContext,
    graph: Adjacency,
    starts: NDArray[np.int64],
    weights: Floats,
    leaders: Mapping[int, int],
) -> ScoreCorrection:
    snapshot, damping = context.snapshot, context.settings.damping
    reset = weights / weights.sum()
    whole = unscaled_sum(reset, graph.inside.degrees_of(graph.inside.inner(starts)), damping)
    own, is_passage = np.zeros(snapshot.n_passages), starts >= snapshot.n_phrases
    own[starts[is_passage] - snapshot.n_phrases] = (1.0 - damping) * reset[is_passage] / whole
    mean_degree = graph.inside.passage_degrees / max(snapshot.living_passages - len(leaders), 1)
    return ScoreCorrection(HUB_DEGREE * mean_degree, own, leaders)


def rank_as_hipporag2(context: QueryContext, seeds: Sequence[Seed], triples: Sequence[LinkedTriple] = ()) -> Ranking:
    """Ranks passages by PageRank from `seeds` and from every passage.

    The reset weight of a passage is `passage_weight` times its min-max-scaled cosine.
    """
    if not context.settings.passage_nodes:
        return rank_by_pagerank(context, seeds, None, triples=triples)
    compared, similarities = context.passage_mask, context.exact_similarities
    scaled = np.where(compared, MinMax.of(similarities, compared)(similarities), 0.0)
    reset = PassageWeights(np.arange(len(scaled)), scaled * context.settings.passage_weight)
    return rank_by_pagerank(context, seeds, reset, triples=triples)


def rank_without_walk(context: QueryContext, seeds: Sequence[Seed], neighbours: bool) -> Ranking:
    """Ranks passages by the weights of their phrases: the seeds, and with `neighbours` the seeds' neighbours too.

    These are HippoRAG's "Rq Nodes Only" and "Rq Nodes & Neighbors" (section 5.1); the latter follows HippoRAG's code
    (`get_neighbors`).
    """
    snapshot = context.snapshot
    weights: Floats = np.zeros(snapshot.n_phrases + snapshot.n_passages)
    rows = np.array([seed.row for seed in seeds], np.int64)
    weights[rows] = [seed.weight for seed in seeds]
    if neighbours:
        with context.stage("graph"):
            graph = snapshot.adjacency(walked_edges(context, PHRASE_GRAPH_WEIGHTS))
        _, adjacent, _ = graph.neighbours(np.sort(rows))
        np.add.at(weights, adjacent, NEIGHBOUR_SHARE * min(seed.weight for seed in seeds))
    scores = scores_by_phrases(snapshot, weights)
    return Ranking(scores, seeds=tuple(seeds))


def scores_by_phrases(snapshot: Snapshot, ranks: NDArray[np.float64]) -> Floats:
    """Returns for each passage the sum of the ranks of its triples' phrases, shape (n_passages,)."""
    subjects, objects = snapshot.triple_ends.T
    per_triple = ranks[subjects] + np.where(subjects != objects, ranks[objects], 0.0)
    # Rounding may leave small values for the triples of a removed passage.
    return np.maximum(snapshot.incidence.matvec(per_triple), 0.0)
