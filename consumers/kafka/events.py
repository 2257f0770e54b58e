"""Events of the consumer's thread: started partitions, fetched messages, and the ends of partitions."""

from collections.abc import Mapping
from dataclasses import dataclass

from consumers.kafka.message import KafkaMessage

Partition = tuple[str, int]
"""Topic and partition number."""


@dataclass(frozen=True, slots=True)
class PartitionStarted:
    """The partition is read from `offset` on. `recreated`: the topic was created again, so stored offsets are
    invalid."""

    partition: Partition
    offset: int
    recreated: bool = False


@dataclass(frozen=True, slots=True)
class MessagesFetched:
    """New messages. Messages of one partition are in offset order."""

    messages: tuple[KafkaMessage, ...]


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """The next offset to fetch and the end offset of each partition of this consumer."""

    fetched: Mapping[Partition, int]
    ends: Mapping[Partition, int]


ConsumerEvent = PartitionStarted | MessagesFetched | PartitionOffsets
