"""The brokers of the tests: mock brokers, or the real ones in HIPPOD_TEST_KAFKA."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

REAL = os.environ.get("HIPPOD_TEST_KAFKA")
Place = tuple[str, int, int]
QUIET_S = 1.0
"""Seconds without a message after which a topic on real brokers counts as read completely."""


class Cluster:
    """Brokers with topics of unused names."""

    def __init__(self, brokers: int = 1) -> None:
        self.process: subprocess.Popen[str] | None = None
        if REAL:
            self.brokers = REAL
        else:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("mock_cluster.py")), str(brokers)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            assert self.process.stdout is not None
            self.brokers = self.process.stdout.readline().strip()
        self.forget()

    def forget(self) -> None:
        """Replaces the producer with one that knows no topic yet."""
        options = {"bootstrap.servers": self.brokers, "linger.ms": 5, "message.max.bytes": 100_000_000, "log_level": 0}
        if self.real:
            # Tansu takes the first offset of the last batch, plus one, for the end of a topic. With several messages in that
            # batch, a source seems to have caught up before it has read them all.
            options["batch.num.messages"] = 1
        self.producer = confluent_kafka.Producer(options)

    @property
    def real(self) -> bool:
        return self.process is None

    @property
    def options(self) -> dict[str, Any]:
        """Returns hippod's options for these brokers; the mock ones support only old API versions."""
        return {} if self.real else {"api_version": [2, 3]}

    @property
    def sender_options(self) -> dict[str, Any]:
        """Returns hippod's options where it also sends: one message a batch, for the same reason as in `forget`."""
        return {**self.options, "batch_size": 0}

    def mock(self, **command: Any) -> None:
        """Sends a command to the mock brokers."""
        assert self.process is not None and self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        assert int(self.process.stdout.readline()) == 0, command

    def topic(self, partitions: int = 4, name: str | None = None) -> str:
        """Creates a topic."""
        name = name or f"hippod-test-{uuid.uuid4().hex[:12]}"
        if self.real:
            admin = AdminClient({"bootstrap.servers": self.brokers})
            topic = NewTopic(name, partitions, 1, config={"max.message.bytes": "100000000"})  # the default is 1 MB
            admin.create_topics([topic])[name].result(30)
        else:
            self.mock(do="create", topic=name, partitions=partitions)
        return name

    def delete(self, topic: str) -> None:
        if self.real:
            AdminClient({"bootstrap.servers": self.brokers}).delete_topics([topic])[topic].result(30)
        else:
            self.mock(do="delete", topic=topic)

    def send(self, topic: str, value: Any, key: str | bytes | None = None, **more: Any) -> None:
        """Sends one message: text and bytes unchanged, other values as JSON, None as null. `flush` waits for it."""
        if not isinstance(value, str | bytes | None):
            value = json.dumps(value)
        while True:
            try:
                self.producer.produce(topic, value, key, **more)
                return
            except BufferError:
                self.producer.poll(0.1)

    def flush(self) -> None:
        assert self.producer.flush(60) == 0

    def read(self, topic: str) -> list[confluent_kafka.Message]:
        """Returns every message of a topic."""
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.brokers, "group.id": f"look-{uuid.uuid4().hex}", "log_level": 0}
        )
        try:
            parts = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            places = [confluent_kafka.TopicPartition(topic, number) for number in parts]
            marks = {each.partition: consumer.get_watermark_offsets(each, timeout=30) for each in places}
            # Next offsets by partition; an empty partition is complete.
            at = {number: begin for number, (begin, _) in marks.items()}
            consumer.assign([confluent_kafka.TopicPartition(topic, number, begin) for number, begin in at.items()])
            found: list[confluent_kafka.Message] = []
            while True:
                ended = all(at[number] >= end for number, (_, end) in marks.items())
                if ended and not self.real:
                    break
                message = consumer.poll(QUIET_S if ended else 30)
                if message is None and ended:  # Tansu's end offset is that of the last batch's first message
                    break
                assert message is not None and message.error() is None, message
                found.append(message)
                number, offset = message.partition(), message.offset()
                assert number is not None and offset is not None
                at[number] = offset + 1
            found.sort(key=lambda each: (each.partition(), each.offset()))
            return found
        finally:
            consumer.close()

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Returns the group's offsets by partition, without partitions that have none."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.brokers, "group.id": group, "log_level": 0})
        try:
            numbers = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            places = [confluent_kafka.TopicPartition(topic, number) for number in numbers]
            return {p.partition: p.offset for p in consumer.committed(places, timeout=30) if p.offset >= 0}
        finally:
            consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.producer.purge()
        self.producer.flush(1)
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def headers_of(message: confluent_kafka.Message) -> dict[str, bytes]:
    """Returns the headers of a message by name, with b"" for null."""
    found: dict[str, bytes] = {}
    for name, value in dict(message.headers() or ()).items():
        assert not isinstance(value, str)
        found[name] = value or b""
    return found


def dead(messages: Iterable[confluent_kafka.Message]) -> list[Place]:
    """Returns the places of the messages that the dead letters contain."""
    out = []
    for message in messages:
        headers = {name: value.decode() for name, value in headers_of(message).items()}
        out.append((headers["hippod-topic"], int(headers["hippod-partition"]), int(headers["hippod-offset"])))
    return sorted(out)
