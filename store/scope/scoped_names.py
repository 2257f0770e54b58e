"""The names in a scope: copied for passages of its documents alone, recomputed for passages that other documents contain
too."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.index.columns.texts import Texts
from store.index.live_index import LiveIndex
from store.links.names import names_text
from store.scope.frozen_index import FrozenIndex
from store.scope.scoped_postings import ScopedPostings
from store.types import Document


def take_names(
    index: LiveIndex,
    whole: FrozenIndex,
    documents: Mapping[str, Document],
    places: NDArray[np.int32],
    shared: Iterable[int],
) -> None:
    """Fills the names of `index`, whose holders and passages are set.

    `places`: by passage row of `whole`, the row in the scope if only `documents` contain the passage, or -1. `shared`: rows in
    the scope of the passages that other documents contain too.
    """
    there = whole.snapshot.naming.merged().tocoo()
    columns = places[there.col]
    inside = columns >= 0
    rows, names = np.unique(there.row[inside], return_inverse=True)
    index.names = Texts()
    index.names.extend(whole.index.names[row] for row in rows.tolist())
    index.name_rows = {text: row for row, text in enumerate(index.names)}
    index.name_postings = ScopedPostings(whole.index.name_postings, rows, there.shape[0])
    naming = sparse.csr_array((there.data[inside], (names, columns[inside])), shape=index.shape("naming"))
    index.swap_in_naming(naming)
    named: list[tuple[int, int, float]] = []
    found: dict[str, int] = {}
    for place in shared:
        for uri in index.holders[place]:
            if uri not in found:
                found[uri] = _row(index, names_text(documents[uri]))
            if found[uri] >= 0:
                named.append((found[uri], place, 1.0))
    index.change_names(named)


def _row(index: LiveIndex, text: str) -> int:
    """Returns the row of some names, adding it if necessary; -1 for no names."""
    if text and text not in index.name_rows:
        index.add_names([text])
    return index.name_rows[text] if text else -1
