"""Compares the stored contents in memory, live or not, with the tables."""

from collections.abc import Iterator

import numpy as np

from store.index.live_index import KINDS
from store.index.stored_contents import StoredContents
from store.types import ExtractionState


def compare_contents(live: StoredContents, anew: StoredContents) -> Iterator[str]:
    """Yields a sentence for each content that only one of `live` and `anew` contains, or that differs. `anew` is built from
    the tables.

    Texts that no document contains any more are compared too. They are a cache: a document that adds such a text again
    causes neither an extraction nor a write.
    """
    for kind in KINDS:
        (mine, rows), (theirs, rows_anew) = live.rows(kind), anew.rows(kind)
        theirs = theirs[theirs < live.next_id[kind]]
        for where, memory, numbers, at in (("memory", live, mine, rows), ("the tables", anew, theirs, rows_anew)):
            other = theirs if memory is live else mine
            for place in np.flatnonzero(~np.isin(numbers, other)).tolist():
                content = memory.content(kind, int(at[place]))
                yield f"number {numbers[place]} of the {kind}, {content!r}, is in {where} alone"
        # A damaged table may contain a number twice.
        both, places, places_anew = np.intersect1d(mine, theirs, return_indices=True)
        pairs = zip(both.tolist(), rows[places].tolist(), rows_anew[places_anew].tolist(), strict=True)
        for number, row, row_anew in pairs:
            what, by_tables = live.content(kind, row), anew.content(kind, row_anew)
            if what != by_tables:
                yield f"number {number} of the {kind}, {what!r}, is {by_tables!r} in the tables"
            elif kind == "passages":
                yield from _compare_extractions(live, anew, row, row_anew)
    for row in live.orphaned_extractions():
        yield f"the extraction of row {row} of the passages is in memory, and the passage is not"


def _reader(state: ExtractionState | None) -> str:
    return "nobody" if state is None else f"{state.extractor} ({state.status.value}, {state.attempts} failures)"


def _compare_extractions(live: StoredContents, anew: StoredContents, mine: int, theirs: int) -> Iterator[str]:
    passage = live.content("passages", mine).id
    if live.state(mine) != anew.state(theirs):
        reader, recorded = _reader(live.state(mine)), _reader(anew.state(theirs))
        yield f"the passage {passage} was read by {reader}, according to the tables by {recorded}"
    elif live.extracted(mine) != anew.extracted(theirs):
        yield f"in the passage {passage} other triples were found than by the tables"
