"""The synonym search for phrases with rows in the index: for building a scope or recomputing edges."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from store.fixed_point import no_vectors
from store.index.live_index import LiveIndex
from store.index.synonyms.nearest_pairs import Rows, Scored
from store.index.synonyms.search import Wanted, similar
from store.types import SynonymRule


def searcher(index: LiveIndex, can: NDArray[np.bool_], rule: SynonymRule) -> Callable[[Rows, Wanted], Iterator[Scored]]:
    """Returns the `search` of a `SynonymPlanner`. `can`: the phrases that can have synonyms."""
    wordings, nothing = index.wordings.view(), no_vectors(index.dim)

    def search(rows: Rows, wanted: Wanted) -> Iterator[Scored]:
        return similar(
            index.phrase_vectors.view(),
            nothing,
            can,
            rows,
            rule.threshold,
            index.sketches,
            wanted=wanted,
            through_bands=index.uses_bands,
            wording=wordings.__getitem__,
        )

    return search
