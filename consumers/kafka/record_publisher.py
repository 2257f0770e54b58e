"""Sends records to a topic. A record counts as sent once all replicas have acknowledged it."""

import contextlib
from collections.abc import Sequence

import structlog
from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.partitioner.default import murmur2
from kafka.producer.future import FutureRecordMetadata

from consumers.kafka.dead_letters import REFUSED_FOR_GOOD
from consumers.kafka.settings import KafkaSettings, producer_config
from consumers.records.messages import RecordMessage

SEND_TIMEOUT_S = 60.0

log = structlog.get_logger(__name__)


class RecordPublisher:
    """Publishes records to `topic` of the cluster in `settings`. Blocking, for one thread."""

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._settings = settings
        self._topic = topic
        self._producer: KafkaProducer | None = None

    def publish(self, records: Sequence[Sequence[RecordMessage]]) -> list[str | None]:
        """Sends the messages of each record. Returns, for each record, None if all replicas have acknowledged it, else why the
        topic refuses it permanently.

        Raises KafkaError if a retry may succeed; all records must then be sent again.
        """
        try:
            return self._publish(records)
        except BaseException:
            self.close()  # messages in the producer's buffer must not arrive after newer ones
            raise

    def _publish(self, records: Sequence[Sequence[RecordMessage]]) -> list[str | None]:
        if self._producer is None:
            config = producer_config(self._settings, KafkaProducer.DEFAULT_CONFIG)
            self._producer = KafkaProducer(**config, allow_auto_create_topics=False)
        partitions = sorted(self._producer.partitions_for(self._topic) or ())
        if not partitions:
            raise KafkaError(f"the brokers have no topic {self._topic}")
        sent = [self._send(self._producer, messages, partitions) for messages in records]
        return [each if isinstance(each, str) else self._outcome(each) for each in sent]

    def _send(
        self, producer: KafkaProducer, messages: Sequence[RecordMessage], partitions: list[int]
    ) -> list[FutureRecordMetadata] | str:
        futures = []
        for message in messages:
            # Chooses the partition that kafka-python would choose for the URI as key. The parts of a record have other keys but
            # must be in the record's partition.
            partition = partitions[(murmur2(message.uri.encode()) & 0x7FFFFFFF) % len(partitions)]
            headers = list(message.headers)
            try:
                futures.append(
                    producer.send(
                        self._topic, key=message.key, value=message.value, headers=headers, partition=partition
                    )
                )
            except REFUSED_FOR_GOOD as error:
                return f"{type(error).__name__}: {error}"
        return futures

    def _outcome(self, futures: Sequence[FutureRecordMetadata]) -> str | None:
        try:
            for future in futures:
                future.get(timeout=SEND_TIMEOUT_S)
        except REFUSED_FOR_GOOD as error:
            return f"{type(error).__name__}: {error}"
        return None

    def close(self) -> None:
        if self._producer is not None:
            producer, self._producer = self._producer, None
            with contextlib.suppress(KafkaError):
                producer.close(timeout=2)
