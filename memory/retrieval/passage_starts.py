"""Computes the start passages of `fused`, and the passages that they lead to.

The starts are the nearest passages, the passages with the query's words, and the passages whose title occurs in the query.

All starts have reset weights. The shares of the three kinds depend on their reliability, not on constants. Titled passages get
the share of the query that their titles make up. The remaining weight is divided between cosines and words. A softmax that
gives one passage all the weight gets a larger share than a softmax spread over fifty passages. The share of cosines is
multiplied by the share of the query that the encoder knows; the share of words is multiplied by the share of the query that the
passages cover. If the encoder knows only a part of the query, or if the query contains no title, passages that both cosines and
words support get an additional share.

The answer to a question is often in a second passage that belongs to the passage named in the query. To find it, a start
passage's triples are ranked by their similarity to the query, as PropRAG ranks its beams (arXiv 2504.18070), but only one hop
deep and without encoding. For example, "composer of the film" selects ("billy elliot", "music by", "stephen warbeck") among all
triples of the film's passage. The next passages are those whose title is the other phrase of such a triple.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.char_ngrams import PARTS_WEIGHT, compare_parts
from memory.retrieval.linking.phrases import specificity
from memory.retrieval.linking.query_titles import NamedTitle, share_of_query, title_phrases
from memory.retrieval.linking.triples import ComparedTriples
from memory.retrieval.passage_weights import Floats, PassageWeights
from memory.retrieval.query_context import START_PASSAGES, QueryContext
from memory.retrieval.score_scaling import Scale, softmax
from memory.retrieval.top_k import best_first, top_k
from store.index.graph.adjacency import Adjacency
from store.snapshot import Snapshot

WORD_TEMPERATURE = 0.1
"""Softmax temperature of word scores, which are divided by the best score."""
HEAVIEST_STARTS = 5
"""Number of starts whose triples are followed. A linked triple gives seeds only if one of these starts states it."""
START_DECIMALS = 12
"""Number of decimals of a start's weight that determine the order of starts."""
NOTHING = PassageWeights(np.empty(0, np.int64), np.empty(0))

HOP_TRIPLES = 10
"""Number of triples per start passage that are followed: those nearest to the query."""
HOP_TEMPERATURE = 1.0
"""Softmax temperature of a passage's triples, in standard deviations over all triples. It is larger than the temperature of all
triples, because triples of one passage differ in few words only, those about the detail of the question."""
TITLED_PASSAGES = 20
"""Maximum number of passages per phrase whose titles are compared: those that state most about the phrase."""


