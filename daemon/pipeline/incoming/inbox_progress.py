"""Which documents of the inbox are done, as one position that is committed together with them.

A file of the inbox stays until the last of its documents is done. Were it queued whole at the next start, what came later for
one of its documents, a correction or a removal, would be undone: so that is known from the commit itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

POSITION = "inbox"
"""The key of the position."""


class InboxPlace(NamedTuple):
    """A document in the inbox: the number of its ticket, and which of that ticket's documents it is, from 0."""

    ticket: int
    at: int


class DoneNumbers:
    """Numbers from 0 on that are done: all below `first`, as most are done in order, and others."""

    def __init__(self, first: int = 0, others: Iterable[int] = ()) -> None:
        self.first = first
        self._others = set(others)

    @classmethod
    def parse(cls, text: str) -> Self:
        """What `str` gave: "0-95,97"."""
        found = cls()
        for part in filter(None, text.split(",")):
            low, _, high = part.partition("-")
            if int(low) == found.first:
                found.first = int(high or low) + 1
            else:
                found._others.update(range(int(low), int(high or low) + 1))
        return found

    def __str__(self) -> str:
        ranges = [[0, self.first - 1]] if self.first else []
        for number in sorted(self._others):
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)

    def __contains__(self, number: int) -> bool:
        return number < self.first or number in self._others

    def __len__(self) -> int:
        return self.first + len(self._others)

    def __iter__(self) -> Iterator[int]:
        """Those beyond the first."""
        return iter(self._others)

    def add(self, number: int) -> None:
        if number >= self.first:
            self._others.add(number)
        while self.first in self._others:
            self._others.remove(self.first)
            self.first += 1

    def copy(self) -> "DoneNumbers":
        return DoneNumbers(self.first, self._others)


class InboxProgress:
    """Tickets are numbered from 1 in the order in which they are given out, over all starts. On the event loop."""

    def __init__(self, stored: Mapping[str, Any] | None = None) -> None:
        """`stored`: what `position` gave for the last commit, if any."""
        stored = stored or {}
        self._tickets = DoneNumbers.parse(stored.get("tickets", "0"))
        self._documents = {int(ticket): DoneNumbers.parse(text) for ticket, text in stored.get("documents", {}).items()}
        """Of tickets that are not done, which documents are."""
        self._sizes: dict[int, int] = {}

    @property
    def unused(self) -> int:
        """The least number above those of all tickets so far."""
        highest: int = max([self._tickets.first - 1, *self._tickets, *self._documents, *self._sizes])
        return highest + 1

    def expect(self, ticket: int, size: int) -> None:
        """There is such a ticket, of so many documents."""
        self._sizes[ticket] = size

    def start_at(self, tickets: Iterable[int]) -> None:
        """Of all earlier tickets only these are not done."""
        left = set(tickets)
        first = min(left, default=self.unused)
        self._tickets = DoneNumbers(first, set(range(first, self.unused)) - left)
        self._documents = {ticket: done for ticket, done in self._documents.items() if ticket in left}

    def left(self, ticket: int) -> int:
        """How many documents of the ticket are not done."""
        if ticket in self._tickets:
            return 0
        return self._sizes.get(ticket, 0) - len(self._documents.get(ticket, ()))

    def is_ticket_done(self, ticket: int) -> bool:
        return ticket in self._tickets

    def is_done(self, place: InboxPlace) -> bool:
        return place.ticket in self._tickets or place.at in self._documents.get(place.ticket, ())

    def done(self, places: Iterable[InboxPlace]) -> list[int]:
        """These documents are done; returns the tickets of which they were the last."""
        ended = []
        for ticket, at in places:
            if ticket in self._tickets:
                continue
            self._documents.setdefault(ticket, DoneNumbers()).add(at)
            if not self.left(ticket):
                self._tickets.add(ticket)
                del self._documents[ticket], self._sizes[ticket]
                ended.append(ticket)
        return ended

    def position(self, places: Iterable[InboxPlace] = ()) -> dict[str, Any]:
        """What is done once these documents are, to be stored with the commit that completes them."""
        then = InboxProgress()
        then._tickets, then._sizes = self._tickets.copy(), dict(self._sizes)
        then._documents = {ticket: done.copy() for ticket, done in self._documents.items()}
        then.done(places)
        documents = {str(ticket): str(done) for ticket, done in sorted(then._documents.items())}
        return {"tickets": str(then._tickets), "documents": documents}
