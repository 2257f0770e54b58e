"""Listens to rebalances. A partition that is assigned is positioned before anything is fetched from it."""

from collections.abc import Callable
from threading import Lock
from typing import Any

from kafka import TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener

from consumers.kafka.events import Partition


class RebalanceListener(ConsumerRebalanceListener):  # type: ignore[misc]
    """kafka-python calls this from its own thread while `poll` waits. It must not block, so it asks no broker.

    `offset_of(partition)`: where to go on, `None` where that is unknown.
    """

    def __init__(self, consumer: Any, offset_of: Callable[[Partition], int | None]) -> None:
        self._consumer = consumer
        self._offset_of = offset_of
        self._lock = Lock()
        self._new: list[TopicPartition] = []
        self.unplaced: set[TopicPartition] = set()
        """Partitions without an offset to fetch from; they are paused."""
        self.rebalances = 0
        """How often the group has assigned partitions to this consumer."""

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        for tp in assigned:
            offset = self._offset_of((tp.topic, tp.partition))
            # Any position keeps the client from asking for the group's offset and seeking it.
            self._consumer.seek(tp, 0 if offset is None else offset)
            if offset is None:
                self._consumer.pause(tp)
                self.unplaced.add(tp)
        with self._lock:
            self._new += sorted(assigned)
        self.rebalances += 1

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.unplaced -= set(revoked)

    def take_new(self) -> list[TopicPartition]:
        """Partitions assigned since the last call, and those that still have no offset."""
        with self._lock:
            new, self._new = self._new, []
        return list(dict.fromkeys([*new, *sorted(self.unplaced)]))

    def mark_placed(self, tp: TopicPartition) -> None:
        self.unplaced.discard(tp)
