"""What a mode returns: a score for every passage, and how the scores came about."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.query_context import Floats, QueryContext
from memory.types import LinkedTriple, Seed
from store.index.adjacency import Adjacency

QUERY_BY_WORDS = "the encoder knows no word of the query: compared by words"
PASSAGES_BY_WORDS = "the encoder knows nothing of any passage: compared by words"


@dataclass(frozen=True, slots=True)
class PageRankResult:
    """A random walk and its result. `reset` and `ranks` have shape (nodes,), phrases first; `reset` is not normalised."""

    walk: Adjacency
    reset: Floats
    ranks: Floats
    damping: float
    through_phrases: bool
    """True where a passage's score is the sum of its phrases' ranks, false where it is the rank of its own node."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scores of all passages, shape (n_passages,), and how they came about.

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


def dense_ranking(context: QueryContext, triples: Sequence[LinkedTriple] = (), note: str | None = None) -> Ranking:
    """Passages by cosine with the query: the mode `dense`, and what other modes fall back on; `note` then says why.

    By words where cosines would say nothing.
    """
    if context.passages_by_words:
        scores = context.similarities
        by_words = PASSAGES_BY_WORDS if context.is_known else QUERY_BY_WORDS
        why = f"{note}; {by_words}" if note else by_words
        return Ranking(scores, candidates=scores > 0, triples=tuple(triples), note=why)
    return Ranking(context.similarities, context.passages_compared, triples=tuple(triples), note=note, is_dense=True)
