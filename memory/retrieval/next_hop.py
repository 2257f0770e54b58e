"""Finds the passages that the start passages lead to.

The answer to a question about a passage that the query names is often in a second passage. A start passage's triples are ranked
by their similarity to the query, as PropRAG ranks its beams (arXiv 2504.18070), but only one hop deep and without encoding
anything: "composer of the film" selects ("billy elliot", "music by", "stephen warbeck") among all triples of the film's
passage. The passages with the other end of such a triple as title are the next starts.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.linking.phrases import specificity
from memory.retrieval.linking.query_titles import title_phrases
from memory.retrieval.linking.triples import ComparedTriples
from memory.retrieval.passage_weights import PassageWeights
from memory.retrieval.query_context import QueryContext
from memory.retrieval.score_scaling import Scale, softmax
from memory.retrieval.top_k import top_k
from store.index.graph.adjacency import Adjacency
from store.snapshot import Snapshot

HOP_TRIPLES = 10
"""Number of triples of each start passage that are followed, those nearest to the query."""
HOP_TEMPERATURE = 1.0
"""Softmax temperature of a passage's triples, in standard deviations over all triples. It is larger than for all triples,
because a passage's triples differ only in the detail that the question asks for, in few of its words."""
TITLED_PASSAGES = 20
"""Maximum number of a phrase's passages whose titles are compared, those that say most about the phrase."""


def next_passages(
    context: QueryContext,
    starts: Mapping[int, float],
    stated: tuple[NDArray[np.int32], NDArray[np.int32]],
    graph: Adjacency,
    compared: ComparedTriples,
    scale: Scale,
) -> PassageWeights:
    """Returns the share of the weight of `starts` that arrives at other passages; the remaining share leads to none.

    `starts` are weights of passages, by row, and `stated` the rows of these passages and of the triples that each states.
    `scale` converts the scores of `compared` to comparable ones.
    """
    ends = _ends(context, starts, stated, compared, scale)
    arrived = []
    for phrase, passages in _passages_titled(context, graph, list(ends)).items():
        rows = np.sort(np.array(passages, np.int64))
        arrived.append((ends[phrase] / len(rows), PassageWeights(rows, np.ones(len(rows)))))
    return PassageWeights.sum_of(*arrived)


def _ends(
    context: QueryContext,
    starts: Mapping[int, float],
    stated: tuple[NDArray[np.int32], NDArray[np.int32]],
    compared: ComparedTriples,
    scale: Scale,
) -> Mapping[int, float]:
    """Returns the phrases that the best triples of the starts lead to, with shares that sum to at most 1."""
    if not starts:
        return {}
    snapshot, (passages, triples) = context.snapshot, stated
    compared_here = context.triple_mask[triples] | ~snapshot.is_statement[triples]
    passages, triples = passages[compared_here], triples[compared_here]
    scaled = scale(compared.of(triples))
    total = sum(starts.values())
    ends: dict[int, float] = {}
    for source, weight in starts.items():
        here = passages == source
        own = title_phrases(snapshot.passage_title(source))
        for triple, chance in _best_triples(snapshot, triples[here], scaled[here]).items():
            for phrase, share in _other_ends(context, triple, own).items():
                ends[phrase] = ends.get(phrase, 0.0) + weight / total * chance * share
    return ends


def _best_triples(snapshot: Snapshot, triples: NDArray[np.int32], scores: NDArray[np.float64]) -> Mapping[int, float]:
    """Returns the rows of the best of a passage's triples with the softmax of their scores; ties are ordered by text."""

    def text(at: int) -> str:
        return "\0".join(snapshot.triple(int(triples[at])))

    best = top_k(scores, HOP_TRIPLES, np.ones(len(scores), np.bool_), text)
    if not best:
        return {}
    return dict(zip(triples[best].tolist(), softmax(scores[best], HOP_TEMPERATURE).tolist(), strict=True))


def _other_ends(context: QueryContext, triple: int, titles: Sequence[str]) -> Mapping[int, float]:
    """Returns the ends of a triple that are not a title of the passage, with shares by node specificity that sum to 1.

    The result is empty if both ends are titles.
    """
    snapshot = context.snapshot
    ends = dict.fromkeys(int(end) for end in snapshot.triple_ends[triple])
    specific = {end: specificity(context, end) for end in ends if snapshot.phrase(end) not in titles}
    total = sum(specific.values())
    return {end: each / total for end, each in specific.items()}


def _passages_titled(context: QueryContext, graph: Adjacency, phrases: list[int]) -> Mapping[int, list[int]]:
    """Returns the passages with each phrase as title, for the phrases that have any."""
    snapshot = context.snapshot
    first = snapshot.n_phrases
    nodes, others, weights = graph.neighbours(np.array(phrases, np.int64))
    to_passages = others >= first
    to_passages[to_passages] = context.taking_part[others[to_passages] - first]
    nodes, rows, weights = nodes[to_passages], others[to_passages] - first, weights[to_passages]
    titled: dict[int, list[int]] = {}
    for phrase in phrases:
        here = nodes == phrase
        passages, counts = rows[here], weights[here]
        if len(passages) > TITLED_PASSAGES:
            # Passages with equal weights all count or none does, so that the order of arrival does not matter.
            threshold = np.partition(counts, -TITLED_PASSAGES)[-TITLED_PASSAGES]
            enough = counts >= threshold
            passages = passages[enough if enough.sum() <= 2 * TITLED_PASSAGES else counts > threshold]
        name = snapshot.phrase(phrase)
        found = [int(row) for row in passages if name in title_phrases(snapshot.passage_title(int(row)))]
        if found:
            titled[phrase] = found
    return titled
