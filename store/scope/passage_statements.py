"""The triples of a passage that only some of its documents contain."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from store.index.columns.row_lists import NO_ROWS
from store.index.effective_triples import UpstreamTriples, supplied_triples
from store.index.load import rows_of
from store.scope.frozen_index import FrozenIndex


def effective_rows(
    whole: FrozenIndex, holders: Mapping[str, UpstreamTriples], extracted: NDArray[np.int32] | None
) -> NDArray[np.int32]:
    """Returns the rows in `whole` of a passage's triples within the documents `holders`.

    Raises KeyError if a purge removed one of the triples.
    """
    if (supplied := supplied_triples(holders)) is None:
        return extracted if extracted is not None else NO_ROWS
    rows = rows_of(whole.index, supplied)
    if len(rows) and rows[-1] >= whole.snapshot.n_triples:
        raise KeyError(f"the triple {int(rows[-1])} came after commit {whole.snapshot.commit}")
    return rows
