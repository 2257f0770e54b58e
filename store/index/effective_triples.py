"""The rule that decides which triples a passage has within a set of documents: the whole memory or a scope.

A passage has the union of the triples that the documents supplied for it. If no document supplied triples for a passage, the
passage has the local extractor's triples, unless each document supplied an extraction without triples. The triples therefore
depend only on the documents of the set, not on other documents or on the order of arrival.
"""

from collections.abc import Mapping

from store.types import Document, Triple

SuppliedTriples = tuple[Triple, ...] | None
"""The triples that a document supplied for a passage, sorted; None if the document supplied no extraction of the passage."""


def supplied_by_passage(document: Document) -> dict[str, SuppliedTriples]:
    """Returns the triples that a document supplied for each of its passages, by passage id.

    If a passage occurs several times in the document, it has the triples of all occurrences.
    """
    found: dict[str, SuppliedTriples] = {}
    for ref in document.passages:
        before = found.get(ref.passage)
        if ref.triples is None:
            found[ref.passage] = before
        else:
            found[ref.passage] = tuple(sorted({*(before or ()), *ref.triples}))
    return found


def needs_extraction(holders: Mapping[str, SuppliedTriples]) -> bool:
    """Whether the local extractor must process a passage: one of its documents (`holders`, by URI) supplied no extraction.

    The passage needs the extraction even if other documents supplied triples: in a scope without these other documents, it has
    the local extractor's triples.
    """
    return any(triples is None for triples in holders.values())


def supplied_triples(holders: Mapping[str, SuppliedTriples]) -> set[Triple] | None:
    """Returns the triples that the documents `holders` (by URI) supplied for a passage; None if the extracted triples apply."""
    supplied = {triple for triples in holders.values() for triple in triples or ()}
    return supplied if supplied or not needs_extraction(holders) else None
