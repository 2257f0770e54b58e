"""The worker: takes articles from the group's partitions, processes many at a time, and sends them as records."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog

from consumers.failure_codes import FailureCode
from consumers.kafka.decode import unreadable_document
from consumers.kafka.message import KafkaMessage
from consumers.kafka.offset_tracker import InFlight, MessageAcknowledgement
from consumers.kafka.record_publisher import RecordPublisher
from consumers.records.record import Record, SourcePosition
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from daemon.config.sections import Worker as WorkerSection
from daemon.fleet.record_maker import PositionedDocument, RecordMaker
from daemon.fleet.sender import Outgoing, RecordSender
from daemon.parser_pool.pool import ParserPool, PoolClosed
from daemon.pipeline.extraction.extractors import PassageExtractor
from daemon.sources.kafka.dead_letter_queue import DeadLetterQueue, UnreadableMessage
from daemon.sources.kafka.topic_feed import TopicFeed
from memory.types import Encoder

log = structlog.get_logger()

Coordinates = tuple[str, int, int]


class Worker:
    """Processes articles. Use on the event loop. A worker stores nothing: after it ends, another member of the group again
    processes all messages that were not sent.

    Messages are processed and sent concurrently. Only messages of one document are sent in order, so that a compacted topic
    keeps the newest.
    """

    def __init__(
        self,
        section: WorkerSection,
        pool: ParserPool,
        split: SplitSettings,
        extractor: PassageExtractor,
        encoder: Encoder | None,
    ) -> None:
        assert section.output is not None
        settings = section.settings
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self._maker = RecordMaker(extractor, encoder, self._executor)
        self._read = partial(pool.parse_messages, form=settings.message_format, settings=split)
        publisher = RecordPublisher(settings, section.output)
        self._sender = RecordSender(self._maker, publisher, section.message_bytes)
        self.in_flight = InFlight(section.buffer_messages, section.buffer_bytes)
        self._feed: TopicFeed[list[ParsedDocument]] = TopicFeed(settings, self.in_flight, self._read, self._take)
        self._places = asyncio.Semaphore(section.concurrency)
        self._reading: dict[Coordinates, asyncio.Task[list[Record]]] = {}
        """The extraction of each message until it is sent, so that a message repeated after a rebalance is not paid for
        twice."""
        self._remembered = 4 * section.concurrency
        self._last: dict[str, asyncio.Event] = {}
        """For each document, the event that is set when its latest message is sent."""
        topic = section.dead_letter
        self._dead_letters = DeadLetterQueue(settings, topic, self._letter_sent) if topic else None

    def start(self) -> None:
        self._feed.spawn(self._sender.run())
        if self._dead_letters is not None:
            self._feed.spawn(self._dead_letters.run())
        self._feed.start()

    async def close(self) -> None:
        """Returns the partitions at once, with the offsets of sent messages. Drops unfinished work."""
        for task in tuple(self._reading.values()):
            task.cancel()
        await self._feed.close()
        self._sender.close()
        if self._dead_letters is not None:
            self._dead_letters.close()
        self._executor.shutdown(wait=False, cancel_futures=True)

    # Reports.

    @property
    def problem(self) -> str | None:
        """Why the worker cannot work at present, None if it can."""
        state = self._feed.consumer.state
        dead_letters = self._dead_letters.brokers.problem if self._dead_letters is not None else None
        sending = self._sender.needed.outage
        own = self._feed.problem or (sending and sending.loggable) or dead_letters
        return own or (
            None if state.state in ("starting", "joining", "following") else f"{state.state}: {state.detail}"
        )

    @property
    def broken(self) -> bool:
        """Whether a part of the worker has ended with an internal error, so that only a restart helps."""
        return self._feed.failure is not None

    def lags(self) -> dict[tuple[str, int], int]:
        """Returns, for each assigned partition, the number of offsets whose records are not sent yet."""
        ends = self._feed.offsets.ends
        return {partition: self._feed.lag(partition, end, None) for partition, end in ends.items()}

    # Processing.

    async def _take(
        self, message: KafkaMessage, acknowledgement: MessageAcknowledgement, documents: list[ParsedDocument]
    ) -> None:
        unreadable = [each for each in documents if each.error is not None and not each.skipped and self._dead_letters]
        readable = [each for each in documents if each not in unreadable]
        acknowledgement.parts_left = len(unreadable) + bool(readable)
        for each in unreadable:
            assert self._dead_letters is not None
            self._dead_letters.put(UnreadableMessage(message, each, [acknowledgement]))
        if readable:
            await self._places.acquire()
            if not self._feed.is_owned(acknowledgement):
                self._places.release()
                acknowledgement.drop()
                return
            # From here on, messages are handled in the order of their partition.
            before, sent = self._follow_up({each.uri for each in readable})
            self._feed.spawn(self._extract_and_send(message, acknowledgement, readable, before, sent))

    def _follow_up(self, uris: set[str]) -> tuple[list[asyncio.Event], asyncio.Event]:
        """Returns the events of earlier messages of these documents, and the event to set once this message is sent."""
        sent = asyncio.Event()
        before = [self._last[uri] for uri in uris if uri in self._last]
        self._last.update(dict.fromkeys(uris, sent))
        return before, sent

    async def _extract_and_send(
        self,
        message: KafkaMessage,
        acknowledgement: MessageAcknowledgement,
        documents: Sequence[ParsedDocument],
        before: Sequence[asyncio.Event],
        sent: asyncio.Event,
    ) -> None:
        try:
            records = await self._extracted(message, documents)
            for event in before:
                await event.wait()
            self._sender.put(Outgoing(records, acknowledgement, sent))
        finally:
            self._places.release()
        await sent.wait()
        if self._feed.is_owned(acknowledgement):
            self._reading.pop(message.coordinates, None)
        for document in documents:
            if self._last.get(document.uri) is sent:
                del self._last[document.uri]

    async def _extracted(self, message: KafkaMessage, documents: Sequence[ParsedDocument]) -> list[Record]:
        """Extracts from the message's documents once, even if the message comes again before it is sent."""
        task = self._reading.get(message.coordinates)
        if task is None:
            task = self._reading[message.coordinates] = asyncio.create_task(self._extract(message, documents))
            # Drop the oldest results, because messages of reassigned partitions never come again.
            for old in [key for key, each in self._reading.items() if each.done()][: -self._remembered or None]:
                del self._reading[old]
        return await asyncio.shield(task)

    async def _extract(self, message: KafkaMessage, documents: Sequence[ParsedDocument]) -> list[Record]:
        position = position_of(message)
        try:
            return await self._maker.extracted([PositionedDocument(each, position) for each in documents])
        except PoolClosed:
            raise asyncio.CancelledError from None  # the worker is stopping
        except Exception as error:  # a message that triggers a bug must not stop other messages
            log.error("reading_failed", uri=documents[0].uri, error=error, exc_info=True)
            reason = f"internal error: {type(error).__name__}; see the worker's log"
            return [Record(unreadable_document(message, reason, FailureCode.INTERNAL), (), position)]

    async def _letter_sent(self, unreadable: UnreadableMessage, refused: ParsedDocument | None) -> None:
        """Acknowledges the message, or sends the record of a failed document if the dead-letter topic refused it."""
        [acknowledgement] = unreadable.acknowledgements
        if refused is None:
            acknowledgement.done()
        else:
            record = Record(refused, (), position_of(unreadable.message))
            self._sender.put(Outgoing([record], acknowledgement, asyncio.Event()))


def position_of(message: KafkaMessage) -> SourcePosition:
    return SourcePosition(f"kafka:{message.topic}/{message.partition}", message.offset, max(message.timestamp, 0))
