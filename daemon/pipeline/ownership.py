"""Determines the source that owns a document. Only the owner may write, relabel or remove it.

The owner depends on the URI and the configuration alone, not on the order of arrival or on the document's content. So it is
the same after a restart and on every replica.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

ADDED = "added"
"""The source of documents that clients add, and the owner of every URI that no configured source claims."""


class OwnerKind(StrEnum):
    """How an error message describes the owner. Paths, topics and labels are omitted: the sender may not see them."""

    FOLDER = "a followed folder"
    TOPIC = "a followed topic"
    RECORDS = "another topic of records"
    ADDED = "the source of added documents"


@dataclass(frozen=True, slots=True)
class Claim:
    """`source` owns the URIs that begin with `prefix`, unless a longer claim matches.

    If the claim `yields`, every matching claim that does not yield takes precedence, whatever its length.
    """

    prefix: str
    source: str
    kind: OwnerKind
    yields: bool = False


_ADDED_URIS = Claim("added:", ADDED, OwnerKind.ADDED)
_UNCLAIMED = Claim("", ADDED, OwnerKind.ADDED, yields=True)


class NotOwner(Exception):
    """A source sent a document that another source owns. The message goes to the sender and names only the owner's kind."""


class Owners:
    """Determines the owner of every URI. `claims` are those of the configured sources."""

    def __init__(self, claims: Iterable[Claim] = ()) -> None:
        every = (*claims, _ADDED_URIS, _UNCLAIMED)
        self._claims = sorted(every, key=lambda claim: (claim.yields, -len(claim.prefix)))

    def owner(self, uri: str) -> Claim:
        """Returns the claim that applies to the URI; its `source` is the owner."""
        return next(claim for claim in self._claims if uri.startswith(claim.prefix))

    def owns(self, source: str, uri: str) -> bool:
        return self.owner(uri).source == source

    def check(self, source: str, uri: str) -> None:
        """Raises NotOwner unless `source` may write, relabel and remove the document."""
        if self.owns(source, uri):
            return
        owner = self.owner(uri)
        hint = "; `uris` in [[kafka]] names the beginnings of the URIs of its records" if owner is _UNCLAIMED else ""
        raise NotOwner(f"the document belongs to {owner.kind}, and no other source may write or remove it{hint}")
