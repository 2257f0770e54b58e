"""The topics that a cluster has."""

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from kafka import KafkaConsumer

from consumers.kafka.connect import await_partitions, open_consumer
from consumers.kafka.settings import KafkaSettings, consumer_config
from tests.consumers.kafka.cluster import Cluster
from tests.e2e.real_hippod import until

pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif("HIPPOD_TEST_KAFKA" in os.environ, reason="real brokers are not the test's to slow down"),
]


@contextlib.contextmanager
def first_question_under_way(topic: str, cluster: Cluster) -> Iterator[Any]:
    """Yields a consumer whose first metadata request to slow brokers, about no topic, is not answered yet."""
    cluster.mock(do="slow", broker=1, answers_after_ms=300)
    settings = KafkaSettings((cluster.brokers,), (topic,), f"group-{topic}", options=cluster.options)
    consumer = open_consumer(consumer_config(settings, KafkaConsumer.DEFAULT_CONFIG))
    try:
        until(lambda: consumer._cluster.metadata_refresh_in_progress, "the first question is under way", pause_s=0.001)
        yield consumer
    finally:
        consumer.close(autocommit=False, timeout_ms=2000)


def test_partitions_missed_by_the_client_are_requested_again():
    with Cluster() as cluster:
        topic = cluster.topic(2)
        with first_question_under_way(topic, cluster) as consumer:
            consumer.subscribe([topic])
            await_partitions(consumer, [topic], threading.Event(), timeout_s=30)
            assert consumer._cluster.partitions_for_topic(topic) == {0, 1}


def test_wait_for_a_missing_topic_ends_at_its_timeout():
    with Cluster() as cluster:
        topic = cluster.topic(1)
        with first_question_under_way(topic, cluster) as consumer:
            cluster.delete(topic)
            cluster.mock(do="error", topic=topic, code=3)
            consumer.subscribe([topic])
            await_partitions(consumer, [topic], threading.Event(), timeout_s=1.5)
            assert not consumer._cluster.partitions_for_topic(topic)
