"""Where `fused` begins among the passages: the nearest, those with the query's words, and those that it names by their titles.

All are reset weights of shape (n_passages,). How sure a start is decides its share, no constant does. Titles that the query
spells out have as much as the query consists of them. The rest is shared by cosines and words, each as concentrated as it is:
a softmax that gives one passage everything counts for more than one that is spread over fifty. Cosines count for as much of
the query as the encoder has words for, words for as much as the passages that have some of them have of it. Where the encoder
knows only a part of the query, passages count too that both speak for.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.linking.query_titles import NamedTitle, share_of_query
from memory.retrieval.query_context import Floats, QueryContext
from memory.retrieval.score_scaling import softmax
from memory.retrieval.top_k import EQUAL_SCORES, candidates, cosines
from memory.retrieval.word_parts import PARTS_WEIGHT, compare_parts

START_PASSAGES = 50
"""How many passages of one kind are starts. The weights of the rest are noise, whose sum would grow with the memory."""
WORD_TEMPERATURE = 0.1
"""How far from the best a passage may lie by its words, as a share of the best one's score."""


def passage_starts(context: QueryContext, titles: Sequence[NamedTitle]) -> Floats:
    """Reset weights that sum to 1; all 0 if there is nothing to begin at."""
    scores, known = word_scores(context), context.known_share
    nearest, worded = nearest_passages(context), passages_with_words(scores)
    covered = float(worded[context.words.rows] @ context.words.coverage)
    parts = [(_concentration(nearest) * known, nearest), (_concentration(worded) * covered, worded)]
    if known < 1.0:
        both = passages_by_both(context, (nearest > 0) | (worded > 0), scores)
        parts.append((_concentration(both) * (1.0 - known), both))
    unnamed = _mixed(*parts)
    share = share_of_query(context, titles)
    return _mixed((share, passages_named(context, titles)), (1.0 - share, unnamed))


def _mixed(*parts: tuple[float, Floats]) -> Floats:
    """The weights of the parts that have any, each scaled to its share; they sum to 1, or are all 0."""
    found = [(share, weights / weights.sum()) for share, weights in parts if share > 0 and weights.any()]
    total = sum(share for share, _ in found)
    out: Floats = np.zeros(len(parts[0][1]))
    for share, weights in found:
        out += share / total * weights
    return out


def _concentration(weights: Floats) -> float:
    """Sum of squares (Simpson's index) of weights that sum to 1: 1 where one has everything, 1 / n where n have the same."""
    return float((weights**2).sum())


def nearest_passages(context: QueryContext) -> Floats:
    """The passages nearest to the query, by the softmax of their cosines' standard scores; all 0 where cosines say nothing."""
    if context.passages_by_words:
        return np.zeros(context.snapshot.n_passages)
    alive = context.passages_compared
    if (error := context.passage_scores.error) <= EQUAL_SCORES:
        return _softmax_of_best(context.cosine_scale(context.similarities), alive, context.settings.temperature)
    rows = candidates(context.similarities, START_PASSAGES, alive, error)
    exact: Floats = np.zeros(len(alive))
    exact[rows] = _standard_cosines(context, rows)
    return _softmax_of_best(exact, _mask(rows, len(alive)), context.settings.temperature)


def word_scores(context: QueryContext) -> Floats:
    """What passages have of the query's words, as shares of the best one's, shape (n_passages,); all 0 if none has any.

    A score is BM25 of the words and of their parts, among the best by words.
    """
    rows = context.word_candidates
    scores: Floats = np.zeros(context.snapshot.n_passages)
    if not rows:
        return scores
    with context.stage("words"):
        texts = [context.snapshot.passage(row).full for row in rows]
        parts = compare_parts(context.query, texts, context.snapshot.passage_lengths(rows))
    scores[rows] = context.words.scores_of(rows) + PARTS_WEIGHT * parts
    scores /= scores.max()
    return scores


def passages_with_words(scores: Floats) -> Floats:
    """The passages with the query's words, by the softmax of their `word_scores`; all 0 if none has any."""
    return _softmax_of_best(scores, scores > 0, WORD_TEMPERATURE)


def passages_by_both(context: QueryContext, among: NDArray[np.bool_], scores: Floats) -> Floats:
    """The passages of the mask `among` by the geometric mean of what words and cosines give them.

    `scores` are `word_scores`; cosines have as much of a part as the encoder knows of the query. A passage that it does not
    know is as near as the mean of all.
    """
    rows = np.flatnonzero(among)
    weights: Floats = np.zeros(len(among))
    if not len(rows):
        return weights
    near: Floats = np.zeros(len(rows))
    if not context.passages_by_words:
        near = np.where(context.passages_compared[rows], _standard_cosines(context, rows), 0.0)
    logs = scores[rows] / WORD_TEMPERATURE + context.known_share * near / context.settings.temperature
    weights[rows] = softmax(logs / 2, 1.0)
    return weights


def _standard_cosines(context: QueryContext, rows: NDArray[Any]) -> Floats:
    """The exact cosines of passages with the query, in standard deviations above the mean of all, shape (len(rows),)."""
    return context.cosine_scale(cosines(context.snapshot.passage_vectors, context.vector, rows))


def passages_named(context: QueryContext, titles: Sequence[NamedTitle]) -> Floats:
    """The passages that bear a title which stands in the query. Each title has one part, which its passages share."""
    weights: Floats = np.zeros(context.snapshot.n_passages)
    for title in titles:
        weights[list(title.passages)] += 1.0 / len(title.passages)
    return weights


def _mask(rows: NDArray[Any], count: int) -> NDArray[np.bool_]:
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    return mask


def _softmax_of_best(scores: NDArray[np.float64], alive: NDArray[np.bool_], temperature: float) -> Floats:
    """The softmax over the best `START_PASSAGES` living rows, and all that equal the last of them; shape (n_passages,)."""
    weights: Floats = np.zeros(len(scores))
    rows = np.flatnonzero(alive)
    if len(rows) > START_PASSAGES:
        least = np.partition(scores[rows], -START_PASSAGES)[-START_PASSAGES]
        rows = rows[scores[rows] >= least]
    if len(rows):
        weights[rows] = softmax(scores[rows], temperature)
    return weights
