"""The offset that each partition is fetched from: at the start, after a rebalance, and when the broker has deleted it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import UnknownBrokerIdError

from consumers.kafka.events import ConsumerEvent, Partition, PartitionStarted
from consumers.kafka.message import KafkaMessage
from consumers.kafka.offsets.offset_queries import OffsetQueries
from consumers.kafka.rebalance import RebalanceListener
from consumers.kafka.settings import KafkaSettings

log = structlog.get_logger(__name__)


class FetchPositions:
    """The next offset of every partition that this process has fetched from. For the consumer's thread.

    A partition goes on where this process stood, else where the store stands, else where `settings.start` says.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        stored: Callable[[Partition], int | None],
        known_topics: Iterable[str],
        emit: Callable[[ConsumerEvent], None],
    ) -> None:
        """`known_topics`: topics of which the store has a position."""
        self._start = settings.start
        self._stored = stored
        self._known_topics = set(known_topics)
        self._emit = emit
        self._next: dict[Partition, int] = {}
        self._from_end: set[Partition] = set()
        """Partitions of topics that were new: they are read from their end, as soon as a broker says where that is."""

    def offset_of(self, partition: Partition) -> int | None:
        """Where fetching stood in this process, else where the store stands."""
        return self._next[partition] if partition in self._next else self._stored(partition)

    def assigned(self, partition: Partition) -> int | None:
        """Where to go on with a partition that the group gave to this member; `None` where that has to be asked."""
        return self.offset_of(partition)

    def revoked(self, partition: Partition) -> None:
        """The group takes the partition away. What was fetched of it is worth doing all the same."""

    def new_messages(self, records: Mapping[TopicPartition, Iterable[Any]]) -> tuple[KafkaMessage, ...]:
        """The messages of a poll that were not fetched before; fetching goes on after them."""
        messages = tuple(
            KafkaMessage.from_record(record)
            for batch in records.values()
            for record in batch
            if record.offset >= self._next.get((record.topic, record.partition), 0)
        )
        for message in messages:
            self._next[(message.topic, message.partition)] = message.offset + 1
        return messages

    def seek_assigned(self, consumer: KafkaConsumer, listener: RebalanceListener, offsets: OffsetQueries) -> None:
        """Finds the offset of each newly assigned partition, and reports the partition as started."""
        assigned = consumer.assignment()
        if self._start == "latest":
            self._from_end |= {(tp.topic, tp.partition) for tp in assigned if tp.topic not in self._known_topics}
        self._known_topics |= {tp.topic for tp in assigned}
        for tp in sorted(listener.take_new(), key=offsets.unanswered_since):
            if tp not in assigned:
                continue
            partition = (tp.topic, tp.partition)
            offset = self.offset_of(partition)
            if offset is None:
                offset = self._first_offset(offsets, tp)
                if offset is None:
                    continue  # it stays unplaced, and is tried again; the others go on
                consumer.seek(tp, offset)
            if partition not in self._next:
                self._next[partition] = offset
                self._emit(PartitionStarted(partition, offset))
            listener.mark_placed(tp)

    def seek_existing(
        self, consumer: KafkaConsumer, offsets: OffsetQueries, missing: Mapping[TopicPartition, int]
    ) -> None:
        """Goes on at the beginning of each partition whose offset (`missing`) the broker does not have any more."""
        for tp in missing.keys() & consumer.assignment():
            beginning, offset = offsets.beginning(tp), int(missing[tp])
            if beginning is None:
                continue  # the next fetch says again that there is nothing at the position
            if beginning > offset:
                reason = f"the broker has deleted {beginning - offset} messages that were not read yet"
            else:
                reason = "the topic was created again, or truncated"
            log.warning(
                "kafka_offset_gone",
                topic=tp.topic,
                partition=tp.partition,
                offset=offset,
                goes_on_from=beginning,
                error=reason,
            )
            partition = (tp.topic, tp.partition)
            self._next[partition] = beginning
            self._emit(PartitionStarted(partition, beginning, recreated=True))
            consumer.seek(tp, beginning)

    def seek_after_lost_leader(
        self,
        consumer: KafkaConsumer,
        listener: RebalanceListener,
        offsets: OffsetQueries,
        error: UnknownBrokerIdError,
    ) -> bool:
        """Whether a poll failed because the brokers name a leader that is gone. If so, the other partitions go on.

        kafka-python 3.0 loses what that poll had fetched, and keeps waiting for the leader's answer for ever.
        """
        assigned = consumer.assignment()
        if all(offsets.leader(tp) is not None for tp in assigned):
            return False
        consumer._fetcher._nodes_with_pending_fetch_requests.discard(error.args[0])
        for tp in assigned - listener.unplaced:
            offset = self.offset_of((tp.topic, tp.partition))
            if offset is not None:
                consumer.seek(tp, offset)
        return True

    def _first_offset(self, offsets: OffsetQueries, tp: TopicPartition) -> int | None:
        """Where to begin a partition that the store knows nothing of; `None` while no broker says it."""
        if self._start == "earliest":
            return offsets.beginning(tp)
        if (tp.topic, tp.partition) in self._from_end:
            return offsets.end(tp)
        # The partition was added later. Skip what another member of the group has read, and nothing else.
        committed = offsets.committed(tp)
        return committed if committed is None or committed >= 0 else offsets.beginning(tp)
