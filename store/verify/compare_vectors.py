"""Compares the tables' vectors with those in memory while an index is loaded from the tables.

The loaded index shares the vectors in memory for the same rows instead of copying them: vectors are most of a store, and a
machine may not have memory for two copies.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from store.change.load import OnRows, from_row
from store.fixed_point import Fixed, floats, width
from store.index.live_index import LiveIndex
from store.index.stored_contents import Rows, StoredContents
from store.index.vectors.matrix import VectorsView
from store.lance.schema.vectors import VECTOR_COLUMNS, vectors_of
from store.lance.tables import TableView

MAX_LENGTH_ERROR = 1e-3
"""Maximum deviation of a vector's length from 1."""


class ComparedVectors:
    """Fills the vectors of a loaded index and compares them with the tables. A `store.change.load.FillVectors`."""

    def __init__(self, live: StoredContents, max_problems: int) -> None:
        """`live` holds the vectors in memory. `max_problems` is the maximum number of reported differences."""
        self._live = live
        self._max_problems = max_problems
        self.problems: list[str] = []
        """A sentence for each difference."""

    def __call__(self, index: LiveIndex, tables: TableView, first: Mapping[str, int], on_rows: OnRows) -> None:
        read = 0
        for kind, array in index.vectors.items():
            numbers = index.ids[kind].view().astype(np.int64)
            numbers_live, live = self._live.vectors(kind)
            places, there = _places(numbers_live, numbers)
            # The remaining rows are copied: rows that are newer than the memory and, if the memory is damaged, all rows
            # after a lost one.
            same = len(there) if there.all() else int(np.argmin(there))
            rest = index.storage.empty((len(numbers) - same, width(index.dim)), np.int16)
            for batch in tables.batches(kind, ("row", *VECTOR_COLUMNS), from_row(first[kind])):
                rows, by_tables = np.searchsorted(numbers, batch["row"].to_numpy()), vectors_of(batch)
                known, behind = there[rows], rows >= same
                self._compare(kind, live, places[rows[known]], by_tables[known])
                rest[rows[behind] - same] = by_tables[behind]
                read += batch.num_rows
                on_rows(read)
            array.take(live, places[:same])
            array.append(rest)

    def _compare(self, kind: str, live: VectorsView, rows: Rows, by_tables: Fixed) -> None:
        lengths = np.linalg.norm(floats(by_tables), axis=1)
        # The zero vector belongs to a text without any word that the encoder knows.
        wrong = ~np.isfinite(lengths) | ((np.abs(lengths - 1) > MAX_LENGTH_ERROR) & (lengths != 0))
        differing = (live.fixed(rows) != by_tables).any(axis=1)
        for found, told in (
            (differing, "is another than in the tables"),
            (wrong, "is neither of length 1 nor zero in the tables"),
        ):
            for row in rows[found][: max(self._max_problems - len(self.problems), 0)].tolist():
                self.problems.append(f"the vector of the {kind[:-1]} {self._label(kind, row)} {told}")

    def _label(self, kind: str, row: int) -> str:
        content = self._live.content(kind, row)
        return str(content.id if kind == "passages" else content)


def _places(mine: Rows, theirs: Rows) -> tuple[Rows, NDArray[np.bool_]]:
    """Returns the places of the sorted numbers `theirs` in `mine`, and whether each is there."""
    places = np.searchsorted(mine, theirs)
    there = places < len(mine)
    there[there] = mine[places[there]] == theirs[there]
    return places, there
