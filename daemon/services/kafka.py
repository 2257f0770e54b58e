"""Followed topics as the daemon runs them: from messages to documents in the pipeline, and how they are reported."""

import asyncio
import json
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog
from kafka.errors import KafkaError

from consumers.kafka.dead_letters import DeadLetters
from consumers.kafka.events import Arrived, Event, Partition, Placed, Stands
from consumers.kafka.line import Backlog, Line, Mark
from consumers.kafka.message import Message
from consumers.kafka.reading import message_uri
from consumers.kafka.settings import KafkaSettings
from consumers.kafka.source import KafkaSource
from consumers.splitting import SplitSettings
from consumers.types import Document as Read
from daemon.config.sections import Kafka
from daemon.contract import SourceStatus
from daemon.pipeline.messages import MessageReader
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work import Delivered
from daemon.reasons import word_for
from daemon.workers import WorkerPool
from store.store import Store
from store.types import Document

CHUNK = 128
CHUNK_BYTES = 1024 * 1024
"""Messages that a worker reads at a time: enough to share the way there and back, few enough to wait for."""
AHEAD = 2
"""Chunks that are read at once, one a worker."""
TRY_AGAIN_S = 2.0

log = structlog.get_logger()


def settings_of(kafka: Kafka) -> KafkaSettings:
    """The section in the consumers' terms."""
    return KafkaSettings(
        kafka.brokers, kafka.topics, kafka.group, kafka.format, kafka.start, kafka.dead_letter, kafka.options
    )


def position_key(partition: Partition) -> str:
    """The name of a partition among the store's positions."""
    return f"kafka:{partition[0]}/{partition[1]}"


