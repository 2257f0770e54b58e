"""Which triples a passage has within a set of documents: the rule for the whole memory and for every scope.

A passage has the union of the triples that its documents supplied. If they supplied none, it has those of the local extractor,
unless each of them brought an extraction that found nothing. So the triples follow from the documents of the set alone:
neither a document outside the set nor the order of arrival changes them.
"""

from collections.abc import Mapping

from store.types import Document, Triple

UpstreamTriples = tuple[Triple, ...] | None
"""The triples that a document brought for a passage, sorted; None if the document brought no extraction of it."""


def upstream_triples(document: Document) -> dict[str, UpstreamTriples]:
    """The triples that a document brought for each of its passages, by passage id.

    A passage that occurs several times in the document has the triples of all occurrences.
    """
    found: dict[str, UpstreamTriples] = {}
    for ref in document.passages:
        before = found.get(ref.passage)
        if ref.triples is None:
            found[ref.passage] = before
        else:
            found[ref.passage] = tuple(sorted({*(before or ()), *ref.triples}))
    return found


def needs_extraction(holders: Mapping[str, UpstreamTriples]) -> bool:
    """Whether the local extractor has to read a passage: one of its documents (`holders`, by URI) brought no extraction.

    Also if other documents supplied triples: in a scope without them the passage has the local extractor's.
    """
    return any(triples is None for triples in holders.values())


def supplied_triples(holders: Mapping[str, UpstreamTriples]) -> set[Triple] | None:
    """The triples of a passage that the documents `holders` (by URI) hold; None if it has those of the local extractor."""
    supplied = {triple for triples in holders.values() for triple in triples or ()}
    return supplied if supplied or not needs_extraction(holders) else None
