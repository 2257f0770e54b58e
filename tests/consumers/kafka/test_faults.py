"""No message is lost or applied twice: killed daemons, broker outages, recreated topics, slow work."""

import os
import random
import signal
import time
from dataclasses import replace
from functools import partial

import psutil
import pytest

pytest.importorskip("confluent_kafka")

from consumers.kafka.dead_letters import DeadLetters
from consumers.kafka.message import KafkaMessage
from consumers.kafka.settings import KafkaSettings
from tests.consumers.kafka.cluster import Cluster, dead
from tests.consumers.kafka.following import article, built_at_once, following, positions, source
from tests.consumers.kafka.message_stream import Stream, publish
from tests.consumers.kafka.refusing_broker import Refusing
from tests.e2e.real_hippod import Daemon, until

pytestmark = [
    pytest.mark.broker,
    pytest.mark.daemon,
    pytest.mark.may_rerun("members of a group and lost brokers are told apart by timers of seconds"),
]

KILLS = 5
MESSAGES = 1_200
PARTITIONS = 8
UNKNOWN_TOPIC = 3


@pytest.fixture
def cluster():
    with Cluster() as cluster:
        yield cluster


def has_committed_since(daemon: Daemon, commit: int) -> bool:
    return bool(daemon.status()["commit"] > commit)


def test_kills_at_random_moments_lose_and_duplicate_no_message(cluster, tmp_path):
    topic, letters = cluster.topic(PARTITIONS), cluster.topic(2)
    stream = Stream()
    rng = random.Random(6)
    with following(tmp_path, cluster, topic, dead_letter=letters) as daemon:
        for step in range(KILLS):
            commit = daemon.status()["commit"]
            publish(cluster, topic, MESSAGES // KILLS, PARTITIONS, step, stream)
            cluster.flush()
            until(partial(has_committed_since, daemon, commit), "it has known_topics with what came")
            time.sleep(rng.random() * 0.5)  # any moment will do
            daemon.kill()
            daemon.start()
        daemon.wait()
        assert daemon.export() == built_at_once(list(stream.left.values()))
        buried = dead(cluster.read(letters))
        assert len(buried) == stream.poison > 0
        assert len(set(buried)) == len(buried)
        until(
            lambda: cluster.committed(f"group-{topic}", topic) == positions(daemon),
            "the group's offsets are the store's",
        )
        assert sum(positions(daemon).values()) == stream.sent
        lags = [daemon.metric("hippod_kafka_lag", topic=topic, partition=str(n)) for n in range(PARTITIONS)]
        assert lags == [0.0] * PARTITIONS
        assert f'hippod_kafka_lag{{partition="0",topic="{topic}"}}' in daemon.http.get("/metrics").text


def test_a_dead_letter_that_was_sent_before_the_crash_is_not_sent_again(cluster, tmp_path):
    topic, letters = cluster.topic(1), cluster.topic(1)
    cluster.send(topic, "{broken")
    cluster.send(topic, article(1))
    cluster.flush()
    with following(tmp_path, cluster, topic, dead_letter=letters) as daemon:
        until(lambda: dead(cluster.read(letters)), "the letter is sent")
        daemon.kill()
        daemon.start()
        daemon.wait()
        assert dead(cluster.read(letters)) == [(topic, 0, 0)]
    # A store without positions reads everything again, and finds the existing dead letter.
    with following(tmp_path / "other", cluster, topic, group="another", dead_letter=letters) as daemon:
        daemon.wait()
        assert dead(cluster.read(letters)) == [(topic, 0, 0)]
        assert positions(daemon) == {0: 2}


def test_different_message_at_the_same_offset_is_sent_to_dead_letters(cluster):
    topic, letters = "made-anew", cluster.topic(1)
    first = KafkaMessage(
        topic, 0, 0, 1, b"x", b"{broken one", (("trace", b"t"), ("none", None), ("hippod-group", b"g"))
    )
    # Messages of a recreated topic at the same place: they differ in the value, the key, or a header.
    others = [
        replace(first, value=b"{broken two"),
        replace(first, value=None),
        replace(first, key=None),
        replace(first, headers=(("trace", b"u"),)),
    ]
    settings = KafkaSettings(tuple(cluster.brokers.split(",")), (topic,), options=cluster.options)
    for messages, sent in (([first], 1), ([first], 1), (others, 5), ([*others, first], 5)):
        dead_letters = DeadLetters(settings, letters)  # as after a start: it knows only the topic's content
        for _ in range(2):
            assert dead_letters.send([(message, "why") for message in messages]) == [None] * len(messages)
        dead_letters.close()
        assert dead(cluster.read(letters)) == [(topic, 0, 0)] * sent


def test_processing_beyond_the_poll_interval_keeps_group_membership(cluster, tmp_path):
    topic = cluster.topic(2)
    limits = {"max_poll_interval_ms": 6000, "session_timeout_ms": 6000}
    with following(tmp_path, cluster, topic, options=limits) as daemon:
        cluster.send(topic, {"id": "warm", "text": "Ada lives in Rome."})
        cluster.flush()
        daemon.wait()
        children = psutil.Process(daemon.pid).children(recursive=True)
        workers = [child.pid for child in children if "daemon.parser_pool.child_main" in child.cmdline()]
        assert workers
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)  # extraction and parsing stop, as with a hanging model
        for number in range(6_000):
            cluster.send(topic, article(number), key=str(number))
        cluster.flush()
        until(lambda: source(daemon)["paused"], "no more is fetched than can be held")
        stalled = time.monotonic() + 7
        until(lambda: time.monotonic() > stalled, "longer than two polls may be apart")
        assert source(daemon)["rebalances"] == 1
        assert source(daemon)["state"] == "following"
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        assert daemon.wait()["documents"] == 6_001
        assert source(daemon)["rebalances"] == 1
        assert not source(daemon)["paused"]


