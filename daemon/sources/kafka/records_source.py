"""Followed topics of records, the source of a replica. Extracts and encodes nothing. Older records never replace newer ones."""

import asyncio
from collections.abc import Iterable

from consumers.failure_codes import FailureCode
from consumers.kafka.decode import unreadable_document
from consumers.kafka.message import KafkaMessage
from consumers.kafka.offsets.offset_tracker import MessageAcknowledgement
from consumers.records.assembler import PartAssembler
from consumers.records.record import Record
from consumers.types import ParsedDocument
from daemon.parser_pool.pool import ParserPool
from daemon.pipeline.ownership import NotOwner
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.record_import import record_delivery
from daemon.pipeline.work_items import DeliveredDocument
from daemon.sources.kafka.declaration import KafkaSection
from daemon.sources.kafka.record_reader import PartRemoved, ReadMessage, RecordPart, RecordReader
from daemon.sources.kafka.source import BaseKafkaSource
from store.store import Store
from store.types import Document

EXPIRY_INTERVAL_S = 2.0
"""Interval of the search for parts that have waited too long for the others."""


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
        """Ends messages that deliver no document; their positions are stored with the next commit."""
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
