"""Messages of followed topics, read some at a time and handed on in order, with the account of what is done."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Generic, TypeVar

import structlog

from consumers.kafka.consumer import TopicConsumer
from consumers.kafka.events import ConsumerEvent, MessagesFetched, Partition, PartitionOffsets, PartitionStarted
from consumers.kafka.message import KafkaMessage
from consumers.kafka.offsets.offset_tracker import InFlight, MessageAcknowledgement, OffsetTracker
from consumers.kafka.settings import KafkaSettings

READ_BATCH_MESSAGES = 128
READ_BATCH_BYTES = 1024 * 1024
"""Most that a worker reads at a time: enough to share the cost of a request, few enough to wait for."""
READ_BATCHES_AT_ONCE = 2
"""Batches that are read at once, each by one worker."""
RETRY_DELAY_S = 2.0
"""Between tries to read messages."""

log = structlog.get_logger()

T = TypeVar("T")
"""What a message is read as."""
Batch = list[tuple[KafkaMessage, MessageAcknowledgement]]
Stored = Callable[[Partition], int | None]


class TopicFeed(Generic[T]):
    """All runs on the event loop, but for the consumer's thread.

    `read` makes something of messages, one for each, and `deliver` is called with it, message by message in their order;
    what it waits for delays the messages behind it. `started` is called where a partition is read from an offset on.

    A feed goes on where the store stands (`stored`); with `stored` None where its group does: then the group's offset is
    what was acknowledged, and messages of partitions that were taken away are dropped.
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
        """Of a feed that follows its group: the trackers of partitions that nobody has taken away."""
        self.offsets = PartitionOffsets({}, {})
        self._batches: asyncio.Queue[Batch] = asyncio.Queue()
        self.problem: str | None = None
        """What went wrong here, for `status`."""
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self.spawn(self._read_messages())
        self.consumer.start()

    async def close(self) -> None:
        """Leaves the group, with its offsets where the store is, or where the last acknowledgement is."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.to_thread(self.consumer.stop)

    def spawn(self, step: Coroutine[Any, Any, None]) -> None:
        """Runs `step` until the feed is closed; its failure is a bug, and `problem` says so."""
        task = asyncio.create_task(step)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.critical("kafka_failed", source=self._name, error=task.exception(), hint="this is a bug")
            self.problem = f"stopped by an internal error: {task.exception()!r}; restart hippod"

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
        """The partition is another member's, or begins anew at the group's offset."""
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
        """Reads some batches at once, and delivers them in their order."""
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
        while messages:
            try:
                return await self._read(messages)
            except (
                OSError,
                RuntimeError,
            ) as error:  # no process could be started, say: the messages wait and are read later
                log.error("reading_failed", source=self._name, messages=len(messages), error=error)
                await asyncio.sleep(RETRY_DELAY_S)
        return []

    def is_owned(self, acknowledgement: MessageAcknowledgement) -> bool:
        """Whether the message is still this member's to work on."""
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

    def has_read_all(self, acknowledgement: MessageAcknowledgement) -> bool:
        """Whether the message's partition was read up to the end that is known, and all of it handed on."""
        tracker = acknowledgement.tracker
        partition = next((each for each, owner in self._trackers.items() if owner is tracker), None)
        if partition is None:
            return True  # it began anew: this message comes again
        fetched, end = self.offsets.fetched.get(partition), self.offsets.ends.get(partition)
        return fetched is not None and end is not None and fetched >= end and tracker.all_counted

    def lag(self, partition: Partition, end: int, position: int | None) -> int:
        """Offsets up to the end that are not done; what is no message (a transaction's marks) counts once fetched.

        `position` counts where the partition has not begun here.
        """
        tracker = self._trackers.get(partition)
        if tracker is None:
            return max(end - (position or 0), 0)
        at = max(tracker.offset, 0)
        if not tracker.pending:
            at = max(at, self.offsets.fetched.get(partition, at))
        return max(end - at, 0)
