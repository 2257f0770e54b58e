"""Which topics a cluster has: asked once, for those who look before they start."""

from collections.abc import Sequence

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
