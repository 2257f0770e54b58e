"""Which triples a passage has: those that its documents brought along, else those that an extractor found."""

from collections.abc import Mapping, Sequence

from store.types import Document, Triple

UpstreamTriples = tuple[Triple, ...] | None
"""The triples that a document brought for a passage, sorted; None where it brought none."""


def upstream_triples(document: Document) -> dict[str, UpstreamTriples]:
    """By id, the passages that a document holds. One that stands in it several times has the triples of all its places."""
    found: dict[str, UpstreamTriples] = {}
    for ref in document.passages:
        before = found.get(ref.passage)
        found[ref.passage] = before if ref.triples is None else tuple(sorted({*(before or ()), *ref.triples}))
    return found


def effective_triples(holders: Mapping[str, UpstreamTriples], extracted: Sequence[Triple]) -> set[Triple]:
    """The triples of a passage that the documents `holders` (by URI) hold, and in which an extractor found `extracted`."""
    if not holders:
        return set()
    brought = [triples for triples in holders.values() if triples is not None]
    if brought:
        return {triple for triples in brought for triple in triples}
    return set(extracted)
