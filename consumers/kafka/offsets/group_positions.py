"""Fetch positions of a member without a store. Fetching continues at the group's offset, also if another member had the
partition before."""

from collections.abc import Callable

from kafka import TopicPartition

from consumers.kafka.events import ConsumerEvent, Partition
from consumers.kafka.offsets.fetch_positions import FetchPositions
from consumers.kafka.offsets.offset_queries import OffsetQueries
from consumers.kafka.settings import KafkaSettings


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
