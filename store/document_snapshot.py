"""One commit with its documents: for a question that takes longer than the next commit.

A `Snapshot` has texts and graph. Which documents hold a passage is known to the live index alone, which moves on; here both are
of one moment. Making one copies two containers of references (10 ms a million passages), so it is for what lasts seconds, not
for every query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from store.snapshot import Snapshot
from store.types import Document


class DocumentLookup(Protocol):
    """Which documents hold a passage: as of one commit (`DocumentSnapshot`), or as of the last (`store.store.Store`)."""

    def documents_with_passage(self, passage: str) -> list[str]: ...

    def document(self, uri: str) -> Document | None: ...


@dataclass(frozen=True, slots=True)
class DocumentSnapshot:
    """The memory as of `snapshot.commit`."""

    snapshot: Snapshot
    documents: Mapping[str, Document]
    holders: Sequence[Mapping[str, Any]]
    """By passage row: the documents that hold it, by URI, and the triples that they brought
    (`store.index.effective_triples.UpstreamTriples`)."""

    def documents_with_passage(self, passage: str) -> list[str]:
        """URIs of the documents that hold a passage at this commit, sorted; empty for one that does not live in it."""
        row = self.snapshot.passage_row(passage)
        return sorted(self.holders[row]) if row is not None else []

    def document(self, uri: str) -> Document | None:
        return self.documents.get(uri)