@pytest.mark.skipif("HIPPOD_TEST_KAFKA" in os.environ, reason="real brokers are not the test's to stop")
def test_broker_outage_ends_with_the_topic_followed_again(cluster, tmp_path):
    topic, letters = cluster.topic(2), cluster.topic(1)
    cluster.send(topic, article(1))
    cluster.flush()
    with following(tmp_path, cluster, topic, dead_letter=letters) as daemon:
        daemon.wait()
        for number in range(2, 30):
            cluster.send(topic, article(number), key=str(number))
        cluster.send(topic, "{broken")
        cluster.flush()
        cluster.mock(do="down", broker=1)
        until(lambda: source(daemon)["state"] == "unreachable", "status says so")
        assert cluster.brokers in source(daemon)["detail"]
        process = psutil.Process(daemon.pid)
        used, since = sum(process.cpu_times()[:2]), time.monotonic()
        until(lambda: time.monotonic() > since + 4, "some seconds without brokers")
        assert sum(process.cpu_times()[:2]) - used < 2, "a busy loop"
        cluster.mock(do="up", broker=1)
        until(lambda: source(daemon)["state"] == "following", "work resumes")
        assert daemon.wait()["documents"] == 29
        assert len(dead(cluster.read(letters))) == 1
        assert daemon.ctl_json("status")["sources"][0]["lag"] == 0


