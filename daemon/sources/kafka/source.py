"""Followed topics as sources: passes the documents of messages to the pipeline, which commits them with their positions."""

import asyncio
import json
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

import structlog

from consumers.kafka.decode import is_newer, message_uri
from consumers.kafka.message import KafkaMessage, Partition, PartitionStarted
from consumers.kafka.offset_tracker import InFlight, MessageAcknowledgement, OffsetTracker
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from daemon.parser_pool.pool import ParserPool
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work_items import DeliveredDocument
from daemon.sources.base import Source
from daemon.sources.kafka.dead_letter_queue import DeadLetterQueue, UnreadableMessage
from daemon.sources.kafka.declaration import KafkaSection, KafkaStatus, PartitionStatus
from daemon.sources.kafka.topic_feed import TopicFeed
from store.store import Store
from store.types import Document, State

log = structlog.get_logger()

T = TypeVar("T")
"""The result of decoding a message."""


def position_key(partition: Partition) -> str:
    """Returns the partition's key in the store's positions."""
    return f"kafka:{partition[0]}/{partition[1]}"


def _payload(message: KafkaMessage, read: Iterable[str]) -> str:
    """Returns the stored form of an unreadable message: the message, and the URIs of documents that it yielded."""
    return json.dumps({**message.to_json(), "read": sorted(set(read))})


def _read_uris(documents: Sequence[ParsedDocument]) -> list[str]:
    """Returns the URIs of the documents that a message yielded, including skipped and removed documents."""
    return [document.uri for document in documents if document.error is None or document.skipped]


