"""Limits the number of passages of one document among the first results, so that other documents appear too."""

from collections import Counter
from collections.abc import Callable, Sequence

from store.snapshot import DocumentLookup, Snapshot

LIMITED_PLACES = 5
"""Number of first places in which the passages of a document are counted."""


def limit_documents(
    rows: Sequence[int], document: Callable[[int], str], per_document: int, places: int = LIMITED_PLACES
) -> list[int]:
    """Returns `rows` so that the first `places` contain at most `per_document` passages of each `document`.

    Passages beyond this limit follow after these places. They fill the first places only if no other passages are left.
    """
    first: list[int] = []
    pushed_back: list[int] = []
    counts: Counter[str] = Counter()
    for at, row in enumerate(rows):
        if len(first) == places:
            return [*first, *pushed_back, *rows[at:]]
        of = document(row)
        counts[of] += 1
        (first if counts[of] <= per_document else pushed_back).append(row)
    return [*first, *pushed_back]


def first_documents(snapshot: Snapshot, documents: DocumentLookup) -> Callable[[int], str]:
    """Returns a function from a row to the URI of the first document with that passage, or "" if a commit just removed the last
    one."""

    def document(row: int) -> str:
        uris = documents.documents_with_passage(snapshot.passage_id(row))
        return uris[0] if uris else ""

    return document


def fewer_passages(per_document: int) -> int:
    """Returns the limit per document if links lead to other documents; `per_document` is the limit without links."""
    return max(per_document - 1, 1)
