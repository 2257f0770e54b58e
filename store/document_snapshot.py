"""One commit with its documents, for queries that outlive the next commit.

A `Snapshot` contains texts and graph. Only the live index, which keeps changing, knows which documents contain a passage; here
both are of the same commit. Creating one copies two containers of references (10 ms for a million passages), so it is for
queries that take seconds, not for every query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from store.snapshot import Snapshot
from store.types import Document


class DocumentLookup(Protocol):
    """Finds the documents that contain a passage, as of one commit (`DocumentSnapshot`) or the last (`store.store.Store`)."""

    def documents_with_passage(self, passage: str) -> list[str]: ...

    def document(self, uri: str) -> Document | None: ...


@dataclass(frozen=True, slots=True)
class DocumentSnapshot:
    """The memory as of `snapshot.commit`, with its documents."""

    snapshot: Snapshot
    documents: Mapping[str, Document]
    holders: Sequence[Mapping[str, Any]]
    """By passage row: the documents that contain the passage, by URI, with the triples that they supplied
    (`store.index.effective_triples.UpstreamTriples`)."""

    def documents_with_passage(self, passage: str) -> list[str]:
        """Returns the URIs of the documents that contain a passage at this commit, sorted; empty if the passage is not
        alive."""
        row = self.snapshot.passage_row(passage)
        return sorted(self.holders[row]) if row is not None else []

    def document(self, uri: str) -> Document | None:
        return self.documents.get(uri)
