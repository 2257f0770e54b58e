"""Determines the source that owns a document. Only the owner may write, relabel or remove it.

The owner depends only on the URI and the configuration, not on the order of arrival or the document's content. So the owner is
the same after a restart and on every replica.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

ADDED = "added"
"""The source of documents that clients add, and the owner of every URI that no configured source claims."""


class OwnerKind(StrEnum):
    """How an error message describes the owner. Omits paths, topics and labels, which the sender may not see."""

    FOLDER = "a followed folder"
    TOPIC = "a followed topic"
    RECORDS = "another topic of records"
    ADDED = "the source of added documents"


@dataclass(frozen=True, slots=True)
class Claim:
    """`source` owns the URIs that begin with `prefix`, unless a claim with a longer prefix matches.

    If the claim `yields`, matching claims that do not yield take precedence, whatever their length.
    """

    prefix: str
    source: str
    kind: OwnerKind
    yields: bool = False


_ADDED_URIS = Claim("added:", ADDED, OwnerKind.ADDED)
_UNCLAIMED = Claim("", ADDED, OwnerKind.ADDED, yields=True)


class NotOwner(Exception):
    """Raised if a source sends a document that another source owns. The message, for the sender, names only the owner's
    kind."""


class Owners:
    """Determines the owner of every URI. `claims` are the claims of the configured sources."""

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
