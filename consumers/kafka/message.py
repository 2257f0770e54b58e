"""A Kafka message, and its codec: as JSON between processes and in the store."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class KafkaMessage:
    """One record of a topic. `timestamp` is in milliseconds since 1970, -1 where the broker keeps none."""

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
    def from_record(cls, record: Any) -> "KafkaMessage":
        """The message of a record as kafka-python's consumer gives it."""
        headers = tuple((str(name), value) for name, value in record.headers or ())
        timestamp = -1 if record.timestamp is None else int(record.timestamp)
        return cls(record.topic, record.partition, record.offset, timestamp, record.key, record.value, headers)

    def to_json(self) -> dict[str, Any]:
        """A JSON object. Bytes become text; what is not UTF-8 in them becomes surrogate escapes."""
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
        """The message as text, stored with the failed document so that `retry` can read it again."""
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
            tuple((name, _bytes(held)) for name, held in value["headers"]),
        )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "surrogateescape")


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode("utf-8", "surrogateescape")
