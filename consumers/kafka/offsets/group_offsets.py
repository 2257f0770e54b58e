"""Commits the store's positions as offsets of the consumer group, for operators and tools that monitor the group."""

from collections.abc import Callable

import structlog
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from consumers.kafka.events import Partition

log = structlog.get_logger(__name__)


class GroupOffsets:
    """Commits offsets and remembers them, so that only changed offsets are sent. For the consumer's thread.

    hippod itself uses these offsets only for partitions without a position in the store.
    """

    def __init__(self, source: str, stored: Callable[[Partition], int | None]) -> None:
        """`source` is the name of the source in the log. `stored(partition)` is the position in the store."""
        self._source = source
        self._stored = stored
        self._committed: dict[Partition, int] = {}

    def forget(self) -> None:
        """Makes the next commit send all offsets. Call it if another member may have had the partitions meanwhile."""
        self._committed.clear()

    def commit(self, consumer: KafkaConsumer, *, wait: bool = False) -> None:
        """Sends the offsets of the assigned partitions. With `wait`, waits at most 3 s for the group's answer."""
        offsets = {}
        for tp in consumer.assignment():
            partition = (tp.topic, tp.partition)
            offset = self._stored(partition)
            if offset is not None and self._committed.get(partition) != offset:
                offsets[tp] = OffsetAndMetadata(offset, "", -1)
                self._committed[partition] = offset
        if not offsets:
            return
        if wait:
            consumer.commit(offsets, timeout_ms=3000)
        else:
            consumer.commit_async(offsets, callback=self._on_answer)

    def _on_answer(self, offsets: dict[TopicPartition, OffsetAndMetadata], answer: object) -> None:
        if isinstance(answer, Exception):
            log.debug("kafka_group_offsets_not_committed", source=self._source, error=str(answer))
            for tp in offsets:
                self._committed.pop((tp.topic, tp.partition), None)
