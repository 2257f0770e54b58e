"""Followed topics as the daemon runs them: takes messages from the consumer, has them read, delivers their documents."""

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog
from kafka.errors import KafkaError

from consumers.kafka.consumer import TopicConsumer
from consumers.kafka.dead_letters import DeadLetters
from consumers.kafka.decode import is_newer, message_uri
from consumers.kafka.events import ConsumerEvent, MessagesFetched, Partition, PartitionOffsets, PartitionStarted
from consumers.kafka.message import KafkaMessage
from consumers.kafka.offset_tracker import InFlight, MessageAcknowledgement, OffsetTracker
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work_items import DeliveredDocument
from daemon.sources.base import Source, Usage
from daemon.sources.kafka.declaration import KafkaSection, KafkaStatus, PartitionStatus
from daemon.sources.kafka.message_reader import MessageReader
from daemon.workers.pool import WorkerPool
from store.store import Store
from store.types import Document

READ_BATCH_MESSAGES = 128
READ_BATCH_BYTES = 1024 * 1024
"""Most that a worker reads at a time: enough to share the cost of a request, few enough to wait for."""
READ_BATCHES_AT_ONCE = 2
"""Batches that are read at once, each by one worker."""
RETRY_DELAY_S = 2.0
"""Between tries to read messages, and to send dead letters."""

log = structlog.get_logger()


def position_key(partition: Partition) -> str:
    """The name of a partition among the store's positions."""
    return f"kafka:{partition[0]}/{partition[1]}"


