"""Which source owns a document: the only one that may write, relabel or remove it.

The owner follows from the URI and the configuration alone. Neither the order of arrival nor anything that a document says
matters, so it is the same after a restart and on every replica.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

ADDED = "added"
"""The source of documents that clients add, and the owner of every URI that no configured source claims."""


class OwnerKind(StrEnum):
    """What a refusal says of the owner. It names no path, topic or label: those may be hidden from the sender."""

    FOLDER = "a followed folder"
    TOPIC = "a followed topic"
    RECORDS = "another topic of records"
    ADDED = "the source of added documents"


@dataclass(frozen=True, slots=True)
class Claim:
    """`source` owns the URIs that begin with `prefix`, except where a longer claim matches.

    `yields`: any claim that does not yield comes first, whatever its length.
    """

    prefix: str
    source: str
    kind: OwnerKind
    yields: bool = False


_ADDED_URIS = Claim("added:", ADDED, OwnerKind.ADDED)
_UNCLAIMED = Claim("", ADDED, OwnerKind.ADDED, yields=True)


class NotOwner(Exception):
    """A source sent a document that another source owns. The message is for the sender, and names the owner's kind only."""


class Owners:
    """The owner of every URI. `claims` are those of the configured sources."""

    def __init__(self, claims: Iterable[Claim] = ()) -> None:
        every = (*claims, _ADDED_URIS, _UNCLAIMED)
        self._claims = sorted(every, key=lambda claim: (claim.yields, -len(claim.prefix)))

    def owner(self, uri: str) -> Claim:
        """The claim that decides; `source` is the owner."""
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
