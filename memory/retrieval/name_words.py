"""Compares document names with a query by words, and adds the scores to the documents' passages.

A document's name often does not occur in its passages: the text of "Zaehler 5571.pdf" may have another title. So BM25 also
compares the query with each document's names (`store.links.names`), and each passage of the document gets this score in
addition. The order of one document's passages does not change.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.passage_weights import Floats, PassageWeights
from store.index.words.postings import ComparedWords
from store.snapshot import Snapshot

NAMES_WEIGHT = 0.5
"""Weight of the BM25 of a document's names, relative to the BM25 of a passage's words."""
NAMED_DOCUMENTS = 50
"""Number of document names used for a query: the best by BM25, including ties."""
MAX_NAMED_DOCUMENTS = 1_000
"""Maximum number of these names. If ties exceed it, the names with the lowest score are not searched in the query. For example,
thousands of documents may be named after their folder."""


@dataclass(frozen=True, slots=True)
class NameWords:
    """`names` contains the rows of the best names, at most `MAX_NAMED_DOCUMENTS`.

    `scores` contains the scores of the passages in documents with these names: the best BM25 of a passage's documents' names.
    `coverage` is the share of the query that those names cover, as in `ComparedWords.coverage`."""

    names: NDArray[np.int64]
    scores: PassageWeights
    coverage: PassageWeights


def compare_names(
    snapshot: Snapshot, query: str, taking_part: NDArray[np.bool_], counted: NDArray[np.bool_]
) -> NameWords:
    """Compares a query with the names of the documents that contain the passages of the mask `taking_part`.

    The rarity of words is computed from the names of the documents that contain passages of the mask `counted`.
    """
    found = snapshot.compare_names(query, NAMED_DOCUMENTS, taking_part, counted)
    names, held, _ = snapshot.naming.entries(found.rows)
    inside = taking_part[held]
    places, passages = np.searchsorted(found.rows, names[inside]), held[inside].astype(np.int64)
    rows = found.rows
    if len(rows) > MAX_NAMED_DOCUMENTS:
        rows = rows[found.scores > found.scores.min()]
    return NameWords(
        rows,
        _best_of_each(passages, found.scores[places].astype(np.float64)),
        _best_of_each(passages, found.coverage[places]),
    )


def with_names(words: ComparedWords, names: NameWords, best: int) -> ComparedWords:
    """Adds the scores of names to the scores of words; returns the `best` passages, including ties."""
    scores = words.scores + NAMES_WEIGHT * names.scores.of(words.rows).astype(np.float32)
    coverage = np.maximum(words.coverage, names.coverage.of(words.rows))
    kept = np.flatnonzero(scores > 0)
    if len(kept) > best:
        kept = kept[scores[kept] >= np.partition(scores[kept], -best)[-best]]
    return ComparedWords(words.rows[kept], scores[kept], coverage[kept], words.rarities)


def _best_of_each(passages: NDArray[np.int64], values: Floats) -> PassageWeights:
    """Returns the largest value of each passage."""
    rows, places = np.unique(passages, return_inverse=True)
    best = np.zeros(len(rows))
    np.maximum.at(best, places, values)
    return PassageWeights(rows, best)
