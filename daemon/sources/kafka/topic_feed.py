"""Decodes messages of followed topics in batches, delivers them in order, and tracks which offsets are done."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import structlog

from consumers.kafka.consumer import TopicConsumer
from consumers.kafka.message import (
    ConsumerEvent,
    KafkaMessage,
    MessagesFetched,
    Partition,
    PartitionOffsets,
    PartitionStarted,
)
from consumers.kafka.offset_tracker import InFlight, MessageAcknowledgement, OffsetTracker
from consumers.kafka.settings import KafkaSettings
from daemon.pipeline.outage import Dependency

READ_BATCH_MESSAGES = 128
READ_BATCH_BYTES = 1024 * 1024
"""Maximum bytes of a batch: large enough to share the cost of a worker's request, small enough to be decoded quickly."""
READ_BATCHES_AT_ONCE = 2
"""Batches decoded concurrently, one per worker."""
MAX_PAUSE_S = 2.0
"""Maximum pause between attempts to decode messages."""

log = structlog.get_logger()

T = TypeVar("T")
"""The result of decoding a message."""
Batch = list[tuple[KafkaMessage, MessageAcknowledgement]]
Stored = Callable[[Partition], int | None]


class TopicFeed(Generic[T]):
    """Feeds messages to `deliver`. Runs on the event loop, except for the consumer's thread.

    `read` decodes messages and returns one result for each. `deliver` is called with each message and its result, in order.
    While it waits, later messages wait too. `started` is called when consumption of a partition begins.

    A feed continues from the store's position (`stored`). Without `stored`, it continues from its group's offset, that is,
    after the last acknowledged message, and drops messages of revoked partitions.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        in_flight: InFlight,
        read: Callable[[list[KafkaMessage]], Awaitable[list[T]]],
        deliver: Callable[[KafkaMessage, MessageAcknowledgement, T], Awaitable[None]],
        *,
        stored: Stored | None = None,
        known_topics: Iterable[str] = (),
        started: Callable[[PartitionStarted, OffsetTracker], None] = lambda _event, _tracker: None,
    ) -> None:
        self._name = settings.name
        self.in_flight = in_flight
        self._read = read
        self._deliver = deliver
        self._started = started
        self._follows_group = stored is None
        self._loop = asyncio.get_running_loop()
        self.consumer = TopicConsumer(
            settings,
            stored or self._acknowledged,
            known_topics,
            in_flight.should_pause,
            self._emit,
            self._disown if self._follows_group else None,
        )
        self._trackers: dict[Partition, OffsetTracker] = {}
        self._owned: dict[Partition, OffsetTracker] = {}
        """Trackers of the partitions that were not revoked; used if the feed continues from its group's offset."""
        self.offsets = PartitionOffsets({}, {})
        self._batches: asyncio.Queue[Batch] = asyncio.Queue()
        self._parsers = Dependency(MAX_PAUSE_S)
        self.failure: str | None = None
        """The internal error that ended a part of the feed and requires a restart, or None."""
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self.spawn(self._read_messages())
        self.consumer.start()

    async def close(self) -> None:
        """Leaves the group. The group's offsets are then the store's positions, or the last acknowledged offsets."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.to_thread(self.consumer.stop)

    def spawn(self, step: Coroutine[Any, Any, None]) -> None:
        """Runs `step` until the feed is closed. An exception in `step` is a bug, which `failure` reports."""
        task = asyncio.create_task(step)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.critical("kafka_failed", source=self._name, error=task.exception(), hint="this is a bug")
            self.failure = f"stopped by an internal error: {task.exception()!r}; restart hippod"

    # On the consumer's thread.

    def _emit(self, event: ConsumerEvent) -> None:
        if isinstance(event, MessagesFetched):
            for message in event.messages:
                self.in_flight.add(message.size)
        self._loop.call_soon_threadsafe(self._handle, event)

    def _acknowledged(self, partition: Partition) -> int | None:
        tracker = self._owned.get(partition)
        return tracker.offset if tracker is not None else None

    def _disown(self, partition: Partition) -> None:
        """Handles a partition that was assigned to another member, or that starts again at the group's offset."""
        tracker = self._owned.pop(partition, None)
        if tracker is not None:
            tracker.disowned = True

    # On the event loop.

    def _handle(self, event: ConsumerEvent) -> None:
        if isinstance(event, PartitionOffsets):
            self.offsets = event
        elif isinstance(event, PartitionStarted):
            if event.recreated and event.partition in self._trackers:
                self._trackers[event.partition].retired = True
            topic, number = event.partition
            tracker = OffsetTracker(f"kafka:{topic}/{number}", event.offset, self.in_flight)
            self._trackers[event.partition] = self._owned[event.partition] = tracker
            self._started(event, tracker)
        else:
            self._queue(event.messages)

    def _queue(self, messages: Sequence[KafkaMessage]) -> None:
        batch: Batch = []
        size = 0
        for message in messages:
            tracker = self._trackers[(message.topic, message.partition)]
            batch.append((message, tracker.add(message.offset, message.size)))
            size += message.size
            if len(batch) >= READ_BATCH_MESSAGES or size >= READ_BATCH_BYTES:
                self._batches.put_nowait(batch)
                batch, size = [], 0
        if batch:
            self._batches.put_nowait(batch)

    async def _read_messages(self) -> None:
        """Decodes some batches concurrently and delivers them in order."""
        reading: deque[tuple[Batch, asyncio.Task[list[T]]]] = deque()
        while True:
            while len(reading) < READ_BATCHES_AT_ONCE and (not reading or not self._batches.empty()):
                batch = self._without_disowned(await self._batches.get())
                reading.append((batch, asyncio.create_task(self._read_batch([message for message, _ in batch]))))
            batch, task = reading.popleft()
            for (message, acknowledgement), found in zip(batch, await task, strict=True):
                if self.is_owned(acknowledgement):
                    await self._deliver(message, acknowledgement, found)
                else:
                    acknowledgement.drop()

    async def _read_batch(self, messages: list[KafkaMessage]) -> list[T]:
        """Decodes messages; waits while no process can be started."""
        if not messages:
            return []
        read, count = partial(self._read, messages), len(messages)
        return await self._parsers.until_done(
            "no_parser_for_messages", read, _are_parsers_unavailable, source=self._name, messages=count
        )

    def is_owned(self, acknowledgement: MessageAcknowledgement) -> bool:
        """Returns whether the message's partition is still assigned to this member."""
        return not acknowledgement.tracker.disowned

    def _without_disowned(self, batch: Batch) -> Batch:
        kept: Batch = []
        for message, acknowledgement in batch:
            if self.is_owned(acknowledgement):
                kept.append((message, acknowledgement))
            else:
                acknowledgement.drop()
        return kept

    # Reports.

    @property
    def problem(self) -> str | None:
        """The reason why messages are not decoded; None if they are decoded."""
        return self.failure or self._parsers.problem

    def has_read_all(self, acknowledgement: MessageAcknowledgement) -> bool:
        """Returns whether the message's partition was fetched to its known end and delivered completely."""
        tracker = acknowledgement.tracker
        partition = next((each for each, owner in self._trackers.items() if owner is tracker), None)
        if partition is None:
            return True  # the partition has started again, so the broker sends this message again
        fetched, end = self.offsets.fetched.get(partition), self.offsets.ends.get(partition)
        return fetched is not None and end is not None and fetched >= end and tracker.all_counted

    def lag(self, partition: Partition, end: int, position: int | None) -> int:
        """Returns the number of offsets before `end` that are not done. Transaction markers count as done when fetched.

        `position` counts as progress if the partition has not started in this feed.
        """
        tracker = self._trackers.get(partition)
        if tracker is None:
            return max(end - (position or 0), 0)
        at = max(tracker.offset, 0)
        if not tracker.pending:
            at = max(at, self.offsets.fetched.get(partition, at))
        return max(end - at, 0)


def _are_parsers_unavailable(error: Exception) -> bool:
    return isinstance(error, OSError | RuntimeError)
