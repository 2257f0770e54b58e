"""Sends messages that cannot be read to the dead-letter topic: each once, even if the process dies in between."""

import contextlib
from collections.abc import Sequence
from typing import Any

import structlog
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import (
    AuthorizationError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)

from consumers.kafka.connect import open_consumer
from consumers.kafka.message import KafkaMessage
from consumers.kafka.settings import KafkaSettings, producer_config, reader_config

TOPIC, PARTITION, OFFSET, ERROR, GROUP = (
    f"hippod-{name}" for name in ("topic", "partition", "offset", "error", "group")
)
"""Headers that a dead letter gets, after those of the message itself."""

REFUSED_FOR_GOOD = (MessageSizeTooLargeError, RecordListTooLargeError, InvalidTopicError, AuthorizationError)
"""Errors for which sending again is no use."""
_SEND_TIMEOUT_S = 60.0
_QUERY_TIMEOUT_MS = 5000

log = structlog.get_logger(__name__)


class DeadLetters:
    """Blocking, for one thread.

    A message is sent and acknowledged by all replicas; then its offset is committed with the store. The process may die
    between the two. So before the first letter is sent, and after any error, the topic is read to find the letters that it
    has: the headers of a letter name its message.
    """

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._settings = settings
        self._topic = topic
        self._producer: Any = None
        self._delivered: set[tuple[str, int, int]] | None = None

    def send(self, letters: Sequence[tuple[KafkaMessage, str]]) -> list[str | None]:
        """For each letter `None` once it is delivered, or why the topic refuses it for good. Raises KafkaError where a later
        try may succeed.
        """
        try:
            if self._delivered is None:
                self._delivered = self._find_delivered()
            return self._send(letters, self._delivered)
        except BaseException:
            self._delivered = None  # unknown now: what was sent may have arrived or not
            self.close()
            raise

    def _send(
        self, letters: Sequence[tuple[KafkaMessage, str]], delivered: set[tuple[str, int, int]]
    ) -> list[str | None]:
        if self._producer is None:
            self._producer = KafkaProducer(**producer_config(self._settings, KafkaProducer.DEFAULT_CONFIG))
        sent: list[Any] = []
        for message, error in letters:
            if message.coordinates in delivered:
                sent.append(None)
                continue
            try:
                sent.append(
                    self._producer.send(
                        self._topic, key=message.key, value=message.value, headers=self._headers(message, error)
                    )
                )
            except REFUSED_FOR_GOOD as refused:
                sent.append(refused)
        answers: list[str | None] = []
        for (message, _), future in zip(letters, sent, strict=True):
            try:
                if isinstance(future, Exception):
                    raise future
                if future is not None:
                    future.get(timeout=_SEND_TIMEOUT_S)
                delivered.add(message.coordinates)
                answers.append(None)
            except REFUSED_FOR_GOOD as refused:
                answers.append(f"{type(refused).__name__}: {refused}")
        return answers

    def _headers(self, message: KafkaMessage, error: str) -> list[tuple[str, bytes]]:
        ours = {
            ERROR: error,
            TOPIC: message.topic,
            PARTITION: str(message.partition),
            OFFSET: str(message.offset),
            GROUP: self._settings.group,
        }
        theirs = [(name, value) for name, value in message.headers if value is not None and name not in ours]
        return [*theirs, *((name, value.encode("utf-8", "replace")) for name, value in ours.items())]

    def _find_delivered(self) -> set[tuple[str, int, int]]:
        """Topic, partition and offset of every message that has a dead letter."""
        delivered: set[tuple[str, int, int]] = set()
        consumer = open_consumer(reader_config(self._settings, KafkaConsumer.DEFAULT_CONFIG))
        try:
            numbers = consumer.partitions_for_topic(self._topic)
            tps = [TopicPartition(self._topic, number) for number in numbers or ()]
            if not tps:
                return delivered
            ends = consumer.end_offsets(tps, timeout_ms=_QUERY_TIMEOUT_MS)
            beginnings = consumer.beginning_offsets(tps, timeout_ms=_QUERY_TIMEOUT_MS)
            left = {tp for tp in tps if ends[tp] > beginnings[tp]}
            consumer.assign(tps)
            for tp in tps:
                consumer.seek(tp, beginnings[tp])
            while left:
                records = consumer.poll(timeout_ms=_QUERY_TIMEOUT_MS)
                for batch in records.values():
                    delivered.update(
                        coordinates for record in batch if (coordinates := _coordinates(record)) is not None
                    )
                passed = {tp for tp in left if (consumer.position(tp, timeout_ms=_QUERY_TIMEOUT_MS) or 0) >= ends[tp]}
                if not records and not passed:
                    raise KafkaTimeoutError(f"the dead letters of {self._topic} cannot be read to their end")
                left -= passed
        finally:
            consumer.close(autocommit=False, timeout_ms=2000)
        if delivered:
            log.info("dead_letters_found", source=self._settings.name, topic=self._topic, messages=len(delivered))
        return delivered

    def close(self) -> None:
        if self._producer is not None:
            producer, self._producer = self._producer, None
            with contextlib.suppress(KafkaError):
                producer.close(timeout=2)


def _coordinates(record: Any) -> tuple[str, int, int] | None:
    headers = dict(record.headers or ())
    try:
        return (headers[TOPIC].decode(), int(headers[PARTITION]), int(headers[OFFSET]))
    except (KeyError, ValueError, AttributeError):
        return None  # a message that hippod did not write
