"""Compares document names with a query by words, and adds the result to the scores of the documents' passages.

A document's name often does not occur in its passages: the content of "Zaehler 5571.pdf" may have a title of its own. BM25
therefore also compares the query with each document's names (`store.links.names`), and adds that score to the score of each of
its passages. The order of one document's passages does not change.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.passage_weights import Floats, PassageWeights
from store.index.words.postings import ComparedWords
from store.snapshot import Snapshot

NAMES_WEIGHT = 0.5
"""Weight of BM25 of a document's names, relative to BM25 of a passage's words."""
NAMED_DOCUMENTS = 50
"""Number of document names that count for a query, the best by BM25; names with the score of the last one count too."""


@dataclass(frozen=True, slots=True)
class NameWords:
    """`names` are the rows of the best names.

    `scores` contains, for the passages of their documents, the best BM25 of a document's names. `coverage` is how much of the
    query those names cover, as `ComparedWords.coverage`.
    """

    names: NDArray[np.int64]
    scores: PassageWeights
    coverage: PassageWeights


def compare_names(
    snapshot: Snapshot, query: str, taking_part: NDArray[np.bool_], counted: NDArray[np.bool_]
) -> NameWords:
    """Compares a query with the document names of the passages `taking_part`.

    The rarity of words is computed from the names of the passages `counted`.
    """
    found = snapshot.compare_names(query, NAMED_DOCUMENTS, taking_part, counted)
    names, held, _ = snapshot.naming.entries(found.rows)
    inside = taking_part[held]
    places, passages = np.searchsorted(found.rows, names[inside]), held[inside].astype(np.int64)
    return NameWords(
        found.rows,
        _best_of_each(passages, found.scores[places].astype(np.float64)),
        _best_of_each(passages, found.coverage[places]),
    )


def with_names(words: ComparedWords, names: NameWords, best: int) -> ComparedWords:
    """Returns the passages with the `best` scores by words and names together, and all with the score of the last of them."""
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
