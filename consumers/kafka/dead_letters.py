"""Sends undecodable messages to the dead-letter topic: each message once, even if the process dies."""

import contextlib
from collections.abc import Sequence
from hashlib import blake2b

import structlog
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import (
    AuthorizationError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from kafka.producer.future import FutureRecordMetadata

from consumers.kafka.connect import open_consumer
from consumers.kafka.message import KafkaMessage
from consumers.kafka.settings import KafkaSettings, producer_config, reader_config

TOPIC, PARTITION, OFFSET, ERROR, GROUP = (
    f"hippod-{name}" for name in ("topic", "partition", "offset", "error", "group")
)
"""Headers that a dead letter has in addition to the headers of its message."""

REFUSED_FOR_GOOD = (MessageSizeTooLargeError, RecordListTooLargeError, InvalidTopicError, AuthorizationError)
"""Errors that recur at every attempt to send the message."""
_SEND_TIMEOUT_S = 60.0
_QUERY_TIMEOUT_MS = 5000

_Identity = tuple[str, int, int, bytes]
"""(topic, partition, offset, digest of the content) of a message. A recreated topic has other messages at the same offsets."""

log = structlog.get_logger(__name__)


class DeadLetters:
    """Sends dead letters. Blocking, for one thread.

    All replicas acknowledge a letter before the store commits the message's offset. The process may die in between. So before
    the first letter is sent, and after any error, the topic is read to find the letters that it already contains. The headers
    of a letter identify its message; its key, value and other headers are copied from the message.
    """

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._settings = settings
        self._topic = topic
        self._producer: KafkaProducer | None = None
        self._delivered: set[_Identity] | None = None

    def send(self, letters: Sequence[tuple[KafkaMessage, str]]) -> list[str | None]:
        """Sends the letters. Returns, for each letter, `None` if it was delivered, else why the topic refuses it
        permanently.

        Raises KafkaError if a retry may succeed.
        """
        try:
            if self._delivered is None:
                self._delivered = self._find_delivered()
            return self._send(letters, self._delivered)
        except BaseException:
            self._delivered = None  # unknown now: the sent letters may have arrived
            self.close()
            raise

    def _send(self, letters: Sequence[tuple[KafkaMessage, str]], delivered: set[_Identity]) -> list[str | None]:
        if self._producer is None:
            self._producer = KafkaProducer(**producer_config(self._settings, KafkaProducer.DEFAULT_CONFIG))
        sent: list[FutureRecordMetadata | Exception | None] = []
        for message, error in letters:
            if _identity(message) in delivered:
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
                delivered.add(_identity(message))
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
        return [*_theirs(message.headers), *((name, value.encode("utf-8", "replace")) for name, value in ours.items())]

    def _find_delivered(self) -> set[_Identity]:
        """Reads the topic and returns the identities of all messages that have a dead letter."""
        delivered: set[_Identity] = set()
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
                        identity for record in batch if (identity := _identity_in_letter(record)) is not None
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


def _theirs(headers: Sequence[tuple[str, bytes | None]]) -> list[tuple[str, bytes]]:
    """Returns the headers of a message that are copied to its letter."""
    ours = (TOPIC, PARTITION, OFFSET, ERROR, GROUP)
    return [(name, value) for name, value in headers if value is not None and name not in ours]


def _identity(message: KafkaMessage) -> _Identity:
    return (*message.coordinates, _digest(message.key, message.value, message.headers))


def _identity_in_letter(record: ConsumerRecord) -> _Identity | None:
    headers = dict(record.headers or ())
    try:
        coordinates = (headers[TOPIC].decode(), int(headers[PARTITION]), int(headers[OFFSET]))
    except (KeyError, ValueError, AttributeError):
        return None  # a message that hippod did not write
    return (*coordinates, _digest(record.key, record.value, record.headers))


def _digest(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Returns a digest that is equal for a message and its letter."""
    digest = blake2b(digest_size=16)
    texts = [each for name, content in _theirs(headers) for each in (name.encode("utf-8", "surrogateescape"), content)]
    for content in (key, value, *texts):
        digest.update(b"-" if content is None else b"%d:" % len(content))
        digest.update(content or b"")
    return digest.digest()
