"""The result of a mode: a score for every passage, and the data from which the scores were computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memory.explain.explanation import FollowedLink
from memory.retrieval.pagerank.walk import PageRankResult
from memory.retrieval.query_context import QueryContext
from memory.types import LinkedTriple, Seed

QUERY_BY_WORDS = "the encoder knows no word of the query: compared by words"
PASSAGES_BY_WORDS = "the encoder knows nothing of any passage: compared by words"


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scores of all passages, shape (n_passages,), and the data from which they were computed.

    `candidates`: mask of the passages that may be returned, shape (n_passages,); None allows all.
    """

    scores: NDArray[np.floating]
    candidates: NDArray[np.bool_] | None = None
    triples: tuple[LinkedTriple, ...] = ()
    seeds: tuple[Seed, ...] = ()
    note: str | None = None
    pagerank: PageRankResult | None = None
    is_dense: bool = False
    """Whether the scores are cosines."""
    links: Mapping[int, FollowedLink] = field(default_factory=dict)
    """By row: the link that gave a passage its score instead of `pagerank`."""
    document_passages: int | None = None
    """Maximum number of passages of one document among the first results. None means no limit, and that versions of a text are
    not grouped."""


def dense_ranking(context: QueryContext, triples: Sequence[LinkedTriple] = (), note: str | None = None) -> Ranking:
    """Ranks passages by cosine with the query: the mode `dense`, and the fallback of other modes. `note`: the reason for the
    fallback.

    Without cosines, passages are ranked by words.
    """
    if context.passages_by_words:
        scores = context.similarities
        by_words = PASSAGES_BY_WORDS if context.is_known else QUERY_BY_WORDS
        why = f"{note}; {by_words}" if note else by_words
        return Ranking(scores, candidates=scores > 0, triples=tuple(triples), note=why)
    return Ranking(context.similarities, context.passage_mask, triples=tuple(triples), note=note, is_dense=True)
