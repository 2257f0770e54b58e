"""What a rebalance does: partitions come and go, and each that comes is sought before anything is fetched from it."""

from collections.abc import Callable
from threading import Lock
from typing import Any

from kafka import TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener

from consumers.kafka.events import Partition


class RebalanceListener(ConsumerRebalanceListener):  # type: ignore[misc]
    """The consumer calls this from its own thread while `poll` waits; it must not block, so it asks no broker."""

    def __init__(self, consumer: Any, known: Callable[[Partition], int | None]) -> None:
        self._consumer = consumer
        self._known = known
        self._lock = Lock()
        self._new: list[TopicPartition] = []
        self.unplaced: set[TopicPartition] = set()
        """Partitions that must not be fetched from yet."""
        self.rebalances = 0
        """How often partitions were given out."""

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        for tp in assigned:
            at = self._known((tp.topic, tp.partition))
            # A position of whatever kind keeps the client from asking for the group's offset and going there.
            self._consumer.seek(tp, 0 if at is None else at)
            if at is None:
                self._consumer.pause(tp)
                self.unplaced.add(tp)
        with self._lock:
            self._new += sorted(assigned)
        self.rebalances += 1

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.unplaced -= set(revoked)

    def take_new(self) -> list[TopicPartition]:
        """Partitions that have come since the last call, and those whose place could not be found out then."""
        with self._lock:
            new, self._new = self._new, []
        return list(dict.fromkeys([*new, *sorted(self.unplaced)]))

    def placed(self, tp: TopicPartition) -> None:
        self.unplaced.discard(tp)
