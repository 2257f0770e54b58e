"""Which triples a passage has: those that its documents brought along, else those that an extractor found."""

from collections.abc import Mapping, Sequence

from store.types import Document, PassageRef, Triple

UpstreamTriples = tuple[Triple, ...] | None
"""The triples that a document brought for a passage, sorted; None where it brought none."""


class RecordedTriples(tuple[Triple, ...]):
    """Triples that an extractor found before the document came here, sorted: they count where no document states any.

    As they belong to the document, the end state depends on the documents alone, though one passage may have been read twice
    with two outcomes.
    """

    __slots__ = ()


def upstream_triples(document: Document) -> dict[str, UpstreamTriples]:
    """By id, the passages that a document holds. One that stands in it several times has the triples of all its places."""
    found: dict[str, UpstreamTriples] = {}
    for ref in document.passages:
        found[ref.passage] = _joined(found.get(ref.passage), ref)
    return found


def _joined(before: UpstreamTriples, ref: PassageRef) -> UpstreamTriples:
    if ref.triples is None:
        return before
    if ref.extractor is None:
        stated = () if isinstance(before, RecordedTriples) else before or ()
        return tuple(sorted({*stated, *ref.triples}))
    if before is not None and not isinstance(before, RecordedTriples):
        return before
    return RecordedTriples(sorted({*(before or ()), *ref.triples}))


def effective_triples(holders: Mapping[str, UpstreamTriples], extracted: Sequence[Triple]) -> set[Triple]:
    """The triples of a passage that the documents `holders` (by URI) hold, and in which an extractor found `extracted`."""
    if not holders:
        return set()
    brought = [triples for triples in holders.values() if triples is not None]
    stated = [triples for triples in brought if not isinstance(triples, RecordedTriples)]
    if used := stated or brought:
        return {triple for triples in used for triple in triples}
    return set(extracted)


def overruled_triples(holders: Mapping[str, UpstreamTriples]) -> set[Triple]:
    """What documents had recorded of the passage and does not count, as another document states something.

    In a scope without that document it counts, so the memory has to know these triples, too.
    """
    if len(holders) < 2:
        return set()
    brought = [triples for triples in holders.values() if triples is not None]
    recorded = [triples for triples in brought if isinstance(triples, RecordedTriples)]
    return {triple for triples in recorded for triple in triples} if len(recorded) < len(brought) else set()
