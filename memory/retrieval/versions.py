"""Merges versions of one text into one result, represented by the newest.

`report_v1` to `report_v7`, or one page in two exports, would otherwise fill all places. Versions are near-duplicates by content
(`memory.retrieval.near_duplicates`), never by name. Passages with nearly equal vectors and words may still state different
values, such as different prices; the result names these values.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory.retrieval.near_duplicates import near_duplicates
from store.snapshot import DocumentLookup, Snapshot
from store.types import document_time

_VALUE = re.compile(r"\w*\d(?:[\w.,:/-]*\w)?%?")
"""Words with a digit: numbers, amounts, dates and codes."""
MAX_VALUES = 10
MAX_GROUPED_PASSAGES = 2_400
"""Number of best passages that are compared with each other; later ones are separate results. The matrix of all pairs takes 46
MB."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Passages that are versions of one text, by row: the newest and the others, newest first.

    `values` are words with a digit that only some of the versions contain, in order of text, at most `MAX_VALUES`.
    """

    newest: int
    others: tuple[int, ...] = ()
    values: tuple[str, ...] = ()


def group_versions(snapshot: Snapshot, documents: DocumentLookup, rows: Sequence[int]) -> list[Versions]:
    """Groups the passages of `rows`, which are in order, best first. Each group has the place of its best passage."""
    leaders = near_duplicates(snapshot, rows[:MAX_GROUPED_PASSAGES])
    groups: dict[int, list[int]] = {}
    for row in rows:
        groups.setdefault(leaders.get(row, row), []).append(row)
    return [_versions(snapshot, documents, group) for group in groups.values()]


def _versions(snapshot: Snapshot, documents: DocumentLookup, rows: Sequence[int]) -> Versions:
    if len(rows) == 1:
        return Versions(rows[0])
    newest, *others = sorted(rows, key=lambda row: (-_time(snapshot, documents, row), snapshot.passage_id(row)))
    stated = [frozenset(_VALUE.findall(snapshot.passage(row).text)) for row in rows]
    values = sorted(frozenset.union(*stated) - frozenset.intersection(*stated))
    return Versions(newest, tuple(others), tuple(values[:MAX_VALUES]))


def _time(snapshot: Snapshot, documents: DocumentLookup, row: int) -> float:
    """Returns when the newest document with the passage was last changed, in Unix seconds; 0 if no document states it."""
    found = map(documents.document, documents.documents_with_passage(snapshot.passage_id(row)))
    return max((document_time(each) or 0.0 for each in found if each is not None), default=0.0)
