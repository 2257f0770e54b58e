"""The offset from which each partition is fetched: at the start, after a rebalance, and after the broker has deleted messages.

An assigned partition gets a position before anything is fetched from it.
"""

from collections.abc import Callable, Iterable, Mapping
from threading import Lock

import structlog
from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import UnknownBrokerIdError

from consumers.kafka.broker_offsets import OffsetQueries
from consumers.kafka.message import ConsumerEvent, KafkaMessage, Partition, PartitionStarted
from consumers.kafka.settings import KafkaSettings

log = structlog.get_logger(__name__)


class FetchPositions:
    """The next offset of every partition that this process has fetched from. For the consumer's thread.

    Fetching continues at this process's position, else at the store's position, else at `settings.start`.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        stored: Callable[[Partition], int | None],
        known_topics: Iterable[str],
        emit: Callable[[ConsumerEvent], None],
    ) -> None:
        """`known_topics` are the topics with a position in the store."""
        self._start = settings.start
        self._stored = stored
        self._known_topics = set(known_topics)
        self._emit = emit
        self._next: dict[Partition, int] = {}
        self._from_end: set[Partition] = set()
        """Partitions of new topics. Such partitions are read from their end, as soon as a broker reports the end."""

    def offset_of(self, partition: Partition) -> int | None:
        """Returns this process's fetch position of the partition, else the store's position."""
        return self._next[partition] if partition in self._next else self._stored(partition)

    def assigned(self, partition: Partition) -> int | None:
        """Returns the offset at which to continue a partition that the group assigned to this member; `None` if only a broker
        knows it."""
        return self.offset_of(partition)

    def revoked(self, partition: Partition) -> None:
        """Does nothing: messages that were already fetched are still processed."""

    def new_messages(self, records: Mapping[TopicPartition, Iterable[ConsumerRecord]]) -> tuple[KafkaMessage, ...]:
        """Returns the messages of a poll that were not fetched before, and moves the fetch positions after them."""
        messages = tuple(
            KafkaMessage.from_record(record)
            for batch in records.values()
            for record in batch
            if record.offset >= self._next.get((record.topic, record.partition), 0)
        )
        for message in messages:
            self._next[(message.topic, message.partition)] = message.offset + 1
        return messages

    def seek_assigned(self, consumer: KafkaConsumer, listener: "RebalanceListener", offsets: OffsetQueries) -> None:
        """Determines the offset of each newly assigned partition and reports the partition as started."""
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
                    continue  # this partition is tried again later; the other partitions continue
                consumer.seek(tp, offset)
            if partition not in self._next:
                self._next[partition] = offset
                self._emit(PartitionStarted(partition, offset))
            listener.mark_placed(tp)

    def seek_existing(
        self, consumer: KafkaConsumer, offsets: OffsetQueries, missing: Mapping[TopicPartition, int]
    ) -> None:
        """Continues at the beginning of each partition whose offset (`missing`) the broker no longer has."""
        for tp in missing.keys() & consumer.assignment():
            beginning, offset = offsets.beginning(tp), int(missing[tp])
            if beginning is None:
                continue  # the next fetch raises the same error again
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
        listener: "RebalanceListener",
        offsets: OffsetQueries,
        error: UnknownBrokerIdError,
    ) -> bool:
        """Returns whether a poll failed because the brokers name a former leader. After such a poll, lets the other partitions
        continue.

        kafka-python 3.0 loses the messages of such a poll and waits for the leader's answer forever.
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
        """Returns the first offset of a partition without a position in the store; `None` while no broker answers."""
        if self._start == "earliest":
            return offsets.beginning(tp)
        if (tp.topic, tp.partition) in self._from_end:
            return offsets.end(tp)
        # The partition was added to a known topic. Only messages that another member of the group has read are skipped.
        committed = offsets.committed(tp)
        return committed if committed is None or committed >= 0 else offsets.beginning(tp)


class GroupPositions(FetchPositions):
    """Fetch positions from the group's offsets. `disown` is called with each partition that is revoked or assigned. A
    partition is reported as started once it has an offset."""

    def __init__(
        self,
        settings: KafkaSettings,
        acknowledged: Callable[[Partition], int | None],
        disown: Callable[[Partition], None],
        emit: Callable[[ConsumerEvent], None],
    ) -> None:
        super().__init__(settings, acknowledged, (), emit)
        self._disown = disown

    def offset_of(self, partition: Partition) -> int | None:
        return self._next.get(partition)

    def assigned(self, partition: Partition) -> int | None:
        self.revoked(partition)
        return None

    def revoked(self, partition: Partition) -> None:
        self._next.pop(partition, None)
        self._disown(partition)

    def _first_offset(self, offsets: OffsetQueries, tp: TopicPartition) -> int | None:
        committed = offsets.committed(tp)
        if committed is None or committed >= 0:
            return committed
        return offsets.beginning(tp) if self._start == "earliest" else offsets.end(tp)


class RebalanceListener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Listener that kafka-python calls on its own thread while `poll` waits. It must not block, so it sends no request to
    brokers.

    `positions` supplies the offsets at which to continue; its methods must not block.
    """

    def __init__(self, consumer: KafkaConsumer, positions: FetchPositions) -> None:
        self._consumer = consumer
        self._positions = positions
        self._lock = Lock()
        self._new: list[TopicPartition] = []
        self.unplaced: set[TopicPartition] = set()
        """Paused partitions without an offset to fetch from."""
        self.rebalances = 0
        """Number of times that the group has assigned partitions to this consumer."""

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        for tp in assigned:
            offset = self._positions.assigned((tp.topic, tp.partition))
            # Set a position, so that the client does not continue at the group's offset.
            self._consumer.seek(tp, 0 if offset is None else offset)
            if offset is None:
                self._consumer.pause(tp)
                self.unplaced.add(tp)
        with self._lock:
            self._new += sorted(assigned)
        self.rebalances += 1

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.unplaced -= set(revoked)
        for tp in revoked:
            self._positions.revoked((tp.topic, tp.partition))

    def take_new(self) -> list[TopicPartition]:
        """Returns the partitions that were assigned since the last call or still have no offset."""
        with self._lock:
            new, self._new = self._new, []
        return list(dict.fromkeys([*new, *sorted(self.unplaced)]))

    def mark_placed(self, tp: TopicPartition) -> None:
        self.unplaced.discard(tp)
