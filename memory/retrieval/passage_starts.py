"""Where `fused` begins among the passages: the nearest, those with the query's words, and those that it names by their titles.

All are reset weights. How sure a start is decides its share, no constant does. Titles that the query
spells out have as much as the query consists of them. The rest is shared by cosines and words, each as concentrated as it is:
a softmax that gives one passage everything counts for more than one that is spread over fifty. Cosines count for as much of
the query as the encoder has words for, words for as much as the passages that have some of them have of it. Passages that
cosines and words both speak for count too, where the encoder knows only a part of the query or the query names no title.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.linking.query_titles import NamedTitle, share_of_query
from memory.retrieval.passage_weights import Floats, PassageWeights
from memory.retrieval.query_context import START_PASSAGES, QueryContext
from memory.retrieval.score_scaling import softmax
from memory.retrieval.top_k import cosines
from memory.retrieval.word_parts import PARTS_WEIGHT, compare_parts

WORD_TEMPERATURE = 0.1
"""How far from the best a passage may lie by its words, as a share of the best one's score."""

NOTHING = PassageWeights(np.empty(0, np.int64), np.empty(0))


def passage_starts(context: QueryContext, titles: Sequence[NamedTitle]) -> PassageWeights:
    """Reset weights that sum to 1; none if there is nothing to begin at."""
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


def _mixed(*parts: tuple[float, PassageWeights]) -> PassageWeights:
    """The weights of the parts that have any, each scaled to its share; they sum to 1, or there are none."""
    found = [(share, part) for share, part in parts if share > 0 and len(part.rows)]
    total = sum(share for share, _ in found)
    return PassageWeights.sum_of(*((share / total / part.total, part) for share, part in found))


def _concentration(part: PassageWeights) -> float:
    """Sum of squares (Simpson's index) of weights that sum to 1: 1 where one has everything, 1 / n where n have the same."""
    return float((part.weights**2).sum())


def nearest_passages(context: QueryContext) -> PassageWeights:
    """The passages nearest to the query, by the softmax of their cosines' standard scores; none where cosines say nothing."""
    if context.passages_by_words:
        return NOTHING
    rows, near = context.nearest_cosines
    return _softmax_of_best(rows, context.cosine_scale(near), context.settings.temperature)


def word_scores(context: QueryContext) -> PassageWeights:
    """What passages have of the query's words, as shares of the best one's.

    A score is BM25 of the words and of their parts, among the best by words.
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
    """The passages with the query's words, by the softmax of their `word_scores`."""
    return _softmax_of_best(scores.rows, scores.weights, WORD_TEMPERATURE)


def passages_by_both(context: QueryContext, rows: NDArray[np.int64], scores: PassageWeights) -> PassageWeights:
    """The passages of `rows` by the geometric mean of what words and cosines give them.

    `scores` are `word_scores`; cosines have as much of a part as the encoder knows of the query. A passage that it does not
    know is as near as the mean of all.
    """
    if not len(rows):
        return NOTHING
    near: Floats = np.zeros(len(rows))
    if not context.passages_by_words:
        near = np.where(context.passages_compared[rows], _standard_cosines(context, rows), 0.0)
    logs = scores.of(rows) / WORD_TEMPERATURE + context.known_share * near / context.settings.temperature
    return PassageWeights(rows, softmax(logs / 2, 1.0))


def _standard_cosines(context: QueryContext, rows: NDArray[Any]) -> Floats:
    """The exact cosines of passages with the query, in standard deviations above the mean of all, shape (len(rows),)."""
    return context.cosine_scale(cosines(context.snapshot.passage_vectors, context.vector, rows))


def passages_named(context: QueryContext, titles: Sequence[NamedTitle], scores: PassageWeights) -> PassageWeights:
    """The passages that bear a title which stands in the query. Each title has one part.

    Passages with the title share it evenly, those of a document with the name by their `scores` and cosines: most of a long
    document says nothing of the question.
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
    """The softmax over the best `START_PASSAGES` of `rows`, which are in order, and all that equal the last of them."""
    if len(rows) > START_PASSAGES:
        enough = scores >= np.partition(scores, -START_PASSAGES)[-START_PASSAGES]
        rows, scores = rows[enough], scores[enough]
    if not len(rows):
        return NOTHING
    weights = softmax(scores, temperature)
    return PassageWeights(rows[weights > 0], weights[weights > 0])
