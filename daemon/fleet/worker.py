"""The worker at work: articles from the group's partitions, read many at a time, sent as records."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import structlog

from consumers.failure_codes import FailureCode
from consumers.kafka.decode import unreadable_document
from consumers.kafka.message import KafkaMessage
from consumers.kafka.offsets.offset_tracker import InFlight, MessageAcknowledgement
from consumers.kafka.record_publisher import RecordPublisher
from consumers.records.record import Record, SourcePosition
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from daemon.config.sections import Worker as WorkerSection
from daemon.fleet.record_maker import PositionedDocument, RecordMaker
from daemon.fleet.sender import Outgoing, RecordSender
from daemon.pipeline.extraction.extractors import PassageExtractor
from daemon.sources.kafka.dead_letter_queue import DeadLetterQueue, UnreadableMessage
from daemon.sources.kafka.message_reader import MessageReader
from daemon.sources.kafka.topic_feed import TopicFeed
from daemon.workers.pool import PoolClosed, WorkerPool
from memory.types import Encoder

log = structlog.get_logger()

Coordinates = tuple[str, int, int]


class Worker:
    """On the event loop. It keeps nothing: what it has not sent when it ends is read again by whoever gets the partitions.

    Messages are read side by side, and leave side by side too, but for those of one document: these leave in their order, so
    that a compacted topic keeps the newest.
    """

    def __init__(
        self,
        section: WorkerSection,
        pool: WorkerPool,
        split: SplitSettings,
        extractor: PassageExtractor,
        encoder: Encoder | None,
    ) -> None:
        assert section.output is not None
        settings = section.settings
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self._maker = RecordMaker(extractor, encoder, self._executor)
        self._reader = MessageReader(pool, settings.message_format, split)
        publisher = RecordPublisher(settings, section.output)
        self._sender = RecordSender(self._maker, publisher, section.message_bytes)
        self.in_flight = InFlight(section.buffer_messages, section.buffer_bytes)
        self._feed: TopicFeed[list[ParsedDocument]] = TopicFeed(settings, self.in_flight, self._read, self._take)
        self._places = asyncio.Semaphore(section.concurrency)
        self._reading: dict[Coordinates, asyncio.Task[list[Record]]] = {}
        """By message, until it is sent: one that comes again after a rebalance is not paid for twice."""
        self._remembered = 4 * section.concurrency
        self._last: dict[str, asyncio.Event] = {}
        """By document: set once the last of its messages that came is sent."""
        letters = section.dead_letter
        self._dead_letters = DeadLetterQueue(settings, letters, self._letter_sent) if letters else None

    def start(self) -> None:
        self._feed.spawn(self._sender.run())
        if self._dead_letters is not None:
            self._feed.spawn(self._dead_letters.run())
        self._feed.start()

    async def close(self) -> None:
        """Hands its partitions back at once, with the offsets of what is sent. What is being read is dropped."""
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
        """What keeps it from working, None while nothing does."""
        state = self._feed.consumer.state
        letters = self._dead_letters.problem if self._dead_letters is not None else None
        own = self._feed.problem or self._sender.problem or letters
        return own or (
            None if state.state in ("starting", "joining", "following") else f"{state.state}: {state.detail}"
        )

    @property
    def broken(self) -> bool:
        """Whether a part of it has ended by an error of its own: only a new start helps."""
        return self._feed.problem is not None

    def lags(self) -> dict[tuple[str, int], int]:
        """Offsets of each of its partitions that are not sent as records."""
        ends = self._feed.offsets.ends
        return {partition: self._feed.lag(partition, end, None) for partition, end in ends.items()}

    # At work.

    async def _read(self, messages: list[KafkaMessage]) -> list[list[ParsedDocument]]:
        return await self._reader.read(messages)

    async def _take(
        self, message: KafkaMessage, acknowledgement: MessageAcknowledgement, documents: list[ParsedDocument]
    ) -> None:
        letters = [each for each in documents if each.error is not None and not each.skipped and self._dead_letters]
        sound = [each for each in documents if each not in letters]
        acknowledgement.parts_left = len(letters) + bool(sound)
        for each in letters:
            assert self._dead_letters is not None
            self._dead_letters.put(UnreadableMessage(message, each, [acknowledgement]))
        if sound:
            await self._places.acquire()
            if not self._feed.is_owned(acknowledgement):
                self._places.release()
                acknowledgement.drop()
                return
            # From here on in the order of the partition.
            before, sent = self._follow_up({each.uri for each in sound})
            self._feed.spawn(self._extract_and_send(message, acknowledgement, sound, before, sent))

    def _follow_up(self, uris: set[str]) -> tuple[list[asyncio.Event], asyncio.Event]:
        """What must be sent before, and the event that those who follow wait for."""
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
        """Once, though the message may come again before it is sent."""
        task = self._reading.get(message.coordinates)
        if task is None:
            task = self._reading[message.coordinates] = asyncio.create_task(self._extract(message, documents))
            # Those of partitions that another worker has now are never asked for again.
            for old in [at for at, each in self._reading.items() if each.done()][: -self._remembered or None]:
                del self._reading[old]
        return await asyncio.shield(task)

    async def _extract(self, message: KafkaMessage, documents: Sequence[ParsedDocument]) -> list[Record]:
        position = position_of(message)
        try:
            return await self._maker.extracted([PositionedDocument(each, position) for each in documents])
        except PoolClosed:
            raise asyncio.CancelledError from None  # the worker stops
        except Exception as error:  # whatever one message does to us, the others go on
            log.error("reading_failed", uri=documents[0].uri, error=error, exc_info=True)
            reason = f"internal error: {type(error).__name__}; see the worker's log"
            return [Record(unreadable_document(message, reason, FailureCode.INTERNAL), (), position)]

    async def _letter_sent(self, unreadable: UnreadableMessage, refused: ParsedDocument | None) -> None:
        """A message that its dead-letter topic refuses becomes the record of a failed document."""
        [acknowledgement] = unreadable.acknowledgements
        if refused is None:
            acknowledgement.done()
        else:
            record = Record(refused, (), position_of(unreadable.message))
            self._sender.put(Outgoing([record], acknowledgement, asyncio.Event()))


def position_of(message: KafkaMessage) -> SourcePosition:
    return SourcePosition(f"kafka:{message.topic}/{message.partition}", message.offset, max(message.timestamp, 0))
