"""What the consumer's thread tells: which partitions it has, what arrived, how far the topics go."""

from collections.abc import Mapping
from dataclasses import dataclass

from consumers.kafka.message import Message

Partition = tuple[str, int]
"""Topic and number."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A partition is followed from `offset` on; `anew`: what its offsets meant before, they mean no longer."""

    partition: Partition
    offset: int
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Arrived:
    """Messages, each partition's in order."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Stands:
    """Where the fetching stands and where the topics end, of the partitions that are ours now."""

    fetched: Mapping[Partition, int]
    ends: Mapping[Partition, int]


Event = Placed | Arrived | Stands
