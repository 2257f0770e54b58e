"""What the consumer's thread reports: which partitions it reads, the messages it fetched, and where the topics end."""

from collections.abc import Mapping
from dataclasses import dataclass

from consumers.kafka.message import KafkaMessage

Partition = tuple[str, int]
"""Topic and number."""


@dataclass(frozen=True, slots=True)
class PartitionStarted:
    """The partition is read from `offset` on. `recreated`: the topic is another one, so offsets stored before mean nothing."""

    partition: Partition
    offset: int
    recreated: bool = False


@dataclass(frozen=True, slots=True)
class MessagesFetched:
    """New messages; those of one partition are in order."""

    messages: tuple[KafkaMessage, ...]


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """For each partition that this consumer has now: the next offset to fetch, and the end of the partition."""

    fetched: Mapping[Partition, int]
    ends: Mapping[Partition, int]


ConsumerEvent = PartitionStarted | MessagesFetched | PartitionOffsets
