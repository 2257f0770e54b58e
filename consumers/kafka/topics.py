"""Queries a cluster for its topics, before hippod starts or joins a group."""

import time
from collections.abc import Sequence
from threading import Event

from kafka import KafkaConsumer
from kafka.errors import KafkaError

from consumers.kafka.connect import open_consumer
from consumers.kafka.settings import KafkaSettings, reader_config


def missing_topics(settings: KafkaSettings, topics: Sequence[str]) -> list[str]:
    """Returns the topics among `topics` that do not exist. Raises OSError if the brokers do not answer."""
    try:
        consumer = open_consumer(reader_config(settings, KafkaConsumer.DEFAULT_CONFIG))
        try:
            known = consumer.topics()
        finally:
            consumer.close(autocommit=False, timeout_ms=2000)
    except KafkaError as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
    return [topic for topic in topics if topic not in known]


def await_partitions(consumer: KafkaConsumer, topics: Sequence[str], stop: Event, timeout_s: float) -> None:
    """Waits until `consumer` knows the partitions of its subscribed `topics`, `stop` is set, or `timeout_s` has passed.

    kafka-python 3.0 forgets the subscribed topics if `subscribe` is called while its first metadata request is pending. The
    member would then join its group without knowing the topics, assign no partition, and force the whole group to rejoin.
    """
    deadline = time.monotonic() + timeout_s
    while any(not consumer._cluster.partitions_for_topic(topic) for topic in topics) and time.monotonic() < deadline:
        consumer._cluster.request_update()
        if stop.wait(0.05):
            return
