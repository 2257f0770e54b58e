"""The files of the inbox: they make an acknowledged `add` survive a crash."""

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from daemon.pipeline.work_items import AddedDocument
from store.durable_files import PART, durable_file
from store.untrusted_names import inside


class InboxFiles:
    """One file per `add`, named by its ticket, with one line per document.

    `put` may be called from any thread, one call at a time; all other methods on the event loop only.
    """

    def __init__(self, folder: Path, next_ticket: int, check: Callable[[], None] = lambda: None) -> None:
        """`next_ticket` is higher than all tickets that had no file at the last stop. `check` raises OSError if nothing may be
        written at present."""
        self._folder = folder
        self._check = check
        folder.mkdir(mode=0o700, exist_ok=True)
        self._next = max([next_ticket, *(ticket + 1 for ticket in self.tickets())])
        for leftover in folder.glob(f"*{PART}"):
            leftover.unlink()

    def tickets(self) -> list[int]:
        """Returns the tickets that have a file, oldest first."""
        return sorted(int(path.stem) for path in self._folder.glob("*.jsonl"))

    def put(self, documents: Sequence[AddedDocument]) -> int:
        """Writes the documents; returns their ticket when a power failure cannot lose them. OSError leaves no file."""
        self._check()
        ticket = self._next
        self._next += 1
        try:
            with durable_file(self._file(ticket)) as file:
                for document in documents:
                    file.write(json.dumps(asdict(document)).encode() + b"\n")
        except BaseException:
            # The caller refuses the documents, so the next start must not find them.
            with contextlib.suppress(OSError):
                self._file(ticket).unlink()
            raise
        return ticket

    def read(self, ticket: int) -> list[AddedDocument]:
        with self._file(ticket).open(encoding="utf-8") as file:
            return [AddedDocument(**json.loads(line)) for line in file]

    def delete(self, ticket: int) -> None:
        self._file(ticket).unlink(missing_ok=True)

    def _file(self, ticket: int) -> Path:
        return inside(self._folder, f"{ticket:012d}.jsonl")
