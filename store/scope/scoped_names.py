"""The names in a scope: copied for passages of its documents alone, recomputed for passages that other documents contain
too."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from store.index.live_index import LiveIndex
from store.links.names import names_text
from store.types import Document


def take_names(
    index: LiveIndex,
    whole: LiveIndex,
    documents: Mapping[str, Document],
    places: NDArray[np.int32],
    shared: Iterable[int],
) -> None:
    """Fills the names of `index`, whose holders and passages are set.

    `places`: by passage row of `whole`, the row in the scope if only `documents` contain the passage, or -1. `shared`: rows in
    the scope of the passages that other documents contain too.
    """
    there = whole.matrices["naming"].view().merged().tocoo()
    columns = places[there.col]
    inside = columns >= 0
    rows, names = np.unique(there.row[inside], return_inverse=True)
    index.names.take(whole.names, rows, there.shape[0])
    index.change_names((names, columns[inside], there.data[inside]))
    index.matrices["naming"].fold()
    named: list[tuple[int, int]] = []
    found: dict[str, int] = {}
    for place in shared:
        for uri in index.holders[place]:
            if uri not in found:
                found[uri] = _row(index, names_text(documents[uri]))
            if found[uri] >= 0:
                named.append((found[uri], place))
    rows, passages = np.array(named, np.int64).reshape(-1, 2).T
    index.change_names((rows, passages, np.ones(len(rows))))


def _row(index: LiveIndex, text: str) -> int:
    """Returns the row of some names, adding it if necessary; -1 for no names."""
    if text and text not in index.names.rows:
        index.names.add([text])
    return index.names.rows[text] if text else -1
