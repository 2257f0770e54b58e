"""A partial outage: a partition without a leader, or one of two clusters. The other parts are followed and reported
separately."""

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from consumers.kafka.consumer import ConsumerState, TopicConsumer
from consumers.kafka.message import ConsumerEvent, MessagesFetched, PartitionOffsets, PartitionStarted
from consumers.kafka.settings import KafkaSettings
from tests.consumers.kafka.cluster import Cluster
from tests.consumers.kafka.following import article, following, positions, source
from tests.consumers.kafka.refusing_broker import Refusing
from tests.e2e.real_hippod import until

LOGIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "ada",
    "sasl_plain_password": "not-the-word",
}
NOBODY = -1
"""The leader id of a partition without a leader."""

mock_only = pytest.mark.skipif("HIPPOD_TEST_KAFKA" in os.environ, reason="real leaders are not the test's to change")


@pytest.fixture
def cluster():
    with Cluster() as cluster:
        yield cluster


class Followed(TopicConsumer):
    """A source that records its events; its store is empty."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.events: list[ConsumerEvent] = []
        super().__init__(settings, lambda partition: None, (), lambda: False, self.events.append)

    def placed(self) -> dict[int, int]:
        return {event.partition[1]: event.offset for event in self.events if isinstance(event, PartitionStarted)}

    def arrived(self) -> set[tuple[int, int]]:
        """Returns partition and offset of every message."""
        return {
            (message.partition, message.offset)
            for event in self.events
            if isinstance(event, MessagesFetched)
            for message in event.messages
        }

    def ended(self) -> dict[int, int]:
        """Returns the last reported end offsets of the partitions."""
        stands = [event for event in self.events if isinstance(event, PartitionOffsets)]
        return {partition[1]: end for partition, end in stands[-1].ends.items()} if stands else {}


@contextlib.contextmanager
def followed(brokers: str, *topics: str, start: Any = "earliest", **options: Any) -> Iterator[Followed]:
    settings = KafkaSettings(tuple(brokers.split(",")), topics, f"group-{topics[0]}", start=start, options=options)
    source = Followed(settings)
    source.start()
    try:
        yield source
    finally:
        source.stop()


@pytest.mark.broker
@mock_only
def test_a_partition_without_a_leader_keeps_none_of_the_others_waiting(cluster):
    topic = cluster.topic(3)
    for number in range(3):
        cluster.send(topic, article(number), partition=number)
    cluster.flush()
    cluster.mock(do="lead", topic=topic, partition=1, broker=NOBODY)
    with followed(cluster.brokers, topic, **cluster.options) as source:
        until(lambda: source.arrived() == {(0, 0), (2, 0)}, "the other partitions are read")
        until(lambda: source.ended() == {0: 1, 2: 1}, "where they end is known")
        until(lambda: f"{topic}/1" in source.state.detail, "the partition is named")
        assert "no leader" in source.state.detail
        assert source.state.state == "following"
        cluster.send(topic, article(3), partition=2)
        cluster.flush()
        until(lambda: source.ended() == {0: 1, 2: 2}, "the lag is not frozen")
        assert source.rebalances == 1
        cluster.mock(do="lead", topic=topic, partition=1, broker=1)
        until(lambda: (1, 0) in source.arrived(), "it is read from when it has a leader")
        until(lambda: source.state.detail == "", "nothing is left to say")
        assert source.ended() == {0: 1, 1: 1, 2: 2}
        assert source.placed() == {0: 0, 1: 0, 2: 0}
        assert source.rebalances == 1


@pytest.mark.broker
@mock_only
def test_partition_with_a_late_leader_starts_at_its_end(cluster):
    topic = cluster.topic(2)
    for number in range(4):
        cluster.send(topic, article(number), partition=number % 2)
    cluster.flush()
    cluster.mock(do="lead", topic=topic, partition=1, broker=NOBODY)
    with followed(cluster.brokers, topic, start="latest", **cluster.options) as source:
        until(lambda: f"{topic}/1" in source.state.detail, "the partition is named")
        assert source.placed() == {0: 2}
        cluster.mock(do="lead", topic=topic, partition=1, broker=1)
        until(lambda: source.placed() == {0: 2, 1: 2}, "it is placed")


@pytest.mark.broker
@mock_only
def test_a_broker_that_is_away_stops_its_own_partitions_only():
    with Cluster(3) as cluster:
        topic = cluster.topic(3)
        cluster.mock(do="coordinate", group=f"group-{topic}", broker=1)
        for number in range(3):
            cluster.mock(do="lead", topic=topic, partition=number, broker=number + 1)
            cluster.send(topic, article(number), partition=number)
        cluster.flush()
        with followed(cluster.brokers, topic, **cluster.options) as source:
            until(lambda: source.ended() == {0: 1, 1: 1, 2: 1}, "all are followed")
            cluster.mock(do="down", broker=3)
            until(lambda: f"{topic}/2" in source.state.detail, "the partition is named")
            for number in range(2):
                cluster.send(topic, article(f"{number}-later"), partition=number)
            cluster.flush()
            until(lambda: sum(source.ended().values()) == 5, "the others are asked")
            until(lambda: len(source.arrived()) == 5, "and read")
            assert source.state.state == "following"
            cluster.mock(do="up", broker=3)
            cluster.send(topic, article("2-later"), partition=2)
            cluster.flush()
            until(lambda: (2, 1) in source.arrived(), "the broker is asked again when it is back")
            until(lambda: source.state.detail == "", "nothing is left to say")
            assert source.rebalances == 1


@pytest.mark.broker
@pytest.mark.daemon
@mock_only
def test_waiting_ends_while_a_partition_has_no_leader(cluster, tmp_path):
    topic = cluster.topic(2)
    cluster.send(topic, article(1), partition=0)
    cluster.flush()
    with following(tmp_path, cluster, topic) as daemon:
        daemon.wait()
        cluster.mock(do="lead", topic=topic, partition=1, broker=NOBODY)
        until(lambda: f"{topic}/1" in (source(daemon)["detail"] or ""), "status names the partition")
        assert source(daemon)["state"] == "following"
        cluster.send(topic, article(2), partition=0)
        cluster.flush()
        assert daemon.wait()["documents"] == 2
        assert positions(daemon) == {0: 2, 1: 0}


def test_refused_login_of_one_cluster_is_not_reported_for_another():
    with Refusing() as strict, socket.create_server(("127.0.0.1", 0)) as silent:
        mute = f"127.0.0.1:{silent.getsockname()[1]}"
        version = {"api_version": (2, 3)}
        with followed(strict.brokers, "one", **version, **LOGIN) as refused, followed(mute, "two", **version) as other:
            until(lambda: refused.state.state == "denied", "the login is refused")
            before = other.state
            told: list[ConsumerState] = []
            until(lambda: looked(other, told) is not before, "the other has looked again")
            since = time.monotonic()
            until(lambda: looked(other, told) and time.monotonic() > since + 3, "and some times more")
            assert "denied" not in {state.state for state in told}
            assert "wrong password" not in other.state.detail
            assert "wrong password" in refused.state.detail


def looked(source: Followed, told: list[ConsumerState]) -> ConsumerState:
    """Returns the present state and appends it to `told`."""
    told.append(source.state)
    return source.state
