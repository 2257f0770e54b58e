"""Listens to rebalances. A partition that is assigned is positioned before anything is fetched from it."""

from threading import Lock
from typing import Any, Protocol

from kafka import TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener

from consumers.kafka.events import Partition


class AssignedPositions(Protocol):
    """Who knows where a partition goes on. Called on kafka-python's thread; it must not block."""

    def assigned(self, partition: Partition) -> int | None:
        """Where to go on, `None` where that has to be asked."""
        ...

    def revoked(self, partition: Partition) -> None: ...


class RebalanceListener(ConsumerRebalanceListener):  # type: ignore[misc]
    """kafka-python calls this from its own thread while `poll` waits. It must not block, so it asks no broker.

    `positions` says where to go on.
    """

    def __init__(self, consumer: Any, positions: "AssignedPositions") -> None:
        self._consumer = consumer
        self._positions = positions
        self._lock = Lock()
        self._new: list[TopicPartition] = []
        self.unplaced: set[TopicPartition] = set()
        """Partitions without an offset to fetch from; they are paused."""
        self.rebalances = 0
        """How often the group has assigned partitions to this consumer."""

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        for tp in assigned:
            offset = self._positions.assigned((tp.topic, tp.partition))
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
        for tp in revoked:
            self._positions.revoked((tp.topic, tp.partition))

    def take_new(self) -> list[TopicPartition]:
        """Partitions assigned since the last call, and those that still have no offset."""
        with self._lock:
            new, self._new = self._new, []
        return list(dict.fromkeys([*new, *sorted(self.unplaced)]))

    def mark_placed(self, tp: TopicPartition) -> None:
        self.unplaced.discard(tp)
