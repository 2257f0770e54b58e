"""Added documents that are not indexed yet: stored on disk, limited in number and bytes, and queued in the intake."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import structlog

from daemon.errors import STORE_LOST, Busy, NotReady, TooLarge
from daemon.observe.redaction import system_error
from daemon.pipeline.backpressure import Capacity, QueueLimits
from daemon.pipeline.incoming.inbox_progress import POSITION, InboxPlace, InboxProgress
from daemon.pipeline.incoming.intake import STOPPING, Intake
from daemon.pipeline.ownership import ADDED
from daemon.pipeline.work_items import AddedDocument, Urgency, Work
from store.durable_files import PART, durable_file
from store.errors import StoreFolderLost
from store.untrusted_names import inside

IMPORT_SHARE = 0.5
"""Share of the inbox that imports may fill, because imports wait for space, whereas an `add` without space is refused."""
MEMORY_RETRY_AFTER_S = 60
"""Retry-After sent while the memory limit is reached: only an operator or the scheduled maintenance can free memory."""
MEMORY_SHORT = (
    "Memory is short ([store] memory_limit), so nothing is added until there is room; none of these documents was "
    "accepted. `hippoctl status` of a client that sees everything shows the use."
)
"""Contains no sizes: a client that sees only some documents must not learn the size of the whole memory."""
QUEUE_SLICE_DOCUMENTS = 500
"""Documents queued before the event loop serves other tasks; takes some milliseconds."""

log = structlog.get_logger()


class InboxFiles:
    """One file per `add`, named by its ticket, with one line per document.

    `put` may be called from any thread, but not concurrently; all other methods on the event loop only.
    """

    def __init__(self, folder: Path, next_ticket: int, check: Callable[[], None] = lambda: None) -> None:
        """`next_ticket` must be higher than all earlier tickets whose files were deleted. `check` raises OSError if writing is
        forbidden at present."""
        self._folder = folder
        self._check = check
        folder.mkdir(mode=0o700, exist_ok=True)
        self._next = max([next_ticket, *(ticket + 1 for ticket in self.tickets())])
        for leftover in folder.glob(f"*{PART}"):
            leftover.unlink()

    def tickets(self) -> list[int]:
        """Returns the tickets that have a file, oldest first."""
        return sorted(int(path.stem) for path in self._folder.glob("*.jsonl") if path.stem.isdecimal())

    def put(self, documents: Sequence[AddedDocument]) -> int:
        """Writes the documents; returns their ticket once a power failure cannot lose them. On OSError, no file remains."""
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

    def read(self, ticket: int) -> list[AddedDocument] | None:
        """Returns the documents of a ticket. If its file is damaged, renames the file, logs an error and returns None."""
        path = self._file(ticket)
        try:
            with path.open(encoding="utf-8") as file:
                return [AddedDocument(**json.loads(line)) for line in file]
        except (ValueError, TypeError) as error:
            damaged = path.replace(path.with_suffix(".damaged"))
            log.error("inbox_file_damaged", file=str(damaged), error=error)
            return None

    def delete(self, ticket: int) -> None:
        self._file(ticket).unlink(missing_ok=True)

    def _file(self, ticket: int) -> Path:
        return inside(self._folder, f"{ticket:012d}.jsonl")


class Inbox:
    """Stores and queues added documents. Use on the event loop only; files are written in a separate thread."""

    def __init__(
        self,
        folder: Path,
        intake: Intake,
        limits: QueueLimits,
        stored: Mapping[str, Any] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`stored` is the inbox position of the last commit. `check` raises OSError if writing is forbidden at present."""
        self._progress = InboxProgress(stored)
        self._files = InboxFiles(folder, self._progress.unused, check)
        self._intake = intake
        self.capacity = Capacity(limits.inbox_documents, limits.inbox_bytes)
        """Number and bytes of added documents that are not indexed yet."""
        self._weights: dict[int, tuple[int, int]] = {}
        """Number and bytes of the documents of each unfinished ticket."""
        self._queueing = asyncio.Lock()
        self._adding: set[asyncio.Task[int]] = set()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="inbox")

    def recover(self) -> None:
        """Queues the documents that an earlier run did not finish, oldest first."""
        left = {}
        for ticket in self._files.tickets():
            if self._progress.is_ticket_done(ticket):
                self._files.delete(ticket)  # a crash after the last commit left the file behind
            elif (documents := self._files.read(ticket)) is not None:
                left[ticket] = documents
        self._progress.start_at(left)
        for ticket, documents in left.items():
            weight = _weight(documents)
            self.capacity.take(*weight)
            self._expect(ticket, weight)
            log.info("inbox_recovered", ticket=ticket, documents=self._progress.left(ticket))
            self._queue(ticket, documents)

    def close(self) -> None:
        self._writer.shutdown(wait=False)

    def refuse_too_many(self, documents: int, bytes: int = 0) -> None:
        """Raises TooLarge if `documents` or `bytes` exceeds the limit of an empty inbox."""
        max_documents, max_bytes = self.capacity.limits
        none_taken = "none was accepted: send them in several requests"
        if documents > max_documents:
            raise TooLarge(
                f"The request has {documents} documents, and at most {max_documents} may wait to be indexed ([daemon] "
                f"inbox_documents); {none_taken}."
            )
        if bytes > max_bytes:
            raise TooLarge(
                f"The documents have {bytes} bytes, and at most {max_bytes} may wait to be indexed ([daemon] "
                f"inbox_bytes); {none_taken}, and split a single document that is larger."
            )

    async def add(self, documents: Sequence[AddedDocument], wait: bool = False) -> int:
        """Stores documents with distinct URIs; returns their ticket once a crash cannot lose them.

        Raises Busy if too many documents wait or the memory limit is reached; with `wait`, waits instead. Raises TooLarge if
        the documents exceed the inbox's limits; with `wait`, waits until the inbox is empty, and then accepts them. Raises
        NotReady if hippod is stopping or the write fails.
        """
        weight = _weight(documents)
        if not wait:
            self.refuse_too_many(*weight)
        while self._intake.paused or not self.capacity.fits(*weight, share=IMPORT_SHARE if wait else 1.0):
            if self._intake.stopping:
                raise NotReady(STOPPING)
            if self._intake.paused and not wait:
                raise Busy(MEMORY_SHORT, resource="memory", retry_after_s=MEMORY_RETRY_AFTER_S)
            if not wait:
                raise Busy(
                    "The limit of added documents that wait to be indexed is reached ([daemon] inbox_documents, inbox_bytes); "
                    "none of these was accepted: send them again in a moment.",
                    resource="inbox",
                    retry_after_s=2,
                )
            await self._intake.changed_within(0.5)
        self.capacity.take(*weight)
        adding = asyncio.create_task(self._write_and_queue(documents, weight), name="add")
        self._adding.add(adding)
        adding.add_done_callback(self._adding.discard)
        return await asyncio.shield(adding)  # queue all documents on disk, even if the caller is cancelled

    async def _write_and_queue(self, documents: Sequence[AddedDocument], weight: tuple[int, int]) -> int:
        try:
            if self._intake.stopping:
                raise NotReady(STOPPING)
            ticket = await asyncio.get_running_loop().run_in_executor(self._writer, self._files.put, documents)
        except StoreFolderLost as error:
            self.capacity.release(*weight)
            raise NotReady(f"{STORE_LOST} None of these documents was accepted.", retry_after_s=10) from error
        except OSError as error:
            self.capacity.release(*weight)
            raise NotReady(
                f"The disk of the memory ([store] path) refused to store the added documents: "
                f"{system_error(error) or type(error).__name__}; none was accepted: send them again once the disk has room.",
                retry_after_s=10,
            ) from error
        except BaseException:
            self.capacity.release(*weight)
            raise
        self._expect(ticket, weight)
        # Queue in the order of tickets, as after a crash.
        async with self._queueing:
            for start in range(0, len(documents), QUEUE_SLICE_DOCUMENTS):
                self._queue(ticket, documents[start : start + QUEUE_SLICE_DOCUMENTS], start)
                await asyncio.sleep(0)
        return ticket

    async def indexed(self, tickets: Iterable[int]) -> None:
        """Returns once the documents of these tickets, or later versions of them, are committed."""
        for ticket in tickets:
            while ticket in self._weights:
                await self._intake.changed()

    def indexed_up_to(self, ticket: int) -> int:
        """Returns the highest ticket, at most `ticket`, such that all tickets up to it are indexed.

        Excludes tickets that this store never issued, which a client may have if the store was restored from a backup.
        """
        following = min(self._weights, default=self._progress.unused)
        return min(following - 1, ticket)

    def waiting(self, tickets: Iterable[int]) -> int:
        """Returns the number of uncommitted documents of these tickets."""
        return sum(self._progress.left(ticket) for ticket in tickets)

    def positions(self, places: Sequence[InboxPlace]) -> dict[str, Any]:
        """Returns the position to commit with the documents at `places`, so that the next start does not queue them again."""
        return {POSITION: self._progress.position(places)} if places else {}

    def done(self, work: Work) -> None:
        """Records that `work` is committed, failed or superseded."""
        for ticket in self._progress.done(work.inbox_places):
            self._end(ticket)

    def _end(self, ticket: int) -> None:
        self._files.delete(ticket)
        self.capacity.release(*self._weights.pop(ticket))

    def _expect(self, ticket: int, weight: tuple[int, int]) -> None:
        self._weights[ticket] = weight
        self._progress.expect(ticket, weight[0])

    def _queue(self, ticket: int, documents: Sequence[AddedDocument], first: int = 0) -> None:
        """Queues the unfinished documents among `documents`. `first` is the index of the first of `documents` within the
        ticket."""
        for at, document in enumerate(documents, first):
            if self._progress.is_done(place := InboxPlace(ticket, at)):
                continue
            # Imported documents (`whole`) are bulk. For requests of many documents, the intake itself detects the burst.
            urgency = Urgency.BULK if document.whole else Urgency.FRESH
            self._intake.put(Work(document.uri, document, ADDED, inbox_places=[place], urgency=urgency))


def _weight(documents: Sequence[AddedDocument]) -> tuple[int, int]:
    """Returns the number of documents and their bytes in UTF-8."""
    return len(documents), sum(_utf8_bytes(document.text) for document in documents)


def _utf8_bytes(text: str) -> int:
    """Returns the number of bytes in UTF-8. ASCII text, such as escaped JSON, has as many bytes as characters."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
