"""A query's walk and its PageRank, computed only as precisely as the order of the requested passages requires.

In a large graph, forward push from few starts replaces the walk over all nodes. After the walk, the scores of hubs and of
near-duplicates are corrected. A passage that names many things is connected to many phrases, so walks reach it for every query:
in an undirected graph, a long walk ends at a node with a probability proportional to the node's degree. Andersen, Chung and
Lang ("Local Graph Partitioning using PageRank Vectors", 2006) therefore divide PageRank by degree, which changes every score.
Here, only passages with a degree far above the mean lose rank, and only rank received from other nodes, so a table of many
things keeps its place if its own words or vector match the query.

A near-duplicate that was left out of the walk (`memory.retrieval.near_duplicates`) gets a share of its leader's score.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.pagerank.chebyshev import EARLY_STOP_ERROR, IsPreciseEnough, pagerank_reordered
from memory.retrieval.pagerank.push import ForwardPush, PushEstimate
from memory.retrieval.passage_weights import Floats, PassageWeights
from memory.retrieval.query_context import QueryContext
from memory.retrieval.top_k import is_top_k_certain, is_top_k_certain_from_below
from memory.retrieval.unlocked_property import unlocked_property
from store.index.graph.adjacency import Adjacency
from store.snapshot import Snapshot

PUSH_MIN_NODES = 131_072
"""Minimum number of living phrases and passages for forward push. With fewer nodes, a complete walk takes about ten
milliseconds."""
PUSH_MAX_STARTS = 4_096
"""Maximum number of starts for forward push; with more starts, a walk over all nodes costs less."""
PUSH_EPSILONS = (1e-6, 2.5e-7, 6e-8)
"""Residuals, as shares of a node's degree, at which pushes stop. If the ranking is uncertain, pushes continue to the next
residual."""
PUSH_MAX_WORK = 0.5
"""Maximum work of pushes, as a share of the sum of all degrees. If pushes need more work, a walk over all nodes replaces
them."""

HUB_DEGREE = 2.5
"""A passage is a hub if its weighted degree exceeds the mean degree of passages times this factor. A passage's degree is twice
the number of its triples; a triple whose subject equals its object counts once."""
HUB_POWER = 6.0
"""Exponent h: a hub keeps the share (limit / degree)ʰ of the PageRank received from other nodes."""


@dataclass(frozen=True, slots=True)
class ScoreCorrection:
    """Corrects the scores of passages after a walk."""

    hub_degree: float
    """Largest degree of a passage that is not a hub."""
    own: Floats
    """PageRank that each passage has as a start, before any step of the walk, shape (n_passages,)."""
    leaders: Mapping[int, int]
    """By row: the leader of each near-duplicate that does not take part in the walk."""

    def scores(self, rows: NDArray[Any], ranks: Floats, degrees: Floats) -> tuple[Floats, PassageWeights]:
        """Returns the scores of the passages `rows`, and the scores of all near-duplicates.

        `ranks` and `degrees` (weighted) belong to `rows`, which must include the leaders. A score is at most the passage's
        rank.
        """
        own = np.minimum(self.own[rows], ranks)
        scores: Floats = own + self.hub_factors(degrees) * (ranks - own)
        return scores, self._duplicates(rows, scores)

    def hub_factors(self, degrees: Floats) -> Floats:
        """Returns the share that passages with these degrees keep of the rank that they receive from other nodes."""
        factors, hubs = np.ones(len(degrees)), np.flatnonzero(degrees > self.hub_degree)
        factors[hubs] = np.power(self.hub_degree / degrees[hubs], HUB_POWER)
        return factors

    def group_size(self, leader: int) -> int:
        """Returns the number of passages in the leader's group, including the leader."""
        return 1 + sum(each == leader for each in self.leaders.values())

    def _duplicates(self, rows: NDArray[Any], scores: Floats) -> PassageWeights:
        if not self.leaders:
            return PassageWeights(np.empty(0, np.int64), np.empty(0))
        sizes = Counter(self.leaders.values())
        order = np.argsort(rows)
        known = PassageWeights(rows[order], scores[order])
        copies = np.array(sorted(self.leaders), np.int64)
        first = np.array([self.leaders[row] for row in copies.tolist()], np.int64)
        return PassageWeights(copies, known.of(first) / np.array([sizes[row] + 1 for row in first.tolist()]))


@dataclass(frozen=True)
class Walk:
    """A random walk. A node's number is the row of a phrase, or the number of phrases plus the row of a passage."""

    graph: Adjacency
    starts: NDArray[np.int64]
    weights: Floats
    """Reset weights of `starts`, of the same shape, not normalised. All other nodes have the weight 0."""
    damping: float
    through_phrases: bool
    """If true, a passage's score is the sum of its phrases' ranks; otherwise, it is the rank of the passage's node."""
    correction: ScoreCorrection | None = None
    """Converts the passages' ranks to scores; None if ranks are scores."""

    @unlocked_property
    def reset(self) -> Floats:
        """Reset weights of all nodes, shape (nodes,), not normalised."""
        reset: Floats = np.zeros(self.graph.nodes)
        reset[self.starts] = self.weights
        return reset