class KafkaSource(Source):
    """One `[[kafka]]`. All runs on the event loop, but for the consumer's thread and that of the dead letters."""

    kind = "kafka"

    def __init__(
        self, kafka: KafkaSection, store: Store, pipeline: Pipeline, pool: WorkerPool, split: SplitSettings
    ) -> None:
        self._settings = kafka.settings
        self.name = self._settings.name
        self._store = store
        self._pipeline = pipeline
        self._reader = MessageReader(pool, self._settings.format, split)
        self.in_flight = InFlight(kafka.buffer_messages, kafka.buffer_bytes)
        known_topics = {key[6:].rpartition("/")[0] for key in store.positions if key.startswith("kafka:")}
        self._loop = asyncio.get_running_loop()
        self._consumer = TopicConsumer(
            self._settings, self._stored, known_topics, self.in_flight.should_pause, self._emit
        )
        self._trackers: dict[Partition, OffsetTracker] = {}
        self._offsets = PartitionOffsets({}, {})
        self._batches: asyncio.Queue[list[tuple[KafkaMessage, MessageAcknowledgement]]] = asyncio.Queue()
        topic = self._settings.dead_letter
        self._dead_letters = DeadLetters(self._settings, topic) if topic else None
        self._unreadable: asyncio.Queue[tuple[KafkaMessage, ParsedDocument, MessageAcknowledgement]] = asyncio.Queue()
        self._dead_letter_thread = ThreadPoolExecutor(1, thread_name_prefix="dead letters")
        self._problem: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        pipeline.on_retry(self.name, self._retry)

    def start(self) -> None:
        self._spawn(self._read_messages())
        if self._dead_letters is not None:
            self._spawn(self._send_dead_letters(self._dead_letters))
        self._consumer.start()

    async def close(self) -> None:
        """Leaves the group, with its offsets where the store is."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.to_thread(self._consumer.stop)
        if self._dead_letters is not None:
            self._dead_letter_thread.submit(self._dead_letters.close)
        self._dead_letter_thread.shutdown(wait=False)

    def _spawn(self, step: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(step)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.critical("kafka_failed", source=self.name, error=task.exception(), hint="this is a bug")
            self._problem = f"stopped by an error of its own: {task.exception()!r}; restart hippod"

    # On the consumer's thread.

    def _stored(self, partition: Partition) -> int | None:
        stored = self._store.positions.get(position_key(partition))
        return int(stored["offset"]) if stored is not None else None

    def _emit(self, event: ConsumerEvent) -> None:
        if isinstance(event, MessagesFetched):
            for message in event.messages:
                self.in_flight.add(message.size)
        self._loop.call_soon_threadsafe(self._handle, event)

    # On the event loop.

    def _handle(self, event: ConsumerEvent) -> None:
        if isinstance(event, PartitionOffsets):
            self._offsets = event
        elif isinstance(event, PartitionStarted):
            self._start_partition(event)
        else:
            self._queue(event.messages)

    def _start_partition(self, event: PartitionStarted) -> None:
        if event.recreated and event.partition in self._trackers:
            self._trackers[event.partition].retired = True
        key = position_key(event.partition)
        tracker = self._trackers[event.partition] = OffsetTracker(key, event.offset, self.in_flight)
        if self._stored(event.partition) != event.offset:
            # Where reading begins is stored too: a restart under start = "latest" must not skip what came meanwhile.
            tracker.offset = event.offset - 1
            beginning = tracker.add(event.offset - 1)
            beginning.parts_left = 1
            self.in_flight.add(0)
            self._spawn(self._pipeline.deliver(DeliveredDocument(key, None), self.name, acknowledgement=beginning))

    def _queue(self, messages: Sequence[KafkaMessage]) -> None:
        batch: list[tuple[KafkaMessage, MessageAcknowledgement]] = []
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
        reading: deque[
            tuple[list[tuple[KafkaMessage, MessageAcknowledgement]], asyncio.Task[list[list[ParsedDocument]]]]
        ] = deque()
        while True:
            while len(reading) < READ_BATCHES_AT_ONCE and (not reading or not self._batches.empty()):
                batch = await self._batches.get()
                reading.append((batch, asyncio.create_task(self._read([message for message, _ in batch]))))
            batch, task = reading.popleft()
            for (message, acknowledgement), documents in zip(batch, await task, strict=True):
                await self._deliver(message, acknowledgement, documents)

    async def _read(self, messages: list[KafkaMessage]) -> list[list[ParsedDocument]]:
        while True:
            try:
                return await self._reader.read(messages)
            except (
                OSError,
                RuntimeError,
            ) as error:  # no process could be started, say: the messages wait and are read later
                log.error("reading_failed", source=self.name, messages=len(messages), error=error)
                await asyncio.sleep(RETRY_DELAY_S)

    async def _deliver(
        self, message: KafkaMessage, acknowledgement: MessageAcknowledgement, documents: list[ParsedDocument]
    ) -> None:
        acknowledgement.parts_left = len(documents)
        for document in documents:
            failing = document.error is not None and not document.skipped
            if failing and self._dead_letters is not None:
                self._unreadable.put_nowait((message, document, acknowledgement))
            else:
                task = DeliveredDocument(document.uri, None if document.deleted else document, message.payload)
                await self._pipeline.deliver(task, self.name, acknowledgement=acknowledgement)

    async def _send_dead_letters(self, dead: DeadLetters) -> None:
        """Sends messages that cannot be read to the dead-letter topic, and only then has their offsets committed."""
        while True:
            letters = [await self._unreadable.get()]
            while not self._unreadable.empty():
                letters.append(self._unreadable.get_nowait())
            asked = [(message, failed.error or "") for message, failed, _ in letters]
            refusals = await self._send_letters(dead, asked)
            for (message, failed, acknowledgement), refusal in zip(letters, refusals, strict=True):
                uri = message_uri(message)
                read = None
                if refusal is not None:
                    log.warning("dead_letter_refused", topic=self._settings.dead_letter, uri=uri, error=refusal)
                    reason = f"{failed.error}; and {self._settings.dead_letter} refuses it: {refusal}"
                    read = ParsedDocument(uri, error=reason, code=failed.code)
                else:
                    log.info("dead_letter", topic=self._settings.dead_letter, uri=uri, reason=failed.code)
                task = DeliveredDocument(uri, read, message.payload)
                await self._pipeline.deliver(task, self.name, acknowledgement=acknowledgement)

    async def _send_letters(self, dead: DeadLetters, letters: list[tuple[KafkaMessage, str]]) -> list[str | None]:
        while True:
            try:
                answer = await self._loop.run_in_executor(self._dead_letter_thread, dead.send, letters)
            except (KafkaError, OSError) as error:
                self._problem = f"dead letters wait for {self._settings.dead_letter}: {type(error).__name__}: {error}"
                log.warning("dead_letters_wait", topic=self._settings.dead_letter, error=error, retry_s=RETRY_DELAY_S)
                await asyncio.sleep(RETRY_DELAY_S)
            else:
                self._problem = None
                return answer

    def _retry(self, document: Document) -> None:
        """Reads a failed message once more."""
        self._spawn(self._read_again(document))

    async def _read_again(self, document: Document) -> None:
        message = KafkaMessage.from_payload(document.payload or "")
        [documents] = await self._reader.read([message])
        for read in documents:
            if read.uri == document.uri:
                task = DeliveredDocument(read.uri, read, message.payload)
                await self._pipeline.deliver(task, self.name, document.attempts)
            elif not self._is_overtaken(read.uri, message):
                await self._pipeline.deliver(DeliveredDocument(read.uri, None if read.deleted else read), self.name)
        if all(read.uri != document.uri for read in documents):
            await self._pipeline.deliver(DeliveredDocument(document.uri, None), self.name)

    def _is_overtaken(self, uri: str, message: KafkaMessage) -> bool:
        """Whether a later message of the partition has replaced the document, or is about to."""
        stored = self._store.document(uri)
        # The metadata of another source's document are whatever its author wrote.
        newer = stored is not None and stored.source == self.name and is_newer(stored.metadata, message)
        return newer or self._pipeline.intake.busy(uri)

    # Reports.

    def usage(self) -> Usage:
        return Usage(*self.in_flight.counts, *self.in_flight.limits)

    def status(self, pending: int) -> KafkaStatus:
        state = self._consumer.state
        lags = {partition: self._lag(partition, end) for partition, end in sorted(self._offsets.ends.items())}
        return KafkaStatus(
            kind=self.kind,
            name=self.name,
            state=state.state,
            lag=max(sum(lags.values()), pending),
            detail="; ".join(filter(None, (state.detail, self._problem))) or None,
            group=self._settings.group,
            brokers=list(self._settings.brokers),
            rebalances=self._consumer.rebalances,
            paused=self._consumer.paused,
            partitions=[
                PartitionStatus(
                    topic=partition[0],
                    partition=partition[1],
                    position=self._stored(partition),
                    end=max(
                        self._offsets.ends[partition], self._stored(partition) or 0
                    ),  # brokers are asked now and then
                    lag=lag,
                )
                for partition, lag in lags.items()
            ],
        )

    def unread(self) -> str | None:
        if not self._offsets.ends:
            return f"Kafka has not said yet what waits in {self.name}"
        waiting = (
            sum(self._lag(partition, end) for partition, end in self._offsets.ends.items()) - self.in_flight.counts[0]
        )
        return f"{waiting:,} messages of {self.name} are not fetched yet" if waiting > 0 else None

    def _lag(self, partition: Partition, end: int) -> int:
        """Offsets up to the end that are not committed; what is no message (a transaction's marks) counts once fetched."""
        tracker = self._trackers.get(partition)
        if tracker is None:
            return max(end - (self._stored(partition) or 0), 0)
        at = max(tracker.offset, 0)
        if not tracker.pending:
            at = max(at, self._offsets.fetched.get(partition, at))
        return max(end - at, 0)

    async def delivered(self) -> None:
        ends = await asyncio.wrap_future(self._consumer.ends())
        while any(partition in self._offsets.ends and self._lag(partition, end) for partition, end in ends.items()):
            await self._pipeline.intake.changed_within(0.2)
