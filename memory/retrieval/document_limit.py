"""Diverse results: few of the first passages come from one document, so that there is place for others."""

from collections import Counter
from collections.abc import Callable, Sequence

from store.document_snapshot import DocumentLookup
from store.snapshot import Snapshot

LIMITED_PLACES = 5
"""The first places, in which the passages of a document are counted."""


def limit_documents(
    rows: Sequence[int], document: Callable[[int], str], most: int, places: int = LIMITED_PLACES
) -> list[int]:
    """`rows` in order, but the first `places` have at most `most` passages of each `document`, as long as there are
    others: those beyond follow behind these places."""
    first: list[int] = []
    pushed_back: list[int] = []
    counts: Counter[str] = Counter()
    for at, row in enumerate(rows):
        if len(first) == places:
            return [*first, *pushed_back, *rows[at:]]
        of = document(row)
        counts[of] += 1
        (first if counts[of] <= most else pushed_back).append(row)
    return [*first, *pushed_back]


def first_documents(snapshot: Snapshot, documents: DocumentLookup) -> Callable[[int], str]:
    """Gives for a row the URI of the first document that holds the passage; "" where a commit has just removed the last."""

    def document(row: int) -> str:
        uris = documents.documents_with_passage(snapshot.passage_id(row))
        return uris[0] if uris else ""

    return document


def fewer_passages(most: int) -> int:
    """How many passages of a document may be among the first where links lead to others, if `most` may be otherwise."""
    return max(most - 1, 1)
