"""The rule for which triples a passage has within a set of documents: the whole memory or a scope.

A passage has the union of the triples that its documents supplied. If no document supplied triples, the passage has those of
the local extractor, unless each document brought an extraction without triples. The triples therefore depend on the documents
of the set alone, neither on documents outside nor on the order of arrival.
"""

from collections.abc import Mapping

from store.types import Document, Triple

UpstreamTriples = tuple[Triple, ...] | None
"""The triples that a document brought for a passage, sorted; None if the document brought no extraction of it."""


def upstream_triples(document: Document) -> dict[str, UpstreamTriples]:
    """Returns the triples that a document brought for each of its passages, by passage id.

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
    """Whether the local extractor must process a passage: one of its documents (`holders`, by URI) brought no extraction.

    This holds even if other documents supplied triples: in a scope without those documents, the passage has the local
    extractor's triples.
    """
    return any(triples is None for triples in holders.values())


def supplied_triples(holders: Mapping[str, UpstreamTriples]) -> set[Triple] | None:
    """Returns the triples that the documents `holders` (by URI) supplied for a passage; None if the local extractor's apply."""
    supplied = {triple for triples in holders.values() for triple in triples or ()}
    return supplied if supplied or not needs_extraction(holders) else None
