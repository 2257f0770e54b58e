"""hippod-worker reads articles and sends records; a kill and restart loses and doubles none."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
import tomli_w

pytest.importorskip("confluent_kafka")

from consumers.json_documents import read_json_document
from consumers.records.messages import part_of, position_of, uri_of
from consumers.records.reader import from_message
from consumers.splitting import SplitSettings
from daemon.pipeline.work_items import DeliveredDocument
from tests.consumers.kafka.cluster import Cluster, dead
from tests.consumers.kafka.test_records_topic import Replica
from tests.daemon.pipeline.test_records import ENCODER, Rules, running

pytestmark = [
    pytest.mark.broker,
    pytest.mark.daemon,
    pytest.mark.may_rerun("members of a group and lost brokers are told apart by timers of seconds"),
]
ROOT = Path(__file__).parents[3]
PROCESSES: list[subprocess.Popen[bytes]] = []


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        yield cluster


def configured(home, cluster, topic, output, **more):
    home.mkdir(exist_ok=True)
    worker = {
        "brokers": cluster.brokers.split(","),
        "topics": [topic],
        "group": f"workers-{topic}",
        "output": output,
        "options": {**cluster.sender_options, "session_timeout_ms": 6000, "heartbeat_interval_ms": 500},
        **more,
    }
    encoder = {"backend": "hash", "model": "64"}
    file = home / "worker.toml"
    file.write_text(
        tomli_w.dumps({"worker": worker, "encoder": encoder, "passages": {"max_tokens": 60, "min_tokens": 10}})
    )
    return file


@pytest.fixture(autouse=True)
def ended():
    """Ends processes that a failed test has left running."""
    yield
    while PROCESSES:
        process = PROCESSES.pop()
        process.kill()
        process.wait()


def started(file):
    environment = {**os.environ, "HOME": str(file.parent), "PYTHONPATH": str(ROOT)}
    with (file.parent / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "daemon.worker_main", "--config", str(file)], stderr=log, env=environment
        )
    PROCESSES.append(process)
    return process


def until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, what
        time.sleep(0.2)
    return found


def article(number):
    names = ("Ada Lovelace", "Charles Babbage", "Mary Somerville")
    text = f"{names[number % 3]} wrote letter {number} to {names[(number + 1) % 3]}. Ada Lovelace lived in London."
    return {"id": f"a{number}", "title": f"Letter {number}", "text": text, "labels": ["letters"]}


@pytest.mark.skipif("HIPPOD_TEST_KAFKA" in os.environ, reason="real brokers are not the test's to stop")
def test_worker_without_partitions_reports_unreachable_brokers_and_resumes(cluster, tmp_path):
    topic, output = cluster.topic(1), cluster.topic(1)
    logs, workers = [], []
    for name in ("a", "b"):
        workers.append(started(configured(tmp_path / name, cluster, topic, output)))
        logs.append(tmp_path / name / "log")
        until(lambda log=logs[-1]: '"following"' in log.read_text(), "it joins the group")
    cluster.mock(do="down", broker=1)
    try:
        until(lambda: all('"unreachable"' in log.read_text() for log in logs), "both say so")
        processes = [psutil.Process(worker.pid) for worker in workers]
        used, since = [sum(each.cpu_times()[:2]) for each in processes], time.monotonic()
        until(lambda: time.monotonic() > since + 4, "some seconds without brokers")
        spent = [sum(each.cpu_times()[:2]) - before for each, before in zip(processes, used, strict=True)]
        assert max(spent) < 2, "a busy loop"
    finally:
        cluster.mock(do="up", broker=1)
    cluster.send(topic, article(1), key="a1")
    cluster.flush()
    until(lambda: cluster.read(output), "one of them goes on")


def test_killed_and_restarted_worker_loses_and_duplicates_nothing(cluster, tmp_path):
    topic, output, letters = cluster.topic(2), cluster.topic(2), cluster.topic(1)
    for number in range(120):
        cluster.send(topic, article(number), key=f"a{number}")
        if number == 20:
            cluster.send(topic, "{broken", key="poison")
    for number in range(5):
        cluster.send(topic, None, key=f"a{number}")
    cluster.flush()
    port = 20000 + os.getpid() % 20000
    listen = f"127.0.0.1:{port}"
    file = configured(tmp_path, cluster, topic, output, dead_letter=letters, message_bytes=20_000, listen=listen)
    first = started(file)
    until(lambda: len(cluster.read(output)) > 10, "the first worker sends nothing")
    first.send_signal(signal.SIGKILL)
    first.wait()

    second = started(file)
    other = started(configured(tmp_path / "other", cluster, topic, output, dead_letter=letters, message_bytes=20_000))
    until(lambda: '"following"' in (tmp_path / "other" / "log").read_text(), "the second of two gets no partition")
    for number in range(120, 160):
        cluster.send(topic, article(number), key=f"a{number}")
    cluster.flush()
    other.send_signal(signal.SIGTERM)
    assert other.wait(20) == 0, "the group goes on with one"
    ends = {n: sum(1 for m in cluster.read(topic) if m.partition() == n) for n in range(2)}
    until(lambda: cluster.committed(f"workers-{topic}", topic) == ends, "the group does not reach the end")
    health = urllib.request.urlopen(f"http://{listen}/healthz").read().decode()
    assert '"state":"ready"' in health and '"problem":null' in health
    assert 'hippod_records_total{state="indexed"}' in urllib.request.urlopen(f"http://{listen}/metrics").read().decode()
    began = time.monotonic()
    second.send_signal(signal.SIGTERM)
    assert second.wait(20) == 0
    assert time.monotonic() - began < 15

    messages = cluster.read(output)
    sent = {uri_of(message.key()) for message in messages}
    assert sent == {f"kafka://{topic}/a{number}" for number in range(160)}
    assert all(position_of(tuple(message.headers())) is not None for message in messages)
    assert len(dead(cluster.read(letters))) == 1, "the poison message costs itself, once"

    async def scenario():
        async with Replica(tmp_path / "a", cluster, output) as replica:
            export = await replica.caught_up()
            assert len(replica.store.documents()) == 155

        whole = [m for m in messages if m.value() is not None and part_of(tuple(m.headers())) is None]
        assert all(record.vectors is not None and record.is_read for record in (from_message(m.value()) for m in whole))

        async def by_files(pipeline):
            for number in range(5, 160):
                document = read_json_document(article(number), "file:///", None, SplitSettings(60, 10))
                await pipeline.deliver(DeliveredDocument(document.uri, document), "files")

        expected, _, _ = await running(tmp_path / "fresh", by_files, Rules(), ENCODER)
        assert export == expected

    asyncio.run(scenario())


def test_a_wrong_configuration_is_refused_with_its_key(cluster, tmp_path):
    file = tmp_path / "worker.toml"
    file.write_text('[worker]\ntopics = ["a"]\noutput = "a"\noptions = {no_such = 1}\n')
    found = subprocess.run(
        [sys.executable, "-m", "daemon.worker_main", "--config", str(file), "--check"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert found.returncode == 2
    assert 'worker.output = "a"' in found.stderr and "worker.options.no_such" in found.stderr
