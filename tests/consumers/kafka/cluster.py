"""The cluster that the tests run against: mock brokers, or the real ones that HIPPOD_TEST_KAFKA names."""

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
"""Without a message, on real brokers: the topic is read."""


class Cluster:
    """Brokers with topics of names that nobody has used before."""

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
        """Sends from now on with a producer that has seen no topic yet."""
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
        """What hippod needs for these brokers; the mock ones know no newer versions."""
        return {} if self.real else {"api_version": [2, 3]}

    def mock(self, **command: Any) -> None:
        """Has the mock brokers do something."""
        assert self.process is not None and self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        assert int(self.process.stdout.readline()) == 0, command

    def topic(self, partitions: int = 4, name: str | None = None) -> str:
        """A new topic."""
        name = name or f"hippod-test-{uuid.uuid4().hex[:12]}"
        if self.real:
            admin = AdminClient({"bootstrap.servers": self.brokers})
            admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
        else:
            self.mock(do="create", topic=name, partitions=partitions)
        return name

    def delete(self, topic: str) -> None:
        if self.real:
            AdminClient({"bootstrap.servers": self.brokers}).delete_topics([topic])[topic].result(30)
        else:
            self.mock(do="delete", topic=topic)

    def send(self, topic: str, value: Any, key: str | bytes | None = None, **more: Any) -> None:
        """One message: text and bytes as they are, everything else as JSON, None as null. `flush` waits for it."""
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
        """Every message of a topic."""
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.brokers, "group.id": f"look-{uuid.uuid4().hex}", "log_level": 0}
        )
        try:
            parts = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            places = [confluent_kafka.TopicPartition(topic, number) for number in parts]
            marks = {each.partition: consumer.get_watermark_offsets(each, timeout=30) for each in places}
            # Offsets that are read up to, by partition; a partition that has nothing is read.
            at = {number: begin for number, (begin, _) in marks.items()}
            consumer.assign([confluent_kafka.TopicPartition(topic, number, begin) for number, begin in at.items()])
            found: list[confluent_kafka.Message] = []
            while True:
                ended = all(at[number] >= end for number, (_, end) in marks.items())
                if ended and not self.real:
                    break
                message = consumer.poll(QUIET_S if ended else 30)
                if message is None and ended:  # Tansu's ends are those of the last batch's first message
                    break
                assert message is not None and message.error() is None, message
                found.append(message)
                at[message.partition()] = message.offset() + 1
            found.sort(key=lambda each: (each.partition(), each.offset()))
            return found
        finally:
            consumer.close()

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """The group's offsets, by partition; a partition without one is left out."""
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


def dead(messages: Iterable[confluent_kafka.Message]) -> list[Place]:
    """Which messages the dead letters were."""
    out = []
    for message in messages:
        headers = {name: (value or b"").decode() for name, value in message.headers() or []}
        out.append((headers["hippod-topic"], int(headers["hippod-partition"]), int(headers["hippod-offset"])))
    return sorted(out)
