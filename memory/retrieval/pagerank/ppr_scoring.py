"""Scores passages by Personalized PageRank from the seeds, with or without passages as nodes of the graph.

`rank_without_walk` is the baseline that HippoRAG 1 compares PageRank with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.mode_result import PageRankResult, Ranking, dense_ranking
from memory.retrieval.pagerank.ppr import IsPreciseEnough, pagerank_reordered
from memory.retrieval.pagerank.push import ForwardPush, PushEstimate
from memory.retrieval.passage_weights import Floats, PassageWeights
from memory.retrieval.query_context import QueryContext
from memory.retrieval.score_damping import HUB_DEGREE, ScoreDamping
from memory.retrieval.score_scaling import MinMax
from memory.retrieval.top_k import is_top_k_certain, is_top_k_certain_from_below
from memory.types import LinkedTriple, Seed
from store.index.graph.adjacency import Adjacency
from store.index.graph.base_order import BaseOrder
from store.index.graph.edge_entries import EdgeWeights
from store.snapshot import Snapshot

HIPPORAG2_WEIGHTS = EdgeWeights(relation=2.0, mention=2.0, synonym=2.0, context=1.0)
"""HippoRAG 2's code adds each edge between phrases twice (once per direction, to an undirected graph) and each context edge
once. Its published recall is measured with these weights."""
PHRASE_GRAPH_WEIGHTS = EdgeWeights(relation=1.0, mention=1.0, synonym=1.0)
"""The graph of HippoRAG 1 has no passages. Mention edges have the weight of relation edges in every walk: a memory whose
triples are all statements, such as the papers' recorded ones, has the papers' graph."""
PUSH_MIN_NODES = 131_072
"""Number of living phrases and passages from which forward push is used. A whole walk over fewer takes about ten milliseconds.
"""
PUSH_MAX_STARTS = 4_096
"""Maximum number of starts for forward push; a whole walk costs less for more starts."""
PUSH_EPSILONS = (1e-6, 2.5e-7, 6e-8)
"""Residuals at which pushes stop, as shares of a node's degree. The finer ones are used until the ranking is certain."""
PUSH_MOST_WORK = 0.5
"""Maximum work of pushes, as a multiple of the sum of all degrees. Beyond it, a whole walk is used."""
NEIGHBOUR_SHARE = 0.5
"""Weight of a seed's neighbour without a walk, as a share of the smallest seed weight, added for each seed (HippoRAG 1's code).
"""


def walked_graph(context: QueryContext, weights: EdgeWeights) -> Adjacency:
    """Return the graph of the passages that take part, with the edges that the settings allow."""
    return context.graph(walked_edges(context, weights))


def walked_edges(context: QueryContext, weights: EdgeWeights) -> EdgeWeights:
    """Return `weights`, without synonym edges if the settings exclude them."""
    return weights if context.settings.synonym_edges else replace(weights, synonym=0.0)


def rank_by_pagerank(
    context: QueryContext,
    seeds: Sequence[Seed],
    passage_reset: PassageWeights | None,
    weights: EdgeWeights = HIPPORAG2_WEIGHTS,
    triples: Sequence[LinkedTriple] = (),
    leaders: Mapping[int, int] | None = None,
) -> Ranking:
    """Rank passages by PageRank from `seeds` and from `passage_reset`, the reset weights of passages.

    With `leaders`, the scores of hubs are damped, and each near-duplicate left out of `context` gets its score from its leader
    (`memory.retrieval.score_damping`); passages must be nodes of the graph.

    Without `passage_reset`, passages are not nodes of the graph. A passage's score is then the sum of its phrases' PageRank,
    each counted as often as it occurs in the passage's triples (HippoRAG, section 2.3). If all reset weights are zero, the
    result is dense retrieval.
    """
    snapshot = context.snapshot
    starts, start_weights = _starts(snapshot, seeds, passage_reset)
    if not len(starts):
        return dense_ranking(context, triples, "no seed has any weight: dense retrieval")
    with context.stage("graph"):
        graph = walked_graph(context, weights if passage_reset is not None else PHRASE_GRAPH_WEIGHTS)
    damped = None
    if leaders is not None:
        damped = _score_damping(context, graph, starts, start_weights, leaders)
    with context.stage("walk"):
        found = _walk(context, graph, starts, start_weights, passage_reset is None, damped)
        result = PageRankResult(
            graph, starts, start_weights, found, context.settings.damping, passage_reset is None, damped
        )
        scores = _passage_scores(snapshot, result)
    return Ranking(scores, triples=tuple(triples), seeds=tuple(seeds), pagerank=result)


