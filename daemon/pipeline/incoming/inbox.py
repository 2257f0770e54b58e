"""Documents that were added and are not indexed yet: on disk, counted against a limit, and queued in the intake."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import structlog

from daemon.errors import STORE_LOST, Busy, NotReady, TooLarge
from daemon.observe.redaction import system_error
from daemon.pipeline.backpressure import Capacity, QueueLimits
from daemon.pipeline.incoming.inbox_files import InboxFiles
from daemon.pipeline.incoming.inbox_progress import POSITION, InboxPlace, InboxProgress
from daemon.pipeline.incoming.intake import STOPPING, Intake
from daemon.pipeline.ownership import ADDED
from daemon.pipeline.work_items import AddedDocument, Urgency, Work
from store.errors import StoreFolderLost

log = structlog.get_logger()

IMPORT_SHARE = 0.5
"""Of the room, what those may fill who wait for it: an import leaves the rest to who would be refused."""

MEMORY_RETRY_AFTER_S = 60
"""What a client is told to wait that adds while the memory may not grow: room comes with a person, or with the upkeep."""

MEMORY_SHORT = (
    "Memory is short ([store] memory_limit), so nothing is added until there is room; none of these documents was "
    "accepted. `hippoctl status` of a client that sees everything shows the use."
)
"""Without amounts: they say how large the whole memory is, also to a client that sees only some documents."""

QUEUE_SLICE_DOCUMENTS = 500
"""Documents that are queued, some milliseconds' work, before the event loop is free for others."""


class Inbox:
    """On the event loop; files are written in a thread of its own."""

    def __init__(
        self,
        folder: Path,
        intake: Intake,
        limits: QueueLimits,
        stored: Mapping[str, Any] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`stored`: the position of the last commit. `check` raises OSError if nothing may be written now."""
        self._progress = InboxProgress(stored)
        self._files = InboxFiles(folder, self._progress.unused, check)
        self._intake = intake
        self.capacity = Capacity(limits.inbox_documents, limits.inbox_bytes)
        """What was added and is not indexed: documents, and bytes."""
        self._weights: dict[int, tuple[int, int]] = {}
        """Documents and bytes of each ticket that is not done."""
        self._queueing = asyncio.Lock()
        self._adding: set[asyncio.Task[int]] = set()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="inbox")

    def recover(self) -> None:
        """Queues what an earlier run left undone, oldest first."""
        left = []
        for ticket in self._files.tickets():
            if self._progress.is_ticket_done(ticket):
                self._files.delete(ticket)  # its last documents were committed just before a crash
            else:
                left.append(ticket)
        self._progress.start_at(left)
        for ticket in left:
            documents = self._files.read(ticket)
            weight = _weight(documents)
            self.capacity.take(*weight)
            self._expect(ticket, weight)
            log.info("inbox_recovered", ticket=ticket, documents=self._progress.left(ticket))
            self._queue(ticket, documents)

    def close(self) -> None:
        self._writer.shutdown(wait=False)

    def refuse_too_many(self, documents: int, bytes: int = 0) -> None:
        """TooLarge where that much could not wait to be indexed even if nothing else did."""
        most, most_bytes = self.capacity.most
        none_taken = "none was accepted: send them in several requests"
        if documents > most:
            raise TooLarge(
                f"The request has {documents} documents, and at most {most} may wait to be indexed ([daemon] "
                f"inbox_documents); {none_taken}."
            )
        if bytes > most_bytes:
            raise TooLarge(
                f"The documents have {bytes} bytes, and at most {most_bytes} may wait to be indexed ([daemon] "
                f"inbox_bytes); {none_taken}, and split a single document that is larger."
            )

    async def add(self, documents: Sequence[AddedDocument], wait: bool = False) -> int:
        """Returns their ticket once a crash does not lose the documents, of which no two have the same URI.

        Where too many wait already, or the memory may not grow: Busy, or with `wait` it waits too. More than could ever wait:
        TooLarge, or with `wait` they are taken once nothing else waits. NotReady where hippod stops, or the disk takes nothing.
        """
        weight = _weight(documents)
        if not wait:
            self.refuse_too_many(*weight)
        while self._intake.paused or not self.capacity.fits(*weight, share=IMPORT_SHARE if wait else 1.0):
            if self._intake.stopping:
                raise NotReady(STOPPING)
            if self._intake.paused and not wait:
                raise Busy(MEMORY_SHORT, of="memory", retry_after_s=MEMORY_RETRY_AFTER_S)
            if not wait:
                raise Busy(
                    "The limit of added documents that wait to be indexed is reached ([daemon] inbox_documents, inbox_bytes); "
                    "none of these was accepted: send them again in a moment.",
                    of="inbox",
                    retry_after_s=2,
                )
            await self._intake.changed_within(0.5)
        self.capacity.take(*weight)
        adding = asyncio.create_task(self._write_and_queue(documents, weight), name="add")
        self._adding.add(adding)
        adding.add_done_callback(self._adding.discard)
        return await asyncio.shield(adding)  # the caller may go: what is on disk, or half queued, is queued to its end

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
        # In the order of the tickets, in which they are taken up after a crash.
        async with self._queueing:
            for start in range(0, len(documents), QUEUE_SLICE_DOCUMENTS):
                self._queue(ticket, documents[start : start + QUEUE_SLICE_DOCUMENTS], start)
                await asyncio.sleep(0)
        return ticket

    async def indexed(self, tickets: Iterable[int]) -> None:
        """Returns once the documents that were added for these tickets are committed, or what replaced them."""
        for ticket in tickets:
            while ticket in self._weights:
                await self._intake.changed()

    def indexed_up_to(self, wanted: int) -> int:
        """The number of the last ticket, up to `wanted`, before which none waits. One that was never given out here, before a
        restore say, is not reached."""
        following = min(self._weights, default=self._progress.unused)
        return min(following - 1, wanted)

    def waiting(self, tickets: Iterable[int]) -> int:
        """How many of the documents that were added for these tickets are not committed."""
        return sum(self._progress.left(ticket) for ticket in tickets)

    def positions(self, places: Sequence[InboxPlace]) -> dict[str, Any]:
        """What a commit that completes the documents at `places` stores, so that no later start takes them up again."""
        return {POSITION: self._progress.position(places)} if places else {}

    def done(self, work: Work) -> None:
        """`work` is committed, failed, or not worth doing any more."""
        for ticket in self._progress.done(work.inbox_places):
            self._end(ticket)

    def _end(self, ticket: int) -> None:
        self._files.delete(ticket)
        self.capacity.release(*self._weights.pop(ticket))

    def _expect(self, ticket: int, weight: tuple[int, int]) -> None:
        self._weights[ticket] = weight
        self._progress.expect(ticket, weight[0])

    def _queue(self, ticket: int, documents: Sequence[AddedDocument], first: int = 0) -> None:
        """Those that are not done; the first of them is its ticket's document number `first`."""
        for at, document in enumerate(documents, first):
            if self._progress.is_done(place := InboxPlace(ticket, at)):
                continue
            # What `import` brings is whole. A request of many documents is a burst, which the intake sees.
            urgency = Urgency.BULK if document.whole else Urgency.FRESH
            self._intake.put(document.uri, document, ADDED, inbox_places=[place], urgency=urgency)


def _weight(documents: Sequence[AddedDocument]) -> tuple[int, int]:
    """How many, and of how many bytes in UTF-8."""
    return len(documents), sum(_utf8_bytes(document.text) for document in documents)


def _utf8_bytes(text: str) -> int:
    """Without encoding where every character is one byte, as in JSON that is escaped."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
