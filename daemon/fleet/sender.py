"""Encodes records in batches, sends them, and only then acknowledges their messages."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import structlog

from consumers.failure_codes import FailureCode
from consumers.kafka.offset_tracker import MessageAcknowledgement
from consumers.kafka.record_publisher import RecordPublisher
from consumers.records.messages import RecordMessage, to_messages
from consumers.records.record import Record
from consumers.records.writer import state_of
from consumers.types import ParsedDocument
from daemon.fleet.record_maker import RecordMaker
from daemon.observe.metrics import RECORDS
from daemon.pipeline.outage import Dependency, encoder_is_unavailable
from daemon.sources.kafka.dead_letter_queue import are_brokers_unreachable
from memory.encoder.errors import EncoderRefused

SEND_BATCH_RECORDS = 64
"""Maximum messages whose records are encoded and sent together: enough to share the cost of a call, few enough for a short
delay."""
SEND_BATCH_PASSAGES = 256
MAX_PAUSE_S = 2.0
"""Maximum pause before another try of the embedding server or the brokers."""
VECTORS_MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of a record with vectors. A larger record is sent without vectors, and the replica encodes it."""
RECORD_MAX_BYTES = 256 * 1024 * 1024
"""Maximum size of a record without vectors. A larger record is replaced by the record of a failed document."""

log = structlog.get_logger()


class TopicRefuses(Exception):
    """The topic refuses even the records of failed documents."""


@dataclass(frozen=True, slots=True, eq=False)
class Outgoing:
    """The records of one message; `sent` is set when the brokers have all of them."""

    records: list[Record]
    acknowledgement: MessageAcknowledgement
    sent: asyncio.Event


class RecordSender:
    """Sends records in the order of `put`. Use on the event loop; it sends in its own thread."""

    def __init__(self, maker: RecordMaker, publisher: RecordPublisher, message_bytes: int) -> None:
        self._maker = maker
        self._publisher = publisher
        self._message_bytes = message_bytes
        self._waiting: asyncio.Queue[Outgoing] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="records")
        self.needed = Dependency(MAX_PAUSE_S)
        """Tracks outages of the brokers and of the encoder's server."""

    def put(self, outgoing: Outgoing) -> None:
        self._waiting.put_nowait(outgoing)

    async def run(self) -> None:
        """Sends records until cancelled."""
        while True:
            batch = [await self._waiting.get()]
            passages = _passages(batch[0])
            while len(batch) < SEND_BATCH_RECORDS and passages < SEND_BATCH_PASSAGES and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
                passages += _passages(batch[-1])
            batch = _still_owned(batch)
            await self._encode_and_send([record for each in batch for record in each.records])
            for each in batch:
                each.acknowledgement.done()
                each.sent.set()

    async def _encode_and_send(self, records: list[Record]) -> None:
        if not records:
            return
        encoded = await self._encoded(records)
        loop = asyncio.get_running_loop()
        messages = await loop.run_in_executor(
            self._thread, lambda: [(each, self._message_parts(each)) for each in encoded]
        )
        await self._send(messages)
        for record in encoded:
            RECORDS.labels(state_of(record.document)).inc()

    def close(self) -> None:
        self._thread.submit(self._publisher.close)
        self._thread.shutdown(wait=False)

    async def _encoded(self, records: list[Record]) -> list[Record]:
        try:
            problem = "the embeddings server does not answer"
            encode = partial(self._maker.encoded, records)
            return await self.needed.until_done("records_wait", encode, encoder_is_unavailable, problem)
        except EncoderRefused as error:
            if len(records) > 1:
                return [done for record in records for done in await self._encoded([record])]
            log.warning("record_without_vectors", uri=records[0].uri, error=error.loggable)
            return records

    def _message_parts(self, record: Record) -> list[RecordMessage]:
        messages = to_messages(record, self._message_bytes)
        if _size(messages) > VECTORS_MAX_BYTES and record.vectors is not None:
            messages = to_messages(replace(record, vectors=None), self._message_bytes)
        if _size(messages) > RECORD_MAX_BYTES:
            reason = f"its record has more than {RECORD_MAX_BYTES >> 20} MiB; split the document up"
            messages = to_messages(failed_record(record, reason, FailureCode.TOO_LARGE), self._message_bytes)
        return messages

    async def _send(self, outgoing: Sequence[tuple[Record, list[RecordMessage]]]) -> None:
        refusals = await self._publish([messages for _, messages in outgoing])
        refused = [
            (record, reason) for (record, _), reason in zip(outgoing, refusals, strict=True) if reason is not None
        ]
        if not refused:
            return
        failures = []
        for record, reason in refused:
            log.warning("record_refused", uri=record.uri, error=reason)
            failures.append(to_messages(failed_record(record, reason, FailureCode.TOO_LARGE), self._message_bytes))
        while any(await self._publish(failures)):
            # The topic refuses even the record of the failure. Acknowledging the message would lose the document silently.
            await self.needed.wait("records_wait", TopicRefuses(f"the topic refuses records: {refused[0][1]}"))

    async def _publish(self, messages: Sequence[list[RecordMessage]]) -> list[str | None]:
        publish = partial(asyncio.get_running_loop().run_in_executor, self._thread, self._publisher.publish, messages)
        problem = "records wait for the brokers"
        return await self.needed.until_done("records_wait", publish, are_brokers_unreachable, problem)


def failed_record(record: Record, reason: str, code: FailureCode) -> Record:
    """Returns the record of a failed document, to be sent in place of a record that cannot be sent."""
    document = record.document
    metadata = {"kafka": document.metadata["kafka"]} if "kafka" in document.metadata else {}
    failed = ParsedDocument(
        record.uri, document.title[:200], metadata=metadata, modified_at=document.modified_at, error=reason, code=code
    )
    return Record(failed, (), record.position)


def _still_owned(batch: Sequence[Outgoing]) -> list[Outgoing]:
    """Returns the batch without messages of reassigned partitions. Another worker processes these messages again, and no older
    record may follow that worker's records."""
    owned = []
    for each in batch:
        if each.acknowledgement.tracker.disowned:
            each.acknowledgement.drop()
            each.sent.set()
        else:
            owned.append(each)
    return owned


def _size(messages: Sequence[RecordMessage]) -> int:
    return sum(len(message.value or b"") for message in messages)


def _passages(outgoing: Outgoing) -> int:
    return sum(len(record.document.passages) for record in outgoing.records)
