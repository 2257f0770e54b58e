"""Where what is known of texts, living or not, differs from the tables."""

from collections.abc import Iterator

from store.index.stored_contents import KINDS, StoredContents
from store.types import ExtractionState


def compare_contents(live: StoredContents, anew: StoredContents) -> Iterator[str]:
    """A sentence for each thing that `live` knows and `anew`, built from the tables, does not, or the other way round.

    Texts that no document holds any more count too. They are a cache: a document that brings one again neither pays for it
    nor writes it.
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
                yield from _compare_extractions(live, anew, mine[number], theirs[number])
    for row in live.orphaned_extractions():
        yield f"the extraction of row {row} of the passages is in memory, and the passage is not"


def _reader(state: ExtractionState | None) -> str:
    return "nobody" if state is None else f"{state.extractor} ({state.status.value}, {state.attempts} failures)"


def _compare_extractions(live: StoredContents, anew: StoredContents, mine: int, theirs: int) -> Iterator[str]:
    passage = live.content("passages", mine).id
    if live.state(mine) != anew.state(theirs):
        yield f"the passage {passage} was read by {_reader(live.state(mine))}, by the tables by {_reader(anew.state(theirs))}"
    elif live.extracted(mine) != anew.extracted(theirs):
        yield f"in the passage {passage} other triples were found than by the tables"
