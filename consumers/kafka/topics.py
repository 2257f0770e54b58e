"""Which topics a cluster has, for those who look before they start or join a group."""

import time
from collections.abc import Sequence
from threading import Event
from typing import Any

from kafka import KafkaConsumer
from kafka.errors import KafkaError

from consumers.kafka.connect import open_consumer
from consumers.kafka.settings import KafkaSettings, reader_config


def missing_topics(settings: KafkaSettings, topics: Sequence[str]) -> list[str]:
    """Those of `topics` that the brokers do not have. Raises OSError where they do not say."""
    try:
        consumer = open_consumer(reader_config(settings, KafkaConsumer.DEFAULT_CONFIG))
        try:
            known = consumer.topics()
        finally:
            consumer.close(autocommit=False, timeout_ms=2000)
    except KafkaError as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
    return [topic for topic in topics if topic not in known]


def await_partitions(consumer: Any, topics: Sequence[str], stop: Event, timeout_s: float) -> None:
    """Waits until `consumer`, which is subscribed to `topics`, knows their partitions, until `stop`, or for `timeout_s`.

    kafka-python 3.0 forgets what `subscribe` asks for while its first question of all is under way. The member then joins
    its group without having heard of the topics, shares out nothing, and has the whole group join again.
    """
    deadline = time.monotonic() + timeout_s
    while any(not consumer._cluster.partitions_for_topic(topic) for topic in topics) and time.monotonic() < deadline:
        consumer._cluster.request_update()
        if stop.wait(0.05):
            return
