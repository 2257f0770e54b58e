"""Followed topics of records: the source of a replica. Nothing is extracted or encoded. Older records never replace newer ones.

A child process checks the bytes of a message before this module decodes them.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from consumers.failure_codes import FailureCode
from consumers.kafka.decode import unreadable_document
from consumers.kafka.message import KafkaMessage
from consumers.kafka.offset_tracker import MessageAcknowledgement
from consumers.records.messages import Part, PartAssembler, part_of, position_of, uri_of
from consumers.records.reader import from_message
from consumers.records.record import Record, RecordError, SourcePosition
from consumers.types import ParsedDocument
from daemon.parser_pool.pool import ParserPool
from daemon.pipeline.ownership import NotOwner
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.record_import import record_delivery
from daemon.pipeline.work_items import DeliveredDocument
from daemon.sources.kafka.declaration import KafkaSection
from daemon.sources.kafka.source import BaseKafkaSource
from store.store import Store
from store.types import Document

EXPIRY_INTERVAL_S = 2.0
"""Interval of checks for incomplete records that have waited too long for their missing parts."""


@dataclass(frozen=True, slots=True)
class RecordPart:
    """A part of a record; only all parts together can be decoded."""

    uri: str
    part: Part
    position: SourcePosition | None


@dataclass(frozen=True, slots=True)
class PartRemoved:
    """A null for one part of a record, which does not remove the document."""


ReadMessage = Record | RecordPart | PartRemoved | ParsedDocument
"""A decoded message; a `ParsedDocument` contains the error of an unreadable message."""


class RecordReader:
    def __init__(self, pool: ParserPool, source: str = "") -> None:
        """`source` is the source whose share of the workers the reader uses."""
        self._pool = pool
        self._source = source

    async def read(self, messages: Sequence[KafkaMessage]) -> list[ReadMessage]:
        """Decodes each message, in order. A message that crashes its worker does not affect other messages."""
        found = [_outside(message) for message in messages]
        whole = [number for number, each in enumerate(found) if each is None]
        values = [messages[number].value or b"" for number in whole]
        for number, each in zip(whole, await self._values(values), strict=True):
            found[number] = self._checked(messages[number], each)
        return [each for each in found if each is not None]

    async def read_whole(self, message: KafkaMessage, value: bytes) -> Record | ParsedDocument:
        """Decodes a record that arrived in parts. `message` is the last part; `value` is all parts, joined."""
        [found] = await self._values([value])
        return self._checked(message, found)

    async def _values(self, values: Sequence[bytes]) -> list[Record | RecordError]:
        if not values:
            return []
        verdicts = await self._pool.check_records(values, self._source)
        good = [value for value, verdict in zip(values, verdicts, strict=True) if verdict is None]
        records = iter(await asyncio.to_thread(lambda: [from_message(value) for value in good]))
        return [next(records) if verdict is None else RecordError(verdict) for verdict in verdicts]

    def _checked(self, message: KafkaMessage, found: Record | RecordError) -> Record | ParsedDocument:
        if isinstance(found, Record):
            key = (message.key or b"").decode("utf-8", "replace")
            if found.uri == key or key.startswith(f"{found.uri}\x1f"):
                return found
            found = RecordError(f"its key is {key!r}, and its record that of {found.uri}")
        return unreadable_document(message, str(found), FailureCode.DAMAGED)


def _outside(message: KafkaMessage) -> ReadMessage | None:
    """Decodes a message from its key and headers; None if they do not suffice."""
    try:
        uri = uri_of(message.key)
        position, part = position_of(message.headers), part_of(message.headers)
    except RecordError as error:
        return unreadable_document(message, str(error), FailureCode.DAMAGED)
    if message.value is None and (message.key or b"").decode() != uri:
        return PartRemoved()
    if message.value is None:
        return Record(ParsedDocument(uri, deleted=True), (), position)
    return None if part is None else RecordPart(uri, part, position)


class RecordsSource(BaseKafkaSource[ReadMessage]):
    """One `[[kafka]]` with `format = "records"`."""

    def __init__(self, kafka: KafkaSection, store: Store, pipeline: Pipeline, pool: ParserPool) -> None:
        super().__init__(kafka, store, pipeline)
        self._reader = RecordReader(pool, self.name)
        self._parts: PartAssembler[MessageAcknowledgement] = PartAssembler()

    def start(self) -> None:
        super().start()
        self._feed.spawn(self._expire_parts())

    async def _expire_parts(self) -> None:
        """Releases expired parts at intervals, because no further message may arrive."""
        while True:
            await asyncio.sleep(EXPIRY_INTERVAL_S)
            await self._release(self._parts.expired(self._feed.has_read_all))

    async def _read(self, messages: list[KafkaMessage]) -> list[ReadMessage]:
        return await self._reader.read(messages)

    async def _deliver(self, message: KafkaMessage, acknowledgement: MessageAcknowledgement, read: ReadMessage) -> None:
        acknowledgement.parts_left = 1
        if isinstance(read, RecordPart):
            await self._deliver_part(message, acknowledgement, read)
        elif isinstance(read, PartRemoved):
            await self._release([acknowledgement])
        else:
            await self._deliver_whole(message, [acknowledgement], read)

    async def _deliver_part(
        self, message: KafkaMessage, acknowledgement: MessageAcknowledgement, read: RecordPart
    ) -> None:
        acknowledgement.tracker.release_bytes(acknowledgement)
        found = self._parts.add(read.uri, read.part, read.position, message.value or b"", acknowledgement)
        await self._release(found.released)
        if found.broken:
            reason = "its parts, put together, are not the record that was written"
            await self._unreadable(message, _damaged(message, reason), found.tokens)
        elif found.value is not None:
            await self._deliver_whole(message, found.tokens, await self._reader.read_whole(message, found.value))

    async def _deliver_whole(
        self,
        message: KafkaMessage,
        acknowledgements: Iterable[MessageAcknowledgement],
        read: Record | ParsedDocument,
    ) -> None:
        if isinstance(read, ParsedDocument):
            await self._unreadable(message, read, tuple(acknowledgements))
            return
        ended = (*self._parts.supersede(read.uri, read.position), *acknowledgements)
        try:
            await self._pipeline.deliver(record_delivery(read, message.payload), self.name, more=ended)
        except NotOwner as refused:
            await self._unreadable(message, _refused(message, refused), ended)

    async def _release(self, acknowledgements: Iterable[MessageAcknowledgement]) -> None:
        """Completes messages that yield no document; the next commit stores their positions."""
        for acknowledgement in acknowledgements:
            task = DeliveredDocument(acknowledgement.tracker.key, None)
            await self._pipeline.deliver(task, self.name, acknowledgement=acknowledgement)

    async def _read_again(self, document: Document) -> None:
        message = KafkaMessage.from_payload(document.payload or "")
        [read] = await self._reader.read([message])
        if isinstance(read, Record):
            try:
                await self._pipeline.deliver(record_delivery(read, message.payload), self.name, document.attempts)
            except NotOwner as refused:
                read = _refused(message, refused)
            else:
                if read.uri != document.uri:
                    await self._pipeline.deliver(DeliveredDocument(document.uri, None), self.name)
                return
        failed = read if isinstance(read, ParsedDocument) else _damaged(message, "only a part of a record is kept")
        await self._pipeline.deliver(DeliveredDocument(document.uri, failed, message.payload), self.name)


def _damaged(message: KafkaMessage, reason: str) -> ParsedDocument:
    return unreadable_document(message, reason, FailureCode.DAMAGED)


def _refused(message: KafkaMessage, refused: NotOwner) -> ParsedDocument:
    return unreadable_document(message, str(refused), FailureCode.OWNERSHIP)
