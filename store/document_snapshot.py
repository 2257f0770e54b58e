"""One commit with the names of its documents: for a question that takes longer than the next commit.

A snapshot alone keeps contents and graph still; which documents hold a passage is kept by the image, which moves on. Here
both are of the same moment. Taking hold copies two containers of references (a million passages: some 10 ms), so it is for
what lasts seconds, not for every query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from store.snapshot import Snapshot
from store.types import Document


class Naming(Protocol):
    """Who says which documents hold a passage: the memory of one commit, or the store, which says it of the last."""

    def users(self, passage: str) -> list[str]: ...

    def document(self, uri: str) -> Document | None: ...


@dataclass(frozen=True, slots=True)
class Pinned:
    """The memory at `snapshot.commit`, and who holds what in it."""

    snapshot: Snapshot
    documents: Mapping[str, Document]
    holders: Sequence[Mapping[str, Any]]
    """By passage row, the URIs that hold it."""

    def users(self, passage: str) -> list[str]:
        """URIs of the documents that hold a passage at this commit, sorted; empty for one that does not live in it."""
        row = self.snapshot.passage_row(passage)
        return sorted(self.holders[row]) if row is not None else []

    def document(self, uri: str) -> Document | None:
        return self.documents.get(uri)