@pytest.mark.skipif("HIPPOD_TEST_KAFKA" in os.environ, reason="real brokers are not the test's to stop")
def test_unreachable_brokers_at_the_start_are_retried(cluster, tmp_path):
    topic = cluster.topic(1)
    cluster.send(topic, article(1))
    cluster.flush()
    cluster.mock(do="down", broker=1)
    with following(tmp_path, cluster, topic) as daemon:
        until(lambda: source(daemon)["state"] == "unreachable", "status says so")
        for _ in range(3):  # an interrupted wait leaves nothing that disturbs the source
            waited = daemon.ctl("wait", "--timeout", "0.3")
            assert waited.code == 5
            assert "is unreachable (no answer from" in waited.err
        asked = {"query": "Which town has moved?", "mode": "dense"}
        assert "Kafka has not reported the length of" in daemon.ask("POST", "/v1/query", json=asked)["note"]
        cluster.mock(do="up", broker=1)
        assert daemon.wait()["documents"] == 1
        until(
            lambda: "note" not in daemon.ask("POST", "/v1/query", json=asked), "an answer leaves nothing out any more"
        )
        assert "error" not in {event["state"] for event in daemon.events("kafka_state")}
        assert source(daemon)["rebalances"] == 1


def test_missing_topic_is_named_and_followed_after_its_creation(cluster, tmp_path):
    there, later = cluster.topic(1), "hippod-later-" + os.urandom(4).hex()
    if not cluster.real:  # mock brokers create every requested topic unless told otherwise
        cluster.topic(2, later)
        cluster.mock(do="error", topic=later, code=UNKNOWN_TOPIC)
    cluster.send(there, article(1))
    cluster.flush()
    with following(tmp_path, cluster, there, later) as daemon:
        until(lambda: source(daemon)["state"] == "missing", "status says so")
        assert later in source(daemon)["detail"]
        until(lambda: daemon.status()["documents"] == 1, "the others are followed")
        if cluster.real:
            cluster.topic(2, later)
        else:
            cluster.mock(do="error", topic=later, code=0)
        cluster.send(later, article(2))
        cluster.flush()
        until(lambda: daemon.status()["documents"] == 2, "it is followed")
        until(lambda: source(daemon)["state"] == "following", "status says so")


def test_a_topic_made_anew_is_read_from_its_beginning(cluster, tmp_path):
    topic = cluster.topic(1)
    for number in range(20):
        cluster.send(topic, article(number))
    cluster.flush()
    with following(tmp_path, cluster, topic) as daemon:
        assert daemon.wait()["documents"] == 20
        assert daemon.stop() == 0
        cluster.delete(topic)
        cluster.topic(1, topic)
        cluster.forget()
        for number in range(18, 23):
            cluster.send(topic, article(number, "Written anew."))
        cluster.flush()
        daemon.start()
        until(lambda: positions(daemon) == {0: 5}, "it is read again")
        assert daemon.status()["documents"] == 23
        assert source(daemon)["lag"] == 0
        daemon.restart()
        until(lambda: positions(daemon) == {0: 5}, "the new place is the store's")


@pytest.mark.skipif("HIPPOD_TEST_KAFKA" in os.environ, reason="real leaders are not the test's to change")
def test_partition_is_followed_after_a_leader_change(tmp_path):
    with Cluster(3) as cluster:
        topic = cluster.topic(1)
        cluster.mock(do="lead", topic=topic, partition=0, broker=1)
        cluster.send(topic, article(1))
        cluster.flush()
        with following(tmp_path, cluster, topic) as daemon:
            assert daemon.wait()["documents"] == 1
            cluster.mock(do="lead", topic=topic, partition=0, broker=2)
            cluster.send(topic, article(2))
            cluster.flush()
            until(lambda: daemon.status()["documents"] == 2, "the new leader is asked")
            until(lambda: source(daemon)["state"] == "following", "the new leader is followed")


def test_refused_login_is_reported_and_retried_slowly(tmp_path):
    options = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "ada",
        "sasl_plain_password": "not-the-word",
    }
    with Refusing() as broker:
        with following(tmp_path, broker, "articles", options=options) as daemon:
            until(lambda: source(daemon)["state"] == "denied", "status says so")
            assert "wrong password" in source(daemon)["detail"]
            before, since = broker.logins, time.monotonic()
            until(lambda: time.monotonic() > since + 4, "some seconds")
            assert broker.logins - before < 20, "a busy loop"
            assert daemon.stop() == 0
        assert "not-the-word" not in daemon.log_text()
