"""The contents of the live index as of one moment, living or not, for comparison with the tables.

Row numbers differ between indexes, whereas the numbers in the tables' column `row` are always the same.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.live_index import LiveIndex
from store.index.vectors.matrix import VectorsView
from store.rows import Rows64
from store.types import ExtractionState


class StoredContents:
    """The passages, phrases, triples and extractions of an index as of the construction of this object.

    The object must be constructed between two commits. The contents can be read while later commits run, but not during a
    purge; they do not include the rows of later commits.
    """

    def __init__(self, index: LiveIndex) -> None:
        self._index = index
        self.next_id = dict(index.next_id)
        self._extracted = index.extracted.copy()
        self._states = index.extraction_states.copy()

    def rows(self, kind: str) -> tuple[Rows64, Rows64]:
        """Returns the rows' numbers in the table (ascending) and their rows in the index."""
        index = self._index
        rows = np.sort(np.fromiter(index.hashed_rows[kind].values(), np.int64))
        # Rows of the index ascend together with their numbers in the table.
        numbers = index.ids[kind].view()[rows].astype(np.int64)
        there = numbers < self.next_id[kind]
        return numbers[there], rows[there]

    def vectors(self, kind: str) -> tuple[Rows64, VectorsView]:
        """Returns the rows' numbers in the table (ascending) and the vectors of all rows, including rows of later commits."""
        view = self._index.vectors[kind].view()
        return self._index.ids[kind].view()[: view.n].astype(np.int64), view

    def content(self, kind: str, row: int) -> Any:
        """Returns the passage, phrase or triple in a row."""
        return self._index.content(kind, row)

    def state(self, row: int) -> ExtractionState | None:
        """Returns the extraction state of the passage in a row; None if it has no extraction."""
        return self._states.get(row)

    def extracted(self, row: int) -> list[int] | None:
        """Returns the sorted table numbers of the triples extracted from the passage in a row; None without an extraction."""
        found = self._extracted[row]
        triples: NDArray[np.int32] = self._index.ids["triples"].view()
        return None if found is None else sorted(triples[found].tolist())

    def orphaned_extractions(self) -> list[int]:
        """Returns the rows of extractions whose passages were removed."""
        rows = {row for row, found in enumerate(self._extracted) if found is not None} | set(self._states)
        return sorted(rows.difference(self._index.passage_rows.values()))
