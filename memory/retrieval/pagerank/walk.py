"""One query's walk and its PageRank, which is computed only as precisely as the order of the requested passages needs.

In a large graph, forward push from few starts replaces the walk over all nodes. After the walk, the scores of hubs and of
near-duplicates are corrected. A passage that names many things is linked to many phrases, so a walk reaches it whatever the
query is: in an undirected graph a long walk ends at a node with a probability proportional to the node's degree. Andersen,
Chung and Lang ("Local Graph Partitioning using PageRank Vectors", 2006) therefore rank nodes by PageRank divided by degree,
which changes every score. Here, only passages with a degree far above the mean lose rank, and only rank that they receive
from other nodes: a table of many things keeps its place if its own words or its own vector match the query.

A near-duplicate that is left out of the walk (`memory.retrieval.near_duplicates`) gets a share of its leader's score.
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
"""Number of living phrases and passages from which forward push is used. A whole walk over fewer takes about ten milliseconds.
"""
PUSH_MAX_STARTS = 4_096
"""Maximum number of starts for forward push; a whole walk costs less for more starts."""
PUSH_EPSILONS = (1e-6, 2.5e-7, 6e-8)
"""Residuals at which pushes stop, as shares of a node's degree. The finer ones are used until the ranking is certain."""
PUSH_MAX_WORK = 0.5
"""Maximum work of pushes, as a multiple of the sum of all degrees. Beyond it, a whole walk is used."""

HUB_DEGREE = 2.5
"""A passage is a hub if its weighted degree exceeds this multiple of the mean degree of passages. A degree is twice the number
of triples that the passage states; a triple with one phrase as subject and object counts once."""
HUB_POWER = 6.0
"""Exponent of (limit / degree): the share of the rank received from other nodes that a hub keeps."""


@dataclass(frozen=True, slots=True)
class ScoreCorrection:
    """The correction of passages' scores in one walk."""

    hub_degree: float
    """Largest degree of a passage that is not a hub."""
    own: Floats
    """Rank that each passage has as a start, before any step of the walk, shape (n_passages,)."""
    leaders: Mapping[int, int]
    """Leader of each near-duplicate that does not take part in the walk, by row."""

    def scores(self, rows: NDArray[Any], ranks: Floats, degrees: Floats) -> tuple[Floats, PassageWeights]:
        """Returns the scores of the passages `rows`, and those of all near-duplicates.

        `ranks` and weighted `degrees` are those of `rows`, which include the leaders. No score exceeds its rank.
        """
        own = np.minimum(self.own[rows], ranks)
        scores: Floats = own + self.hub_factors(degrees) * (ranks - own)
        return scores, self._duplicates(rows, scores)

    def hub_factors(self, degrees: Floats) -> Floats:
        """Returns the share of the rank received from other nodes that passages with these degrees keep."""
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
    """A random walk. Node numbers are those of the phrases, then those of the passages."""

    graph: Adjacency
    starts: NDArray[np.int64]
    weights: Floats
    """Reset weights of `starts`, of the same shape, not normalised. All other nodes have weight 0."""
    damping: float
    through_phrases: bool
    """True if a passage's score is the sum of its phrases' ranks, false if it is the rank of the passage's node."""
    correction: ScoreCorrection | None = None
    """Converts passages' ranks to scores; None if the ranks are the scores."""

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
    """The ranks of all nodes, shape (nodes,), or the estimates of a push for the nodes that it reached."""

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
            # If the walk stopped early, its ranks have at most this error.
            return self.found + EARLY_STOP_ERROR
        bounds: Floats = self.ranks + self.found.ratio * self.walk.graph.degrees
        return bounds


def compute_pagerank(context: QueryContext, walk: Walk) -> PageRankResult:
    """Returns the PageRank of all nodes, or in a large graph with few starts its estimate by forward push."""
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
    """Returns an estimate precise enough that the best `context.ordered` passages and their order are certain.

    Returns None if that costs more than a whole walk, or if the pushes reach fewer passages.
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
    """Returns a test whether the walk may stop: the best `ordered` passages and their order are certain, given the ranks' L1
    error."""
    alive = np.flatnonzero(context.snapshot.passage_alive)

    def is_certain(ranks: Floats, error: float) -> bool:
        return is_top_k_certain(passage_scores(context.snapshot, walk, ranks)[alive], context.ordered, error)

    return is_certain


def passage_scores(snapshot: Snapshot, walk: Walk, found: Floats | PushEstimate) -> Floats:
    """Returns the scores of all passages from the ranks of their own nodes, shape (n_passages,)."""
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