def passage_starts(context: QueryContext, titles: Sequence[NamedTitle]) -> PassageWeights:
    """Returns reset weights that sum to 1; none if there are no starts."""
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
    """Returns the weights of the `HEAVIEST_STARTS` heaviest starts, by row, heaviest first.

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
    """Returns the weighted sum of the parts, scaled to sum to 1; empty if all parts are empty."""
    found = [(share, part) for share, part in parts if share > 0 and len(part.rows)]
    total = sum(share for share, _ in found)
    return PassageWeights.sum_of(*((share / total / part.total, part) for share, part in found))


def _concentration(part: PassageWeights) -> float:
    """Returns the sum of squares (Simpson's index) of weights that sum to 1. It is 1 for a single start, and 1 / n for n equal
    starts."""
    return float((part.weights**2).sum())


def nearest_passages(context: QueryContext) -> PassageWeights:
    """Returns the passages nearest to the query, weighted by the softmax of their cosines' standard scores; none without
    cosines."""
    if context.passages_by_words:
        return NOTHING
    rows, near = context.nearest_cosines
    return _softmax_of_best(rows, context.cosine_scale(near), context.temperature)


def word_scores(context: QueryContext) -> PassageWeights:
    """Returns how well passages match the query's words: scores divided by the best score.

    A score is the BM25 of the words plus the weighted BM25 of their parts, for the best passages by words.
    """
    rows = np.sort(np.array(context.word_candidates, np.int64))
    if not len(rows):
        return NOTHING
    snapshot, numbers = context.snapshot, rows.tolist()
    with context.stage("words"):
        ids = [snapshot.passage_id(row) for row in numbers]
        lengths = snapshot.passage_lengths(numbers)
        parts = compare_parts(context.query, ids, lambda place: snapshot.passage(numbers[place]).full, lengths)
    scores = context.words.scores_of(numbers) + PARTS_WEIGHT * parts
    return PassageWeights(rows, scores / scores.max())


def passages_with_words(scores: PassageWeights) -> PassageWeights:
    """Returns the passages with the query's words, weighted by the softmax of their `word_scores`."""
    return _softmax_of_best(scores.rows, scores.weights, WORD_TEMPERATURE)


def passages_by_both(context: QueryContext, rows: NDArray[np.int64], scores: PassageWeights) -> PassageWeights:
    """Returns the passages of `rows`, weighted by the geometric mean of their weights by words and by cosines.

    `scores`: the `word_scores`. The logarithm of the weight by cosines is multiplied by the share of the query that the encoder
    knows. A passage that the encoder does not know gets the mean cosine.
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
    return context.cosine_scale(context.exact_cosines(rows))


def passages_named(context: QueryContext, titles: Sequence[NamedTitle], scores: PassageWeights) -> PassageWeights:
    """Returns the passages whose title occurs in the query. Each title gets an equal weight.

    Passages with the same title divide its weight equally. The passages of a document divide the weight of its name by `scores`
    and cosines, because most of a long document is irrelevant to the question.
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
    """Returns the softmax over the best `START_PASSAGES` of `rows`, including ties. `rows` must be sorted."""
    if len(rows) > START_PASSAGES:
        enough = scores >= np.partition(scores, -START_PASSAGES)[-START_PASSAGES]
        rows, scores = rows[enough], scores[enough]
    if not len(rows):
        return NOTHING
    weights = softmax(scores, temperature)
    return PassageWeights(rows[weights > 0], weights[weights > 0])


def next_passages(
    context: QueryContext,
    starts: Mapping[int, float],
    stated: tuple[NDArray[np.int32], NDArray[np.int32]],
    graph: Adjacency,
    compared: ComparedTriples,
    scale: Scale,
) -> PassageWeights:
    """Returns the share of the starts' weight that arrives at next passages; the remaining weight is lost.

    `starts`: weights of passages, by row. `stated`: two arrays, (row of a start, row of a triple that it states). `scale`:
    converts the scores of `compared` to standard scores.
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
        titles = {snapshot.phrase_row(phrase) for phrase in title_phrases(snapshot.passage_title(source))}
        best, chances = _best_triples(snapshot, triples[here], scaled[here])
        for (subject, object_), chance in zip(snapshot.triple_ends[best].tolist(), chances.tolist(), strict=True):
            # The ends share the triple's weight by node specificity.
            specific = {end: specificity(context, end) for end in (subject, object_) if end not in titles}
            whole = sum(specific.values())
            for phrase, each in specific.items():
                ends[phrase] = ends.get(phrase, 0.0) + weight / total * chance * (each / whole)
    return ends


def _best_triples(snapshot: Snapshot, triples: NDArray[np.int32], scores: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Returns the rows of the best of a passage's triples and the softmax of their scores; ties are ordered by text."""
    best = best_first(scores, triples, HOP_TRIPLES, lambda row: "\0".join(snapshot.triple(row)))
    return triples[best], softmax(scores[best], HOP_TEMPERATURE) if best else scores


def _passages_titled(context: QueryContext, graph: Adjacency, phrases: list[int]) -> Mapping[int, list[int]]:
    """Returns for each phrase the passages that have it as title, without phrases that have none."""
    snapshot = context.snapshot
    first = snapshot.n_phrases
    nodes, others, weights = graph.neighbours(np.array(phrases, np.int64))
    to_passages = others >= first
    to_passages[to_passages] = context.taking_part[others[to_passages] - first]
    nodes, rows, weights = nodes[to_passages], others[to_passages] - first, weights[to_passages]
    titled: dict[int, list[int]] = {}
    begins, ends = (np.searchsorted(nodes, phrases, side).tolist() for side in ("left", "right"))
    for phrase, begin, end in zip(phrases, begins, ends, strict=True):
        passages, counts = rows[begin:end], weights[begin:end]
        if len(passages) > TITLED_PASSAGES:
            # Passages with equal weights count either all or not at all, so that the order of arrival does not matter.
            threshold = np.partition(counts, -TITLED_PASSAGES)[-TITLED_PASSAGES]
            enough = counts >= threshold
            passages = passages[enough if enough.sum() <= 2 * TITLED_PASSAGES else counts > threshold]
        name = snapshot.phrase(phrase)
        found = [row for row in passages.tolist() if name in title_phrases(snapshot.passage_title(row))]
        if found:
            titled[phrase] = found
    return titled
