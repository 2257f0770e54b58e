"""Handles rebalances. An assigned partition gets a position before anything is fetched from it."""

from threading import Lock
from typing import TYPE_CHECKING

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener

if TYPE_CHECKING:
    from consumers.kafka.offsets.fetch_positions import FetchPositions


class RebalanceListener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Listener that kafka-python calls on its own thread while `poll` waits. It must not block, so it sends no request to
    brokers.

    `positions` supplies the offsets at which to continue; its methods must not block.
    """

    def __init__(self, consumer: KafkaConsumer, positions: "FetchPositions") -> None:
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
            # Once a position is set, the client does not fetch the group's offset and seek to it.
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
