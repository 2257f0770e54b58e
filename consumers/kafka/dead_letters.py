"""The topic for messages that cannot be read: each goes there once, whatever happens between sending and committing."""

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
"""Headers of a dead letter, before which its own headers stand."""

_REFUSED = (MessageSizeTooLargeError, RecordListTooLargeError, InvalidTopicError, AuthorizationError)
"""What sending again does not change."""
_SEND_S = 60.0
_ASK_MS = 5000

log = structlog.get_logger(__name__)


class DeadLetters:
    """Blocking, for one thread.

    A message is sent, acknowledged by all replicas, and only then its offset committed with the store; the process may end
    between the two. So before the first is sent, and after any doubt, the topic itself is asked which are there: a dead
    letter's headers name the message that it was.
    """

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._settings = settings
        self._topic = topic
        self._producer: Any = None
        self._there: set[tuple[str, int, int]] | None = None

    def send(self, letters: Sequence[tuple[KafkaMessage, str]]) -> list[str | None]:
        """For each `None` once it is there, or why the topic will never take it. Raises KafkaError where it may later."""
        try:
            if self._there is None:
                self._there = self._scan()
            return self._send(letters, self._there)
        except BaseException:
            self._there = None  # what was sent may be there or not
            self.close()
            raise

    def _send(self, letters: Sequence[tuple[KafkaMessage, str]], there: set[tuple[str, int, int]]) -> list[str | None]:
        if self._producer is None:
            self._producer = KafkaProducer(**producer_config(self._settings, KafkaProducer.DEFAULT_CONFIG))
        sent: list[Any] = []
        for message, error in letters:
            if message.place in there:
                sent.append(None)
                continue
            try:
                sent.append(
                    self._producer.send(
                        self._topic, key=message.key, value=message.value, headers=self._headers(message, error)
                    )
                )
            except _REFUSED as refused:
                sent.append(refused)
        answers: list[str | None] = []
        for (message, _), future in zip(letters, sent, strict=True):
            try:
                if isinstance(future, Exception):
                    raise future
                if future is not None:
                    future.get(timeout=_SEND_S)
                there.add(message.place)
                answers.append(None)
            except _REFUSED as refused:
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

    def _scan(self) -> set[tuple[str, int, int]]:
        """The places of all messages that are dead letters now."""
        there: set[tuple[str, int, int]] = set()
        consumer = open_consumer(reader_config(self._settings, KafkaConsumer.DEFAULT_CONFIG))
        try:
            numbers = consumer.partitions_for_topic(self._topic)
            tps = [TopicPartition(self._topic, number) for number in numbers or ()]
            if not tps:
                return there
            ends = consumer.end_offsets(tps, timeout_ms=_ASK_MS)
            begins = consumer.beginning_offsets(tps, timeout_ms=_ASK_MS)
            left = {tp for tp in tps if ends[tp] > begins[tp]}
            consumer.assign(tps)
            for tp in tps:
                consumer.seek(tp, begins[tp])
            while left:
                records = consumer.poll(timeout_ms=_ASK_MS)
                for batch in records.values():
                    there.update(place for record in batch if (place := _place(record)) is not None)
                passed = {tp for tp in left if (consumer.position(tp, timeout_ms=_ASK_MS) or 0) >= ends[tp]}
                if not records and not passed:
                    raise KafkaTimeoutError(f"the dead letters of {self._topic} cannot be read to their end")
                left -= passed
        finally:
            consumer.close(autocommit=False, timeout_ms=2000)
        if there:
            log.info("dead_letters_found", source=self._settings.name, topic=self._topic, messages=len(there))
        return there

    def close(self) -> None:
        if self._producer is not None:
            producer, self._producer = self._producer, None
            with contextlib.suppress(KafkaError):
                producer.close(timeout=2)


def _place(record: Any) -> tuple[str, int, int] | None:
    headers = dict(record.headers or ())
    try:
        return (headers[TOPIC].decode(), int(headers[PARTITION]), int(headers[OFFSET]))
    except (KeyError, ValueError, AttributeError):
        return None  # somebody else's