class BaseKafkaSource(Source, Generic[T]):
    """One `[[kafka]]`, whatever its format. Use on the event loop; the feed and the dead letters use threads."""

    kind = "kafka"

    def __init__(self, kafka: KafkaSection, store: Store, pipeline: Pipeline) -> None:
        self._settings = kafka.settings
        self.name = self._settings.name
        self.topics = self._settings.topics
        self._store = store
        self._pipeline = pipeline
        known_topics = {key[6:].rpartition("/")[0] for key in store.positions if key.startswith("kafka:")}
        self._feed: TopicFeed[T] = TopicFeed(
            self._settings,
            InFlight(kafka.buffer_messages, kafka.buffer_bytes),
            self._read,
            self._deliver,
            stored=self._stored,
            known_topics=known_topics,
            started=self._store_beginning,
        )
        topic = self._settings.dead_letter
        self._dead_letters = DeadLetterQueue(self._settings, topic, self._letter_sent) if topic else None
        pipeline.on_retry(self.name, self._retry)

    def start(self) -> None:
        if self._dead_letters is not None:
            self._feed.spawn(self._dead_letters.run())
        self._feed.start()

    async def close(self) -> None:
        """Leaves the group; the group's offsets are then the store's positions."""
        await self._feed.close()
        if self._dead_letters is not None:
            self._dead_letters.close()

    def _stored(self, partition: Partition) -> int | None:
        """Returns the partition's offset in the store. May be called from any thread."""
        stored = self._store.positions.get(position_key(partition))
        return int(stored["offset"]) if stored is not None else None

    def _store_beginning(self, event: PartitionStarted, tracker: OffsetTracker) -> None:
        if self._stored(event.partition) != event.offset:
            # Also store where the partition begins: with start = "latest", a restart must not skip messages that arrived before
            # it.
            tracker.offset = event.offset - 1
            beginning = tracker.add(event.offset - 1)
            beginning.parts_left = 1
            self._feed.in_flight.add(0)
            task = DeliveredDocument(position_key(event.partition), None)
            self._feed.spawn(self._pipeline.deliver(task, self.name, acknowledgement=beginning))

    @abstractmethod
    async def _read(self, messages: list[KafkaMessage]) -> list[T]:
        """Decodes the messages, in order."""

    @abstractmethod
    async def _deliver(self, message: KafkaMessage, acknowledgement: MessageAcknowledgement, read: T) -> None:
        """Passes a message's documents to the pipeline, and sets their number in `acknowledgement`."""

    @abstractmethod
    async def _read_again(self, document: Document) -> None:
        """Retries the message of a failed document."""

    async def _unreadable(
        self,
        message: KafkaMessage,
        document: ParsedDocument,
        acknowledgements: Sequence[MessageAcknowledgement],
        read: Sequence[str] = (),
    ) -> None:
        """Sends the message to the dead letters; without a dead-letter topic, delivers a failed document.

        `read` contains the URIs of the documents that the message yielded despite the error.
        """
        if self._dead_letters is not None:
            self._dead_letters.put(UnreadableMessage(message, document, acknowledgements, read))
        else:
            task = DeliveredDocument(document.uri, document, partial(_payload, message, read))
            await self._pipeline.deliver(task, self.name, more=acknowledgements)

    async def _letter_sent(self, unreadable: UnreadableMessage, refused: ParsedDocument | None) -> None:
        message = unreadable.message
        task = DeliveredDocument(message_uri(message), refused, partial(_payload, message, unreadable.read))
        await self._pipeline.deliver(task, self.name, more=unreadable.acknowledgements)

    def _retry(self, document: Document) -> None:
        """Retries the message of a failed document, in a task."""
        self._feed.spawn(self._read_again(document))

    # Reports.

    def usage(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return self._feed.in_flight.counts, self._feed.in_flight.limits

    @property
    def _problem(self) -> str | None:
        return self._dead_letters.brokers.problem if self._dead_letters is not None else None

    def status(self, pending: int) -> KafkaStatus:
        state = self._feed.consumer.state
        lags = {partition: self._lag(partition, end) for partition, end in sorted(self._feed.offsets.ends.items())}
        return KafkaStatus(
            kind=self.kind,
            name=self.name,
            state=state.state,
            lag=max(sum(lags.values()), pending),
            detail="; ".join(filter(None, (state.detail, self._feed.problem, self._problem))) or None,
            group=self._settings.group,
            brokers=list(self._settings.brokers),
            rebalances=self._feed.consumer.rebalances,
            paused=self._feed.consumer.paused,
            partitions=[
                PartitionStatus(
                    topic=partition[0],
                    partition=partition[1],
                    position=self._stored(partition),
                    end=max(
                        self._feed.offsets.ends[partition], self._stored(partition) or 0
                    ),  # the end is known from the last request to the broker only
                    lag=lag,
                )
                for partition, lag in lags.items()
            ],
        )

    def pending_note(self) -> str | None:
        if not self._feed.offsets.ends:
            return f"Kafka has not reported the length of {self.name} yet"
        lags = (self._lag(partition, end) for partition, end in self._feed.offsets.ends.items())
        waiting = sum(lags) - self._feed.in_flight.counts[0]
        return f"{waiting:,} messages of {self.name} are not fetched yet" if waiting > 0 else None

    def _lag(self, partition: Partition, end: int) -> int:
        return self._feed.lag(partition, end, self._stored(partition))

    async def delivered(self) -> None:
        ends = await asyncio.wrap_future(self._feed.consumer.ends())
        while any(
            partition in self._feed.offsets.ends and self._lag(partition, end) for partition, end in ends.items()
        ):
            await self._pipeline.intake.changed_within(0.2)


class KafkaSource(BaseKafkaSource[list[ParsedDocument]]):
    """One `[[kafka]]` of articles, in JSON or as text."""

    def __init__(
        self, kafka: KafkaSection, store: Store, pipeline: Pipeline, pool: ParserPool, split: SplitSettings
    ) -> None:
        super().__init__(kafka, store, pipeline)
        self._pool = pool
        self._split = split

    async def _read(self, messages: list[KafkaMessage]) -> list[list[ParsedDocument]]:
        return await self._pool.parse_messages(messages, self._settings.message_format, self._split, self.name)

    async def _deliver(
        self, message: KafkaMessage, acknowledgement: MessageAcknowledgement, documents: list[ParsedDocument]
    ) -> None:
        acknowledgement.parts_left = len(documents)
        for document in documents:
            if document.error is not None and not document.skipped:
                await self._unreadable(message, document, [acknowledgement], _read_uris(documents))
            else:
                task = DeliveredDocument(document.uri, None if document.deleted else document, message.payload)
                await self._pipeline.deliver(task, self.name, acknowledgement=acknowledgement)

    async def _read_again(self, document: Document) -> None:
        """Delivers the documents that the message has not yielded before. Removed documents are not delivered again."""
        kept = json.loads(document.payload or "")
        message = KafkaMessage.from_json(kept)
        [documents] = await self._read([message])
        stored = self._store.document(document.uri)
        if stored is None or stored.state is not State.FAILED or self._pipeline.intake.busy(document.uri):
            return  # the document was removed or replaced meanwhile
        own = next((read for read in documents if read.uri == document.uri), None)
        if document.uri != message_uri(message):  # the message's other documents were delivered with their own URIs
            fault = next((read for read in documents if read.error is not None and not read.skipped), None)
            if own is None and fault is not None:
                own = replace(fault, uri=document.uri)
            task = DeliveredDocument(document.uri, own, message.payload)
            await self._pipeline.deliver(task, self.name, document.attempts)
            return
        known = _read_uris(documents)
        # Earlier versions of hippod did not store `read`. Assume that they delivered the documents of a message with several
        # documents, but not a single document.
        before = set(kept.get("read", known if len(documents) > 1 else ()))
        for read in documents:
            if read.uri not in (document.uri, *before) and not self._is_overtaken(read.uri, message):
                task = DeliveredDocument(read.uri, None if read.deleted else read, message.payload)
                await self._pipeline.deliver(task, self.name)
        task = DeliveredDocument(document.uri, own, partial(_payload, message, before.union(known)))
        await self._pipeline.deliver(task, self.name, document.attempts)

    def _is_overtaken(self, uri: str, message: KafkaMessage) -> bool:
        """Returns whether a later message of the partition has replaced the document, or unfinished work for it exists."""
        stored = self._store.document(uri)
        # The metadata of another source's document cannot be trusted: its author may have written anything.
        newer = stored is not None and stored.source == self.name and is_newer(stored.metadata, message)
        return newer or self._pipeline.intake.busy(uri)
