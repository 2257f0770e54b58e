"""What a memory knows of texts, living or not: compared by the tables' numbers, which rows have in every image."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.state import Image
from store.types import ExtractionState

KINDS = ("passages", "phrases", "triples")


class Contents:
    """An image's passages, phrases and triples, and what was read of the passages, at one moment.

    Made between two commits. It may be asked beside commits, but not beside a purge: what is added later is left out.
    """

    def __init__(self, image: Image) -> None:
        self._image = image
        self.next_id = dict(image.next_id)
        self._extracted = list(image.extracted)
        self._states = image.extraction_states.copy()

    def rows(self, kind: str) -> dict[int, int]:
        """The image's row of each number."""
        image = self._image
        known: dict[str, dict[Any, int]] = {
            "passages": image.passage_rows,
            "phrases": image.phrase_rows,
            "triples": image.triple_rows,
        }
        rows = np.array(list(known[kind].values()), np.int64)
        numbers = image.ids[kind].view()[rows]
        there = numbers < self.next_id[kind]
        return dict(zip(numbers[there].tolist(), rows[there].tolist(), strict=True))

    def content(self, kind: str, row: int) -> Any:
        """What stands in a row."""
        image = self._image
        if kind == "passages":
            return image.passages[row]
        return image.phrases[row] if kind == "phrases" else image.triple(row)

    def state(self, row: int) -> ExtractionState | None:
        """Who read the passage in a row and what became of it, None where nobody read it."""
        return self._states.get(row)

    def found(self, row: int) -> list[int] | None:
        """The numbers of the triples that were found in the passage of a row, sorted; None where nobody read it."""
        found = self._extracted[row]
        triples: NDArray[np.int32] = self._image.ids["triples"].view()
        return None if found is None else sorted(triples[found].tolist())

    def strays(self) -> list[int]:
        """Rows of passages that are not known any more, of which a reading is."""
        rows = {row for row, found in enumerate(self._extracted) if found is not None} | set(self._states)
        return sorted(rows.difference(self._image.passage_rows.values()))


def unlike(live: Contents, anew: Contents) -> Iterator[str]:
    """A sentence for each thing that `live` knows and `anew`, made from the tables, does not, or the other way round.

    What is known and does not live is a cache: the next document that brings it again neither pays for it nor writes it down.
    """
    for kind in KINDS:
        mine, theirs = live.rows(kind), anew.rows(kind)
        theirs = {number: row for number, row in theirs.items() if number < live.next_id[kind]}
        for number in sorted(mine.keys() ^ theirs.keys()):
            where, memory = ("memory", live) if number in mine else ("the tables", anew)
            row = mine[number] if number in mine else theirs[number]
            yield f"number {number} of the {kind}, {memory.content(kind, row)!r}, is in {where} alone"
        for number in sorted(mine.keys() & theirs.keys()):
            what = live.content(kind, mine[number])
            if what != anew.content(kind, theirs[number]):
                yield f"number {number} of the {kind}, {what!r}, is {anew.content(kind, theirs[number])!r} in the tables"
            elif kind == "passages":
                yield from _readings(live, anew, mine[number], theirs[number])
    for row in live.strays():
        yield f"a reading of row {row} of the passages is in memory, and the passage is not"


def _reader(state: ExtractionState | None) -> str:
    return "nobody" if state is None else f"{state.extractor} ({state.status.value}, {state.attempts} failures)"


def _readings(live: Contents, anew: Contents, mine: int, theirs: int) -> Iterator[str]:
    passage = live.content("passages", mine).id
    if live.state(mine) != anew.state(theirs):
        yield f"the passage {passage} was read by {_reader(live.state(mine))}, by the tables by {_reader(anew.state(theirs))}"
    elif live.found(mine) != anew.found(theirs):
        yield f"in the passage {passage} other triples were found than by the tables"