class FollowedTopics:
    """One `[[kafka]]`, from start to stop. On the event loop but for the source's thread."""

    def __init__(self, kafka: Kafka, store: Store, pipeline: Pipeline, pool: WorkerPool, split: SplitSettings) -> None:
        self._settings = settings_of(kafka)
        self.name = self._settings.name
        self._store = store
        self._pipeline = pipeline
        self._reader = MessageReader(pool, self._settings.form, split)
        self.backlog = Backlog(kafka.buffer_messages, kafka.buffer_bytes)
        begun = {key[6:].rpartition("/")[0] for key in store.positions if key.startswith("kafka:")}
        self._loop = asyncio.get_running_loop()
        self._source = KafkaSource(self._settings, self._stored, begun, self.backlog.full, self._emit)
        self._lines: dict[Partition, Line] = {}
        self._stands = Stands({}, {})
        self._chunks: asyncio.Queue[list[tuple[Message, Mark]]] = asyncio.Queue()
        topic = self._settings.dead_letter
        self._dead = DeadLetters(self._settings, topic) if topic else None
        self._poison: asyncio.Queue[tuple[Message, str, Mark]] = asyncio.Queue()
        self._burying = ThreadPoolExecutor(1, thread_name_prefix="dead letters")
        self._trouble: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        pipeline.take_again(self.name, self._again)

    def start(self) -> None:
        self._spawn(self._read_on())
        if self._dead is not None:
            self._spawn(self._bury_on(self._dead))
        self._source.start()

    async def stop(self) -> None:
        """Leaves the group, with its offsets where the store is; call it when nothing is committed any more."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.to_thread(self._source.stop)
        if self._dead is not None:
            self._burying.submit(self._dead.close)
        self._burying.shutdown(wait=False)

    def _spawn(self, step: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(step)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.critical("kafka_failed", source=self.name, error=task.exception(), hint="this is a bug")
            self._trouble = f"stopped by an error of its own: {task.exception()!r}; restart hippod"

    # From the source's thread.

    def _stored(self, partition: Partition) -> int | None:
        held = self._store.positions.get(position_key(partition))
        return int(held["offset"]) if held is not None else None

    def _emit(self, event: Event) -> None:
        if isinstance(event, Arrived):
            for message in event.messages:
                self.backlog.arrive(message.size)
        self._loop.call_soon_threadsafe(self._happened, event)

    # On the loop.

    def _happened(self, event: Event) -> None:
        if isinstance(event, Stands):
            self._stands = event
        elif isinstance(event, Placed):
            self._place(event)
        else:
            self._arrived(event.messages)

    def _place(self, event: Placed) -> None:
        if event.anew and event.partition in self._lines:
            self._lines[event.partition].retired = True
        line = self._lines[event.partition] = Line(position_key(event.partition), event.offset, self.backlog)
        if self._stored(event.partition) != event.offset:
            # Where we begin is a position too: what comes while hippod is away must not be passed over at its return.
            line.position = event.offset - 1
            mark = line.add(event.offset - 1)
            mark.left = 1
            self.backlog.arrive(0)
            task = Delivered(line.key, None)
            self._spawn(self._pipeline.deliver(task, self.name, marks=[mark]))

    def _arrived(self, messages: Sequence[Message]) -> None:
        chunk: list[tuple[Message, Mark]] = []
        size = 0
        for message in messages:
            line = self._lines[(message.topic, message.partition)]
            chunk.append((message, line.add(message.offset, message.size)))
            size += message.size
            if len(chunk) >= CHUNK or size >= CHUNK_BYTES:
                self._chunks.put_nowait(chunk)
                chunk, size = [], 0
        if chunk:
            self._chunks.put_nowait(chunk)

    async def _read_on(self) -> None:
        """Reads some chunks at once, and delivers them in their order."""
        reading: deque[tuple[list[tuple[Message, Mark]], asyncio.Task[list[list[Read]]]]] = deque()
        while True:
            while len(reading) < AHEAD and (not reading or not self._chunks.empty()):
                chunk = await self._chunks.get()
                reading.append((chunk, asyncio.create_task(self._read([message for message, _ in chunk]))))
            chunk, task = reading.popleft()
            for (message, mark), documents in zip(chunk, await task, strict=True):
                await self._deliver(message, mark, documents)

    async def _read(self, messages: list[Message]) -> list[list[Read]]:
        while True:
            try:
                return await self._reader.read(messages)
            except (OSError, RuntimeError) as error:  # no process to be had, say: the messages are kept and read later
                log.error("reading_failed", source=self.name, messages=len(messages), error=error)
                await asyncio.sleep(TRY_AGAIN_S)

    async def _deliver(self, message: Message, mark: Mark, documents: list[Read]) -> None:
        mark.left = len(documents)
        for document in documents:
            failing = document.error is not None and not document.skipped
            if failing and self._dead is not None:
                self._poison.put_nowait((message, document.error or "", mark))
            else:
                task = Delivered(document.uri, None if document.deleted else document, message)
                await self._pipeline.deliver(task, self.name, marks=[mark])

    async def _bury_on(self, dead: DeadLetters) -> None:
        """Sends what cannot be read where it belongs, before its offset is committed; keeps trying while brokers are away."""
        while True:
            letters = [await self._poison.get()]
            while not self._poison.empty():
                letters.append(self._poison.get_nowait())
            asked = [(message, error) for message, error, _ in letters]
            refusals = await self._buried(dead, asked)
            for (message, error, mark), refusal in zip(letters, refusals, strict=True):
                uri = message_uri(message)
                read = None
                if refusal is not None:
                    log.warning("dead_letter_refused", topic=self._settings.dead_letter, uri=uri, error=refusal)
                    read = Read(uri, error=f"{error}; and {self._settings.dead_letter} refuses it: {refusal}")
                else:
                    log.info("dead_letter", topic=self._settings.dead_letter, uri=uri, reason=word_for(error))
                await self._pipeline.deliver(Delivered(uri, read, message), self.name, marks=[mark])

    async def _buried(self, dead: DeadLetters, letters: list[tuple[Message, str]]) -> list[str | None]:
        while True:
            try:
                answer = await self._loop.run_in_executor(self._burying, dead.send, letters)
            except (KafkaError, OSError) as error:
                self._trouble = f"dead letters wait for {self._settings.dead_letter}: {type(error).__name__}: {error}"
                log.warning("dead_letters_wait", topic=self._settings.dead_letter, error=error, retry_s=TRY_AGAIN_S)
                await asyncio.sleep(TRY_AGAIN_S)
            else:
                self._trouble = None
                return answer

    def _again(self, document: Document) -> None:
        """Reads a failed message once more."""
        self._spawn(self._try(document))

    async def _try(self, document: Document) -> None:
        message = Message.from_json(json.loads(document.payload or ""))
        [documents] = await self._reader.read([message])
        for read in documents:
            if read.uri == document.uri:
                task = Delivered(read.uri, read, message)
                await self._pipeline.deliver(task, self.name, document.attempts)
            elif not self._overtaken(read.uri, message):
                await self._pipeline.deliver(Delivered(read.uri, None if read.deleted else read), self.name)
        if all(read.uri != document.uri for read in documents):
            await self._pipeline.deliver(Delivered(document.uri, None), self.name)

    def _overtaken(self, uri: str, message: Message) -> bool:
        """Whether a later message of the partition has come for the same document."""
        held = self._store.document(uri)
        about: Mapping[str, Any] = held.metadata.get("kafka", {}) if held is not None else {}
        later = about.get("partition") == message.partition and about.get("offset", -1) > message.offset
        return later or self._pipeline.intake.busy(uri)

    # How it is reported.

    def status(self, pending: int) -> SourceStatus:
        state = self._source.state
        lags = {partition: self._lag(partition, end) for partition, end in sorted(self._stands.ends.items())}
        return SourceStatus(
            kind="kafka",
            name=self.name,
            state=state.state,
            lag=max(sum(lags.values()), pending),
            detail="; ".join(filter(None, (state.detail, self._trouble))) or None,  # type: ignore[call-arg]
            group=self._settings.group,
            brokers=list(self._settings.brokers),
            rebalances=self._source.rejoined,
            paused=self._source.paused,
            partitions=[
                {
                    "topic": partition[0],
                    "partition": partition[1],
                    "position": self._stored(partition),
                    "end": self._stands.ends[partition],
                    "lag": lag,
                }
                for partition, lag in lags.items()
            ],
        )

    def _lag(self, partition: Partition, end: int) -> int:
        """Offsets up to the end that are not committed; what is no message (a transaction's marks) counts once fetched."""
        line = self._lines.get(partition)
        if line is None:
            return max(end - (self._stored(partition) or 0), 0)
        at = max(line.position, 0)
        if not line.open:
            at = max(at, self._stands.fetched.get(partition, at))
        return max(end - at, 0)

    async def catch_up(self) -> None:
        ends = await asyncio.wrap_future(self._source.ends())
        while any(partition in self._stands.ends and self._lag(partition, end) for partition, end in ends.items()):
            await self._pipeline.intake.changed_within(0.2)