def _starts(
    snapshot: Snapshot, seeds: Sequence[Seed], passage_reset: PassageWeights | None
) -> tuple[NDArray[np.int64], Floats]:
    """Return the distinct nodes with a reset weight, and their weights."""
    weighted = {seed.row: seed.weight for seed in seeds}
    nodes, weights = np.array(list(weighted), np.int64), np.array(list(weighted.values()), np.float64)
    if passage_reset is not None:
        nodes = np.concatenate([nodes, passage_reset.rows + snapshot.n_phrases])
        weights = np.concatenate([weights, passage_reset.weights])
    return nodes[weights != 0], weights[weights != 0]


def _score_damping(
    context: QueryContext,
    graph: Adjacency,
    starts: NDArray[np.int64],
    weights: Floats,
    leaders: Mapping[int, int],
) -> ScoreDamping:
    snapshot, damping = context.snapshot, context.settings.damping
    restart = weights / weights.sum()
    alone = float(restart[graph.inside.degrees_of(graph.inside.inner(starts)) == 0].sum())
    passages = np.flatnonzero(starts >= snapshot.n_phrases)
    passages = passages[np.argsort(starts[passages])]
    return ScoreDamping(
        HUB_DEGREE * graph.inside.passage_degrees / max(snapshot.living_passages - len(leaders), 1),
        PassageWeights(
            starts[passages] - snapshot.n_phrases, (1.0 - damping) * restart[passages] / (1.0 - damping * alone)
        ),
        leaders,
    )


def _walk(
    context: QueryContext,
    graph: Adjacency,
    starts: NDArray[np.int64],
    weights: Floats,
    through_phrases: bool,
    damped: ScoreDamping | None,
) -> Floats | PushEstimate:
    """Return the PageRank of all nodes, or in a large graph with few starts its estimate by forward push."""
    snapshot = context.snapshot
    large = snapshot.living_phrases + snapshot.living_passages >= PUSH_MIN_NODES
    if large and len(starts) <= PUSH_MAX_STARTS and not context.settings.exact:
        pushed = _pushed(context, graph, starts, weights, through_phrases, damped)
        if pushed is not None:
            return pushed
    reset: Floats = np.zeros(graph.nodes)
    reset[starts] = weights
    stop_early = None if through_phrases else _until_top_passages_are_certain(context, graph, damped)
    return pagerank_reordered(graph.inside, reset, context.settings.damping, stop_early)


def _pushed(
    context: QueryContext,
    graph: Adjacency,
    starts: NDArray[np.int64],
    weights: Floats,
    through_phrases: bool,
    damped: ScoreDamping | None,
) -> PushEstimate | None:
    """Return an estimate precise enough that the best `context.ordered` passages and their order are certain.

    Returns None if that costs more than a whole walk, or if the pushes reach fewer passages.
    """
    inside = graph.inside
    with ForwardPush(inside, inside.inner(starts), weights, context.settings.damping) as push:
        return _refined(context, inside, push, through_phrases, damped)


def _refined(
    context: QueryContext, inside: BaseOrder, push: ForwardPush, through_phrases: bool, damped: ScoreDamping | None
) -> PushEstimate | None:
    first = context.snapshot.n_phrases
    estimate, largest = None, inside.largest_passage_degree
    for epsilon in PUSH_EPSILONS[-1:] if through_phrases else PUSH_EPSILONS:
        estimate = push.refine(epsilon, PUSH_MOST_WORK * inside.total_degree)
        if estimate is None:
            return None
        numbers = estimate.nodes
        estimate = replace(estimate, nodes=inside.outer(numbers))
        if through_phrases:
            return estimate
        passages = estimate.nodes >= first
        rows, scores = estimate.nodes[passages] - first, estimate.ranks[passages]
        living = context.taking_part[rows] & (scores > 0)
        rows, scores, numbers = rows[living], scores[living], numbers[passages][living]
        if len(rows) < min(context.ordered, context.snapshot.living_passages):
            continue
        degrees = inside.degrees_of(numbers)
        bounds = estimate.ratio * degrees
        if damped is not None:
            # The error of a damped score is at most the error of the score.
            scores = damped.scores(rows, scores, degrees)
            copies = damped.duplicates(rows, scores)
            scores = np.concatenate([scores, copies.weights])
            bounds = np.concatenate([bounds, np.full(len(copies.rows), bounds.max(initial=0.0))])
        if is_top_k_certain_from_below(scores, bounds, context.ordered, estimate.ratio * largest):
            return estimate
    return estimate if len(rows) >= min(context.ordered, context.snapshot.living_passages) else None


