"""Which documents of the inbox are done: a position that each commit stores with its documents.

A file of the inbox is deleted only when all its documents are done. So each commit records the documents that are done: if the
next start queued the whole file, it would undo later corrections or removals.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

POSITION = "inbox"
"""Key of the position in the store."""


class InboxPlace(NamedTuple):
    """A document in the inbox: its ticket, and its index among the ticket's documents (from 0)."""

    ticket: int
    at: int


class DoneNumbers:
    """A set of finished numbers: all numbers below `first`, and `others`. Most numbers finish in order."""

    def __init__(self, first: int = 0, others: Iterable[int] = ()) -> None:
        self.first = first
        self._others = set(others)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses the result of `str`, for example "0-95,97"."""
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
        """Iterates over the finished numbers from `first` on."""
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
    """Finished tickets and documents. Tickets are numbered from 1, continuing over restarts. Use on the event loop only."""

    def __init__(self, stored: Mapping[str, Any] | None = None) -> None:
        """`stored` is the result of `position` in the last commit, if any."""
        stored = stored or {}
        self._tickets = DoneNumbers.parse(stored.get("tickets", "0"))
        self._documents = {int(ticket): DoneNumbers.parse(text) for ticket, text in stored.get("documents", {}).items()}
        """Finished documents of each unfinished ticket."""
        self._sizes: dict[int, int] = {}

    @property
    def unused(self) -> int:
        """Lowest number above all tickets so far."""
        highest: int = max([self._tickets.first - 1, *self._tickets, *self._documents, *self._sizes])
        return highest + 1

    def expect(self, ticket: int, size: int) -> None:
        """Registers a ticket with `size` documents."""
        self._sizes[ticket] = size

    def start_at(self, tickets: Iterable[int]) -> None:
        """Marks all tickets up to now, except `tickets`, as done."""
        left = set(tickets)
        first = min(left, default=self.unused)
        self._tickets = DoneNumbers(first, set(range(first, self.unused)) - left)
        self._documents = {ticket: done for ticket, done in self._documents.items() if ticket in left}

    def left(self, ticket: int) -> int:
        """Returns the number of unfinished documents of the ticket."""
        if ticket in self._tickets:
            return 0
        return self._sizes.get(ticket, 0) - len(self._documents.get(ticket, ()))

    def is_ticket_done(self, ticket: int) -> bool:
        return ticket in self._tickets

    def is_done(self, place: InboxPlace) -> bool:
        return place.ticket in self._tickets or place.at in self._documents.get(place.ticket, ())

    def done(self, places: Iterable[InboxPlace]) -> list[int]:
        """Marks the documents at `places` as done; returns the tickets that are complete now."""
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
        """Returns the position to store in the commit that completes the documents at `places`."""
        then = InboxProgress()
        then._tickets, then._sizes = self._tickets.copy(), dict(self._sizes)
        then._documents = {ticket: done.copy() for ticket, done in self._documents.items()}
        then.done(places)
        documents = {str(ticket): str(done) for ticket, done in sorted(then._documents.items())}
        return {"tickets": str(then._tickets), "documents": documents}
