"""The names of documents beside a query: which documents it names in words, and what their passages gain by that.

A name often stands nowhere in the passages that it is the name of: "Zaehler 5571.pdf" has a title of its own. So BM25 compares
the query with the names of each document too (`store.links.names`), and each passage of a document has that score beside its
own words'. It ranks no passages of one document above others of it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.passage_weights import Floats, PassageWeights
from store.index.bm25 import ComparedWords
from store.snapshot import Snapshot

NAMES_WEIGHT = 0.5
"""What BM25 of a document's names counts beside BM25 of a passage's words."""
NAMED_DOCUMENTS = 50
"""How many names of documents, the best by BM25, and all that equal the last of them, count for a query."""


@dataclass(frozen=True, slots=True)
class NameWords:
    """`names`: the rows of the best names. `scores`: of the passages of their documents, the best BM25 of a document's names.
    `coverage`: how much of the query those names are, as `ComparedWords.coverage`."""

    names: NDArray[np.int64]
    scores: PassageWeights
    coverage: PassageWeights


def compare_names(
    snapshot: Snapshot, query: str, taking_part: NDArray[np.bool_], counted: NDArray[np.bool_]
) -> NameWords:
    """Compares a query with the names of the documents of the passages `taking_part`. How rare a word is comes from those of
    the passages `counted`."""
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
    """The passages with the `best` scores by words and names together, and all that equal the last of them."""
    scores = words.scores + NAMES_WEIGHT * names.scores.of(words.rows).astype(np.float32)
    coverage = np.maximum(words.coverage, names.coverage.of(words.rows))
    kept = np.flatnonzero(scores > 0)
    if len(kept) > best:
        kept = kept[scores[kept] >= np.partition(scores[kept], -best)[-best]]
    return ComparedWords(words.rows[kept], scores[kept], coverage[kept], words.rarities)


def _best_of_each(passages: NDArray[np.int64], values: Floats) -> PassageWeights:
    """The largest of the values of each passage."""
    rows, places = np.unique(passages, return_inverse=True)
    best = np.zeros(len(rows))
    np.maximum.at(best, places, values)
    return PassageWeights(rows, best)
