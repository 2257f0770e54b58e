"""The result of a mode: a score for every passage, and how the scores were computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from memory.explain.explanation import FollowedLink
from memory.retrieval.pagerank.ppr import EARLY_STOP_ERROR
from memory.retrieval.pagerank.push import PushEstimate
from memory.retrieval.passage_weights import Floats
from memory.retrieval.query_context import QueryContext
from memory.retrieval.score_damping import ScoreDamping
from memory.types import LinkedTriple, Seed
from store.index.graph.adjacency import Adjacency

QUERY_BY_WORDS = "the encoder knows no word of the query: compared by words"
PASSAGES_BY_WORDS = "the encoder knows nothing of any passage: compared by words"


@dataclass(frozen=True)
class PageRankResult:
    """A random walk and its result. Node numbers are those of the phrases, then those of the passages."""

    walk: Adjacency
    starts: NDArray[np.int64]
    weights: Floats
    """Reset weights of `starts`, of the same shape, not normalised. All other nodes have weight 0."""
    found: Floats | PushEstimate
    """The ranks of all nodes, shape (nodes,), or the estimates of a push for the nodes that it reached."""
    damping: float
    through_phrases: bool
    """True if a passage's score is the sum of its phrases' ranks, false if it is the rank of the passage's node."""
    score_damping: ScoreDamping | None = None
    """Converts passages' ranks to scores; None if the ranks are the scores."""

    @cached_property
    def reset(self) -> Floats:
        """Reset weights of all nodes, shape (nodes,), not normalised."""
        reset: Floats = np.zeros(self.walk.nodes)
        reset[self.starts] = self.weights
        return reset

    @cached_property
    def ranks(self) -> Floats:
        """PageRank of all nodes, or its estimate, shape (nodes,)."""
        if not isinstance(self.found, PushEstimate):
            return self.found
        ranks: Floats = np.zeros(self.walk.nodes)
        ranks[self.found.nodes] = self.found.ranks
        return ranks

    @property
    def was_pushed(self) -> bool:
        """Whether the ranks are estimates of `memory.retrieval.pagerank.push`."""
        return isinstance(self.found, PushEstimate)

    @cached_property
    def rank_bounds(self) -> Floats:
        """Upper bound of every node's PageRank, shape (nodes,)."""
        if not isinstance(self.found, PushEstimate):
            # If the walk stopped early, its ranks have at most this error.
            return self.found + EARLY_STOP_ERROR
        bounds: Floats = self.ranks + self.found.ratio * self.walk.degrees
        return bounds


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scores of all passages, shape (n_passages,), and how they were computed.

    `candidates`, shape (n_passages,), marks the passages that may be answers; None allows all.
    """

    scores: NDArray[np.floating]
    candidates: NDArray[np.bool_] | None = None
    triples: tuple[LinkedTriple, ...] = ()
    seeds: tuple[Seed, ...] = ()
    note: str | None = None
    pagerank: PageRankResult | None = None
    is_dense: bool = False
    """Whether the scores are the cosines themselves."""
    links: Mapping[int, FollowedLink] = field(default_factory=dict)
    """Passages, by row, whose score comes from a link and not from `pagerank`."""
    document_passages: int | None = None
    """Maximum number of passages of one document among the first results; None for no limit."""


def dense_ranking(context: QueryContext, triples: Sequence[LinkedTriple] = (), note: str | None = None) -> Ranking:
    """Rank passages by cosine with the query: the mode `dense`, and the fallback of other modes; `note` then gives the reason.

    If cosines are not available, passages are ranked by words.
    """
    if context.passages_by_words:
        scores = context.similarities
        by_words = PASSAGES_BY_WORDS if context.is_known else QUERY_BY_WORDS
        why = f"{note}; {by_words}" if note else by_words
        return Ranking(scores, candidates=scores > 0, triples=tuple(triples), note=why)
    return Ranking(context.similarities, context.passages_compared, triples=tuple(triples), note=note, is_dense=True)