def _passage_scores(snapshot: Snapshot, result: PageRankResult) -> Floats:
    if result.through_phrases:
        return scores_by_phrases(snapshot, result.ranks)
    damped = result.score_damping
    if not isinstance(result.found, PushEstimate):
        ranks = result.found[snapshot.n_phrases :]
        if damped is None:
            return ranks
        return _damped_scores(damped, ranks, result.walk.degrees[snapshot.n_phrases :])
    passages = result.found.nodes >= snapshot.n_phrases
    nodes, ranks = result.found.nodes[passages], result.found.ranks[passages]
    if damped is not None:
        degrees = result.walk.inside.degrees_of(result.walk.inside.inner(nodes))
        ranks = damped.scores(nodes - snapshot.n_phrases, ranks, degrees)
    scores: Floats = np.zeros(snapshot.n_passages)
    scores[nodes - snapshot.n_phrases] = ranks
    if damped is not None:
        copies = damped.duplicates(nodes - snapshot.n_phrases, ranks)
        scores[copies.rows] = copies.weights
    return scores


def _damped_scores(damped: ScoreDamping, ranks: Floats, degrees: Floats) -> Floats:
    """Return the scores of all passages from their ranks and degrees, shape (n_passages,)."""
    rows = np.arange(len(ranks))
    scores = damped.scores(rows, ranks, degrees)
    copies = damped.duplicates(rows, scores)
    scores[copies.rows] = copies.weights
    return scores


def rank_as_hipporag2(context: QueryContext, seeds: Sequence[Seed], triples: Sequence[LinkedTriple] = ()) -> Ranking:
    """Rank passages by PageRank from `seeds` and from every passage.

    A passage's reset weight is `passage_weight` times its min-max-scaled cosine.
    """
    if not context.settings.passage_nodes:
        return rank_by_pagerank(context, seeds, None, triples=triples)
    compared, similarities = context.passages_compared, context.exact_similarities
    scaled = np.where(compared, MinMax.of(similarities, compared)(similarities), 0.0)
    reset = PassageWeights(np.arange(len(scaled)), scaled * context.settings.passage_weight)
    return rank_by_pagerank(context, seeds, reset, triples=triples)


def rank_without_walk(context: QueryContext, seeds: Sequence[Seed], neighbours: bool) -> Ranking:
    """Rank passages by the weights of their phrases: the seeds, and with `neighbours` also the phrases next to them.

    These are HippoRAG's "Rq Nodes Only" and "Rq Nodes & Neighbors" (section 5.1), the latter as in its code (`get_neighbors`).
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


def _until_top_passages_are_certain(
    context: QueryContext, graph: Adjacency, damped: ScoreDamping | None
) -> IsPreciseEnough:
    """Return a test whether the walk may stop: the best `ordered` passages and their order are certain, given the ranks' L1
    error."""
    alive, first = np.flatnonzero(context.snapshot.passage_alive), context.snapshot.n_phrases

    def is_certain(ranks: Floats, error: float) -> bool:
        scores = ranks[first:]
        if damped is not None:
            scores = _damped_scores(damped, scores, graph.degrees[first:])
        return is_top_k_certain(scores[alive], context.ordered, error)

    return is_certain


def scores_by_phrases(snapshot: Snapshot, ranks: NDArray[np.float64]) -> Floats:
    """Return for each passage the sum of its phrases' ranks over its triples; shape (n_passages,)."""
    subjects, objects = snapshot.triple_ends.T
    per_triple = ranks[subjects] + np.where(subjects != objects, ranks[objects], 0.0)
    # Rounding may leave small values for the triples of a removed passage.
    return np.maximum(snapshot.incidence.matvec(per_triple), 0.0)
