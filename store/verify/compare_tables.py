"""Compares the contents and vectors in memory, living or not, with those of the tables.

Vectors are compared while an index is loaded from the tables. For equal rows, the loaded index shares the vectors in memory
instead of copying them, because vectors are most of a store, and memory may be too small for two copies.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from store.change.load import OnRows, from_row
from store.fixed_point import Fixed, floats, width
from store.index.live_index import KINDS, LiveIndex
from store.index.stored_contents import StoredContents
from store.index.vectors.matrix import VectorsView
from store.lance.schema.vectors import VECTOR_COLUMNS, vectors_of
from store.lance.tables import TableView
from store.rows import Rows64
from store.types import ExtractionState

MAX_LENGTH_ERROR = 1e-3
"""Maximum allowed difference between a vector's length and 1."""


class ComparedVectors:
    """Fills the vectors of a loaded index and compares them with the tables. Usable as `store.change.load.FillVectors`."""

    def __init__(self, live: StoredContents, max_problems: int) -> None:
        """`live` contains the vectors in memory. `max_problems`: maximum number of reported differences."""
        self._live = live
        self._max_problems = max_problems
        self.problems: list[str] = []
        """One sentence for each difference."""

    def __call__(self, index: LiveIndex, tables: TableView, first: Mapping[str, int], on_rows: OnRows) -> None:
        read = 0
        for kind, array in index.vectors.items():
            numbers = index.ids[kind].view().astype(np.int64)
            numbers_live, live = self._live.vectors(kind)
            places, there = _places(numbers_live, numbers)
            # Other rows are copied: rows newer than the memory, and, if the memory is damaged, all rows after a missing one.
            same = len(there) if there.all() else int(np.argmin(there))
            rest = index.storage.empty((len(numbers) - same, width(index.dim)), np.int16)
            for batch in tables.batches(kind, ("row", *VECTOR_COLUMNS), from_row(first[kind])):
                rows, by_tables = np.searchsorted(numbers, batch["row"].to_numpy()), vectors_of(batch)
                known, copied = there[rows], rows >= same
                self._compare(kind, live, places[rows[known]], by_tables[known])
                rest[rows[copied] - same] = by_tables[copied]
                read += batch.num_rows
                on_rows(read)
            array.fill_from(live, places[:same])
            array.append(rest)

    def _compare(self, kind: str, live: VectorsView, rows: Rows64, by_tables: Fixed) -> None:
        lengths = np.linalg.norm(floats(by_tables), axis=1)
        # A text has a zero vector if the encoder knows no word of it.
        wrong = ~np.isfinite(lengths) | ((np.abs(lengths - 1) > MAX_LENGTH_ERROR) & (lengths != 0))
        differing = (live.fixed(rows) != by_tables).any(axis=1)
        for found, problem in (
            (differing, "differs from the tables"),
            (wrong, "has a length other than 1 or 0 in the tables"),
        ):
            for row in rows[found][: max(self._max_problems - len(self.problems), 0)].tolist():
                self.problems.append(f"the vector of the {kind[:-1]} {self._label(kind, row)} {problem}")

    def _label(self, kind: str, row: int) -> str:
        content = self._live.content(kind, row)
        return str(content.id if kind == "passages" else content)


def _places(mine: Rows64, theirs: Rows64) -> tuple[Rows64, NDArray[np.bool_]]:
    """Returns the positions in `mine` of the numbers `theirs` (both sorted), and the mask of those found."""
    places = np.searchsorted(mine, theirs)
    there = places < len(mine)
    there[there] = mine[places[there]] == theirs[there]
    return places, there


def compare_contents(live: StoredContents, anew: StoredContents) -> Iterator[str]:
    """Yields a sentence for each content that differs between `live` and `anew`, or is in only one of them. `anew` must be
    built from the tables.

    Texts that no document contains any more are compared too. The texts serve as a cache: if a document contains such a text
    again, it is neither extracted nor written again.
    """
    for kind in KINDS:
        (mine, rows), (theirs, rows_anew) = live.rows(kind), anew.rows(kind)
        theirs = theirs[theirs < live.next_id[kind]]
        for where, memory, numbers, at in (("memory", live, mine, rows), ("the tables", anew, theirs, rows_anew)):
            other = theirs if memory is live else mine
            for place in np.flatnonzero(~np.isin(numbers, other)).tolist():
                content = memory.content(kind, int(at[place]))
                yield f"number {numbers[place]} of the {kind}, {content!r}, is only in {where}"
        # A damaged table may contain the same number twice.
        both, places, places_anew = np.intersect1d(mine, theirs, return_indices=True)
        pairs = zip(both.tolist(), rows[places].tolist(), rows_anew[places_anew].tolist(), strict=True)
        for number, row, row_anew in pairs:
            what, by_tables = live.content(kind, row), anew.content(kind, row_anew)
            if what != by_tables:
                yield f"number {number} of the {kind}, {what!r}, is {by_tables!r} in the tables"
            elif kind == "passages":
                yield from _compare_extractions(live, anew, row, row_anew)
    for row in live.orphaned_extractions():
        yield f"the extraction of row {row} of the passages is in memory without the passage"


def _extractor(state: ExtractionState | None) -> str:
    return "no extractor" if state is None else f"{state.extractor} ({state.status.value}, {state.attempts} failures)"


def _compare_extractions(live: StoredContents, anew: StoredContents, mine: int, theirs: int) -> Iterator[str]:
    passage = live.content("passages", mine).id
    if live.state(mine) != anew.state(theirs):
        extractor, recorded = _extractor(live.state(mine)), _extractor(anew.state(theirs))
        yield f"the passage {passage} was extracted by {extractor} in memory, by {recorded} in the tables"
    elif live.extracted(mine) != anew.extracted(theirs):
        yield f"the triples extracted from the passage {passage} differ from the tables"