@dataclass(frozen=True)
class PageRankResult:
    """A walk, and the PageRank of its nodes."""

    walk: Walk
    found: Floats | PushEstimate
    """The ranks of all nodes, shape (nodes,), or a push's estimates for the nodes that it reached."""

    @unlocked_property
    def ranks(self) -> Floats:
        """PageRank of all nodes, or its estimate, shape (nodes,)."""
        if not isinstance(self.found, PushEstimate):
            return self.found
        ranks: Floats = np.zeros(self.walk.graph.nodes)
        ranks[self.found.nodes] = self.found.ranks
        return ranks

    @property
    def was_pushed(self) -> bool:
        """Whether the ranks are estimates of `memory.retrieval.pagerank.push`."""
        return isinstance(self.found, PushEstimate)

    @unlocked_property
    def rank_bounds(self) -> Floats:
        """Upper bound of every node's PageRank, shape (nodes,)."""
        if not isinstance(self.found, PushEstimate):
            # The error of the ranks if the walk stopped early.
            return self.found + EARLY_STOP_ERROR
        bounds: Floats = self.ranks + self.found.ratio * self.walk.graph.degrees
        return bounds


def compute_pagerank(context: QueryContext, walk: Walk) -> PageRankResult:
    """Returns the PageRank of all nodes, or its estimate by forward push in a large graph with few starts."""
    snapshot, graph = context.snapshot, walk.graph
    large = snapshot.living_phrases + snapshot.living_passages >= PUSH_MIN_NODES
    if large and len(walk.starts) <= PUSH_MAX_STARTS and not context.settings.exact:
        inside = graph.inside
        with ForwardPush(inside, inside.inner(walk.starts), walk.weights, walk.damping) as push:
            pushed = _pushed(context, walk, push)
        if pushed is not None:
            return PageRankResult(walk, pushed)
    stop_early = None if walk.through_phrases else _until_top_passages_are_certain(context, walk)
    return PageRankResult(walk, pagerank_reordered(graph.inside, walk.reset, walk.damping, stop_early))


def _pushed(context: QueryContext, walk: Walk, push: ForwardPush) -> PushEstimate | None:
    """Returns an estimate that determines the best `context.ordered` passages and their order.

    Returns None if it costs more than a walk over all nodes, or if the pushes reach fewer passages than requested.
    """
    inside, first = walk.graph.inside, context.snapshot.n_phrases
    estimate, largest = None, inside.largest_passage_degree
    for epsilon in PUSH_EPSILONS[-1:] if walk.through_phrases else PUSH_EPSILONS:
        estimate = push.refine(epsilon, PUSH_MAX_WORK * inside.total_degree)
        if estimate is None:
            return None
        numbers = estimate.nodes
        estimate = replace(estimate, nodes=inside.outer(numbers))
        if walk.through_phrases:
            return estimate
        passages = estimate.nodes >= first
        rows, scores = estimate.nodes[passages] - first, estimate.ranks[passages]
        living = context.taking_part[rows] & (scores > 0)
        rows, scores, numbers = rows[living], scores[living], numbers[passages][living]
        if len(rows) < min(context.ordered, context.snapshot.living_passages):
            continue
        degrees = inside.degrees_of(numbers)
        bounds = estimate.ratio * degrees
        if walk.correction is not None:
            # The error of a corrected score is at most the error of the rank.
            scores, copies = walk.correction.scores(rows, scores, degrees)
            scores = np.concatenate([scores, copies.weights])
            bounds = np.concatenate([bounds, np.full(len(copies.rows), bounds.max(initial=0.0))])
        if is_top_k_certain_from_below(scores, bounds, context.ordered, estimate.ratio * largest):
            return estimate
    return estimate if len(rows) >= min(context.ordered, context.snapshot.living_passages) else None


def _until_top_passages_are_certain(context: QueryContext, walk: Walk) -> IsPreciseEnough:
    """Returns a function that decides whether the walk may stop: it may if the ranks' L1 error cannot change the best `ordered`
    passages or their order."""
    alive = np.flatnonzero(context.snapshot.passage_alive)

    def is_certain(ranks: Floats, error: float) -> bool:
        return is_top_k_certain(passage_scores(context.snapshot, walk, ranks)[alive], context.ordered, error)

    return is_certain


def passage_scores(snapshot: Snapshot, walk: Walk, found: Floats | PushEstimate) -> Floats:
    """Returns the scores of all passages, shape (n_passages,), computed from the ranks of their nodes."""
    first, inside = snapshot.n_phrases, walk.graph.inside
    scores: Floats = np.zeros(snapshot.n_passages)
    if isinstance(found, PushEstimate):
        passages = found.nodes >= first
        nodes, ranks = found.nodes[passages], found.ranks[passages]
    else:
        nodes, ranks = np.arange(first, walk.graph.nodes), found[first:]
    if walk.correction is None:
        scores[nodes - first] = ranks
        return scores
    degrees = inside.degrees_of(inside.inner(nodes)) if isinstance(found, PushEstimate) else walk.graph.degrees[first:]
    scores[nodes - first], copies = walk.correction.scores(nodes - first, ranks, degrees)
    scores[copies.rows] = copies.weights
    return scores
