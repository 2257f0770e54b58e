"""Start passages of `fused`: the nearest ones, those with the query's words, and those that the query names by their titles.

All starts have reset weights. Their shares depend on how reliable each kind is, and not on constants. Passages named by titles
get the share of the query that consists of these titles. Cosines and words share the remaining weight according to their
concentration: a softmax that gives one passage all the weight counts more than one that is spread over fifty. The share of
cosines is scaled by how much of the query the encoder knows, and the share of words by how much of the query the passages
cover. Passages that both cosines and words support get a share of their own if the encoder knows only a part of the query or
the query names no title.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.char_ngrams import PARTS_WEIGHT, compare_parts
from memory.retrieval.linking.query_titles import NamedTitle, share_of_query
from memory.retrieval.passage_weights import Floats, PassageWeights
from memory.retrieval.query_context import START_PASSAGES, QueryContext
from memory.retrieval.score_scaling import softmax
from memory.retrieval.top_k import cosines, top_k

WORD_TEMPERATURE = 0.1
"""Softmax temperature of word scores, as a share of the best score."""

HEAVIEST_STARTS = 5
"""Number of starts whose triples are followed, and of which one must state a linked triple."""
START_DECIMALS = 12
"""Decimals of a start's weight that determine the order of starts."""

NOTHING = PassageWeights(np.empty(0, np.int64), np.empty(0))


def passage_starts(context: QueryContext, titles: Sequence[NamedTitle]) -> PassageWeights:
    """Returns reset weights that sum to 1, or none if there are no starts."""
    scores, known, words = word_scores(context), context.known_share, context.words
    nearest, worded = nearest_passages(context), passages_with_words(scores)
    covered = float(worded.of(words.rows) @ words.coverage)
    parts = [(_concentration(nearest) * known, nearest), (_concentration(worded) * covered, worded)]
    agreement = 1.0 - known if titles else 1.0
    if agreement:
        both = passages_by_both(context, np.union1d(nearest.rows, worded.rows), scores)
        parts.append((_concentration(both) * agreement, both))
    unnamed = _mixed(*parts)
    share = share_of_query(context, titles)
    return _mixed((share, passages_named(context, titles, scores)), (1.0 - share, unnamed))


def heaviest_starts(context: QueryContext, starts: PassageWeights) -> dict[int, float]:
    """Returns the rows of the `HEAVIEST_STARTS` starts with the largest weights, heaviest first, with their weights.

    Ties are ordered by passage id.
    """
    snapshot = context.snapshot
    heaviest = top_k(
        starts.weights,
        HEAVIEST_STARTS,
        starts.weights > 0,
        lambda at: snapshot.passage_id(int(starts.rows[at])),
        START_DECIMALS,
    )
    return dict(zip(starts.rows[heaviest].tolist(), starts.weights[heaviest].tolist(), strict=True))


def _mixed(*parts: tuple[float, PassageWeights]) -> PassageWeights:
    """Returns the weighted sum of the non-empty parts, scaled so that the weights sum to 1; empty if all parts are."""
    found = [(share, part) for share, part in parts if share > 0 and len(part.rows)]
    total = sum(share for share, _ in found)
    return PassageWeights.sum_of(*((share / total / part.total, part) for share, part in found))


def _concentration(part: PassageWeights) -> float:
    """Returns the sum of squares (Simpson's index) of weights that sum to 1: 1 for a single start, 1 / n for n equal ones."""
    return float((part.weights**2).sum())


def nearest_passages(context: QueryContext) -> PassageWeights:
    """Returns the passages nearest to the query by the softmax of their cosines' standard scores; none if cosines are not
    available."""
    if context.passages_by_words:
        return NOTHING
    rows, near = context.nearest_cosines
    return _softmax_of_best(rows, context.cosine_scale(near), context.temperature)


def word_scores(context: QueryContext) -> PassageWeights:
    """Returns how well passages match the query's words, as shares of the best score.

    A score is BM25 of the words plus weighted BM25 of their parts, computed for the best passages by words.
    """
    rows = np.sort(np.array(context.word_candidates, np.int64))
    if not len(rows):
        return NOTHING
    with context.stage("words"):
        texts = [context.snapshot.passage(row).full for row in rows.tolist()]
        parts = compare_parts(context.query, texts, context.snapshot.passage_lengths(rows.tolist()))
    scores = context.words.scores_of(rows.tolist()) + PARTS_WEIGHT * parts
    return PassageWeights(rows, scores / scores.max())


def passages_with_words(scores: PassageWeights) -> PassageWeights:
    """Returns the passages with the query's words, by the softmax of their `word_scores`."""
    return _softmax_of_best(scores.rows, scores.weights, WORD_TEMPERATURE)


def passages_by_both(context: QueryContext, rows: NDArray[np.int64], scores: PassageWeights) -> PassageWeights:
    """Returns the passages of `rows`, weighted by the geometric mean of their weights by words and by cosines.

    `scores` are `word_scores`. The weight of cosines is scaled by how much of the query the encoder knows. A passage that the
    encoder does not know has the mean cosine.
    """
    if not len(rows):
        return NOTHING
    near: Floats = np.zeros(len(rows))
    if not context.passages_by_words:
        near = np.where(context.passage_mask[rows], _standard_cosines(context, rows), 0.0)
    logs = scores.of(rows) / WORD_TEMPERATURE + context.known_share * near / context.temperature
    return PassageWeights(rows, softmax(logs / 2, 1.0))


def _standard_cosines(context: QueryContext, rows: NDArray[Any]) -> Floats:
    """Returns the exact cosines of passages in standard deviations above the mean of all, shape (len(rows),)."""
    return context.cosine_scale(cosines(context.snapshot.passage_vectors, context.vector, rows))


def passages_named(context: QueryContext, titles: Sequence[NamedTitle], scores: PassageWeights) -> PassageWeights:
    """Returns the passages whose title occurs in the query. Each title gets an equal part.

    Passages with the same title share its part equally. For a document's name, its passages share the part by `scores` and
    cosines, because most of a long document is irrelevant to the question.
    """
    parts = []
    for title in titles:
        rows = np.sort(np.array(title.passages, np.int64))
        if title.of_document:
            parts.append((1.0, passages_by_both(context, rows, scores)))
        else:
            parts.append((1.0 / len(rows), PassageWeights(rows, np.ones(len(rows)))))
    return PassageWeights.sum_of(*parts)


def _softmax_of_best(rows: NDArray[np.int64], scores: Floats, temperature: float) -> PassageWeights:
    """Returns the softmax over the best `START_PASSAGES` of the sorted `rows`, and all with the score of the last of them."""
    if len(rows) > START_PASSAGES:
        enough = scores >= np.partition(scores, -START_PASSAGES)[-START_PASSAGES]
        rows, scores = rows[enough], scores[enough]
    if not len(rows):
        return NOTHING
    weights = softmax(scores, temperature)
    return PassageWeights(rows[weights > 0], weights[weights > 0])
