"""Which triples a passage states where only some of its documents hold it."""

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
    """The triples' rows in `whole` where `holders` hold the passage. Raises KeyError where a purge took one of them away."""
    if (supplied := supplied_triples(holders)) is None:
        return extracted if extracted is not None else NO_ROWS
    rows = rows_of(whole.index, supplied)
    if len(rows) and rows[-1] >= whole.snapshot.n_triples:
        raise KeyError(f"the triple {int(rows[-1])} came after commit {whole.snapshot.commit}")
    return rows
