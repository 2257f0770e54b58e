"""The files of the inbox: an `add` that was answered survives a crash."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import structlog

from daemon.pipeline.work_items import AddedDocument
from store.durable_files import PART, durable_file

log = structlog.get_logger()


def ticket_number(ticket: str) -> int:
    """Tickets are numbered in the order in which they are given out, anew after a start with an empty inbox."""
    return int(ticket.partition(".")[0])


class InboxFiles:
    """One file for each `add`, one line for each document; deleted when all its documents are done.

    A ticket is the name of such a file. `put` is for any thread, one at a time; all else is for the event loop.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        names = sorted(path.name for path in folder.glob("*.jsonl"))
        self._next = int(names[-1].split(".")[0]) + 1 if names else 1
        self._documents_left: dict[str, int] = {}
        for leftover in folder.glob(f"*{PART}"):
            leftover.unlink()

    def put(self, documents: Sequence[AddedDocument]) -> str:
        """Writes the documents; returns the ticket once power loss does not lose them. OSError leaves nothing behind."""
        ticket = f"{self._next:012d}.jsonl"
        self._next += 1
        try:
            with durable_file(self._folder / ticket) as file:
                for document in documents:
                    file.write(json.dumps(asdict(document)).encode() + b"\n")
        except BaseException:
            # What was refused must not be taken up at the next start.
            with contextlib.suppress(OSError):
                (self._folder / ticket).unlink()
            raise
        return ticket

    def expect(self, ticket: str, count: int) -> None:
        """`count` documents of the ticket are under way."""
        self._documents_left[ticket] = count

    def left(self, ticket: str) -> int:
        """How many documents of the ticket are not done."""
        return self._documents_left.get(ticket, 0)

    def done(self, ticket: str) -> bool:
        """One document of the ticket is committed, or a later one took its place. Returns whether it was the last."""
        self._documents_left[ticket] = self._documents_left.get(ticket, 1) - 1
        if self._documents_left[ticket] <= 0:
            del self._documents_left[ticket]
            with contextlib.suppress(FileNotFoundError):
                (self._folder / ticket).unlink()
            return True
        return False

    def recover(self) -> Iterator[tuple[str, list[AddedDocument]]]:
        """Tickets left from before, oldest first, with their documents."""
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open(encoding="utf-8") as file:
                documents = [AddedDocument(**json.loads(line)) for line in file]
            log.info("inbox_recovered", ticket=path.name, documents=len(documents))
            yield path.name, documents
