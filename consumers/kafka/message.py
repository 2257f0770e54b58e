"""A Kafka message and its JSON encoding, which is sent between processes and kept in the store; events of the consumer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka.consumer.fetcher import ConsumerRecord

Partition = tuple[str, int]
"""Topic and partition number."""


@dataclass(frozen=True, slots=True)
class KafkaMessage:
    """One record of a topic. `timestamp` is in milliseconds since 1970; -1 if the broker stores none."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = field(default=())

    @property
    def coordinates(self) -> tuple[str, int, int]:
        """Topic, partition and offset, which identify the message."""
        return (self.topic, self.partition, self.offset)

    @property
    def size(self) -> int:
        """Bytes of key and value."""
        return len(self.key or b"") + len(self.value or b"")

    @classmethod
    def from_record(cls, record: "ConsumerRecord") -> "KafkaMessage":
        """Converts a record of kafka-python's consumer."""
        headers = tuple((str(name), value) for name, value in record.headers or ())
        timestamp = -1 if record.timestamp is None else int(record.timestamp)
        return cls(record.topic, record.partition, record.offset, timestamp, record.key, record.value, headers)

    def to_json(self) -> dict[str, Any]:
        """Returns a JSON object. Bytes become text; bytes that are not UTF-8 become surrogate escapes."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "key": _text(self.key),
            "value": _text(self.value),
            "headers": [[name, _text(value)] for name, value in self.headers],
        }

    def payload(self) -> str:
        """Returns the message as text. The text is stored with the failed document, so that `retry` can decode the
        message again."""
        return json.dumps(self.to_json())

    @classmethod
    def from_payload(cls, payload: str) -> "KafkaMessage":
        return cls.from_json(json.loads(payload))

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "KafkaMessage":
        return cls(
            value["topic"],
            int(value["partition"]),
            int(value["offset"]),
            int(value["timestamp"]),
            _bytes(value["key"]),
            _bytes(value["value"]),
            tuple((name, _bytes(content)) for name, content in value["headers"]),
        )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "surrogateescape")


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode("utf-8", "surrogateescape")


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
