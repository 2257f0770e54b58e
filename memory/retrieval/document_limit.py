"""Diverse results: few of the first passages come from one document, so that there is place for others."""

from collections import Counter
from collections.abc import Callable, Sequence

LIMITED_PLACES = 5
"""The first places, in which the passages of a document are counted."""


def limit_documents(rows: Sequence[int], document: Callable[[int], str], most: int) -> list[int]:
    """`rows` in order, but the first `LIMITED_PLACES` have at most `most` passages of each `document`, as long as there are
    others: those beyond follow behind these places."""
    first: list[int] = []
    pushed_back: list[int] = []
    counts: Counter[str] = Counter()
    for at, row in enumerate(rows):
        if len(first) == LIMITED_PLACES:
            return [*first, *pushed_back, *rows[at:]]
        of = document(row)
        counts[of] += 1
        (first if counts[of] <= most else pushed_back).append(row)
    return [*first, *pushed_back]
