"""The synonym search for phrases with rows in the index: for building a scope or recomputing edges."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from store.fixed_point import no_vectors
from store.index.live_index import LiveIndex
from store.index.synonyms.pairs import Rows, Scored
from store.index.synonyms.phrase_variants import pair_rule
from store.index.synonyms.search import similar
from store.types import SynonymRule


def searcher(index: LiveIndex, can: NDArray[np.bool_], rule: SynonymRule) -> Callable[[Rows], Iterator[Scored]]:
    """Returns the `search` of a `SynonymPlanner`. `can`: the phrases that can have synonyms."""
    nothing, by_texts = no_vectors(index.dim), pair_rule(rule, index.phrases.__getitem__)

    def search(rows: Rows) -> Iterator[Scored]:
        return similar(
            index.phrase_vectors.view(),
            nothing,
            can,
            rows,
            rule.threshold,
            index.sketches,
            through_bands=index.uses_bands,
            pair_rule=by_texts,
        )

    return search
