"""Several machines: parallel workers, random kills of workers and replicas, an interrupted backup.

With `--simulate`: the cost of 100 million articles at the rates of this machine. Uses mock brokers, or the brokers in
HIPPOD_TEST_KAFKA; `make bench-fleet` uses Tansu. Needs the test tools (confluent-kafka, moto). HIPPOD_BENCH_MESSAGES (5000) and
HIPPOD_BENCH_KILLS (30) give the amounts; HIPPOD_BENCH_PARTS selects parts (`workers,kills,backups`).
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w
from pyarrow import fs

from bench.support.fleet_simulation import simulate
from bench.support.tables import shown, table
from tests.consumers.kafka.cluster import Cluster, dead
from tests.consumers.kafka.following import QUICK, built_at_once, following, positions
from tests.consumers.kafka.message_stream import Stream, publish
from tests.e2e.real_hippod import Daemon, clean_environment, until
from tests.memory.llm.model_server import ModelServer, obedient
from tests.store.backup.s3_server import BreakingProxy, s3_server

PARTITIONS = 6
MESSAGES = int(os.environ.get("HIPPOD_BENCH_MESSAGES", "5000"))
KILLS = int(os.environ.get("HIPPOD_BENCH_KILLS", "30"))
PARTS = os.environ.get("HIPPOD_BENCH_PARTS", "workers,kills,backups").split(",")
CALL_S = 1.0
CALLS_AT_ONCE = 4
"""Number of concurrent calls of each worker. Its model server answers this number of calls in the time of one call."""
SLOW_ARTICLES = 96
LEAST_GAIN = 2.7
PATIENCE_S = 900.0
CUT_CONNECTIONS = 12


def run(results: dict[str, Any]) -> str:
    if results.get("options", {}).get("simulate"):
        return simulate(results)
    rows = []
    for name, measure in (("workers", _workers), ("kills", _kills), ("backups", _backups)):
        if name not in PARTS:
            continue
        with Cluster() as cluster, tempfile.TemporaryDirectory(prefix="hippod-bench-") as home:
            results[name] = measure(cluster, Path(home), results.setdefault("violations", []))
            rows.append((name, shown(results[name])))
    return table(("what", "measured"), rows)


class _WorkerProcess:
    """A real hippod-worker."""

    def __init__(self, home: Path, cluster: Cluster, topic: str, output: str, **sections: Any) -> None:
        home.mkdir()
        self._home = home
        worker = {
            "brokers": cluster.brokers.split(","),
            "topics": [topic],
            "group": f"workers-{topic}",
            "output": output,
            "options": {**cluster.options, **QUICK},
            **sections.pop("worker", {}),
        }
        tables = {"worker": worker, "encoder": {"backend": "hash"}, **sections}
        (home / "worker.toml").write_text(tomli_w.dumps(tables))
        self.start()

    def start(self) -> None:
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "daemon.worker_main", "--config", str(self._home / "worker.toml")],
                stderr=log,
                env=clean_environment(self._home),
            )

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def _workers(cluster: Cluster, home: Path, violations: list[str]) -> dict[str, Any]:
    """Measures the articles per second of one worker and of three workers. Each worker has its own model server, which takes a
    second per call."""
    rates = {}
    for count in (1, 3):
        topic, output = cluster.topic(PARTITIONS), cluster.topic(PARTITIONS)
        for number in range(SLOW_ARTICLES * count):
            value = {"title": f"Town {number}", "text": f"Town {number} lies on river {number}."}
            cluster.send(topic, value, key=str(number), partition=number % PARTITIONS)
        cluster.flush()
        servers = [ModelServer(obedient, latency_s=CALL_S).start() for _ in range(count)]
        workers = []
        try:
            for number, server in enumerate(servers):
                llm = {"base_url": server.url, "model": "test-model"}
                openie = {"backend": "llm", "concurrency": CALLS_AT_ONCE}
                place = home / f"{count}-{number}"
                workers.append(_WorkerProcess(place, cluster, topic, output, llm=llm, openie=openie))
            _read_all(cluster, output, SLOW_ARTICLES * count)
        finally:
            for worker in workers:
                worker.kill()
            for server in servers:
                server.close()
        # Only the middle half counts: workers are starting before it and may be idle after it.
        times = sorted(message.timestamp()[1] / 1000 for message in cluster.read(output))
        first, last = len(times) // 4, 3 * len(times) // 4
        rates[count] = (last - first) / (times[last] - times[first])
    gain = rates[3] / rates[1]
    if gain < LEAST_GAIN:
        violations.append(f"three workers read {gain:.2f} times what one reads, not {LEAST_GAIN}")
    one, three = round(rates[1], 2), round(rates[3], 2)
    return {"call_s": CALL_S, "one_a_second": one, "three_a_second": three, "gain": round(gain, 2)}


def _read_all(cluster: Cluster, output: str, count: int) -> None:
    until(lambda: len(cluster.read(output)) >= count, f"{count} articles are read", PATIENCE_S, 1.0)


def _kills(cluster: Cluster, home: Path, violations: list[str]) -> dict[str, Any]:
    """Runs `kill -9` on two workers and two replicas at random while messages arrive; compares the result with a fresh
    build."""
    topic, output, letters = cluster.topic(PARTITIONS), cluster.topic(PARTITIONS), cluster.topic(1)
    stream, dice = Stream(), random.Random(2)
    workers = [
        _WorkerProcess(home / f"worker-{n}", cluster, topic, output, worker={"dead_letter": letters}) for n in range(2)
    ]
    with (
        following(home / "a", cluster, output, group="a", format="records") as first,
        following(home / "b", cluster, output, group="b", format="records") as second,
    ):
        replicas: list[Daemon] = [first, second]
        killed: list[_WorkerProcess | Daemon] = [*workers, *replicas]
        for kill in range(KILLS):
            publish(cluster, topic, MESSAGES * (kill + 1) // KILLS - stream.sent, PARTITIONS, kill, stream)
            cluster.flush()
            time.sleep(dice.uniform(0.0, 4.0))
            victim = dice.choice(killed)
            victim.kill()
            victim.start()
        ends, group = _ends(cluster, topic), f"workers-{topic}"
        until(lambda: cluster.committed(group, topic) == ends, "the workers have sent all", PATIENCE_S, 1.0)
        for worker in workers:
            worker.kill()
        ends = _ends(cluster, output)
        for replica in replicas:
            # `hippoctl wait` does not suffice: it asks the broker for the end offsets, which are too low in Tansu.
            until(partial(_reached, replica, ends), "a replica has applied all", PATIENCE_S, 1.0)
            replica.wait(PATIENCE_S)
        exports = [replica.export() for replica in replicas]
    expected = built_at_once(list(stream.left.values()))
    buried = dead(cluster.read(letters))
    same = exports[0] == exports[1] == expected
    if not same:
        violations.append("the exports of two replicas and of a fresh build differ")
    if len(set(buried)) != stream.poison:
        violations.append(f"{stream.poison} messages cannot be read, {len(set(buried))} are dead letters")
    return {
        "broker": "of another make" if cluster.real else "mock",
        "messages": stream.sent,
        "kills": KILLS,
        "records_sent": len(cluster.read(output)),
        "documents_left": len(stream.left),
        "exports_equal": same,
        "poison": stream.poison,
        "dead_letters": len(set(buried)),
    }


def _ends(cluster: Cluster, topic: str) -> dict[int, int]:
    """Reads the topic; returns the offset after the last message of each partition with messages."""
    ends: dict[int, int] = {}
    for message in cluster.read(topic):
        partition, offset = message.partition(), message.offset()
        assert partition is not None and offset is not None  # every message that was read has a partition and an offset
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    return ends


def _reached(replica: Daemon, ends: dict[int, int]) -> bool:
    return {number: at for number, at in positions(replica).items() if number in ends} == ends


def _backups(_cluster: Cluster, home: Path, violations: list[str]) -> dict[str, Any]:
    """Backs up three times to an S3 server over a failing connection, with changes between the backups. The restored store must
    equal the original."""
    with s3_server() as port:
        proxy = BreakingProxy(port)
        os.environ |= {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}",
            "AWS_ACCESS_KEY_ID": "bench",
            "AWS_SECRET_ACCESS_KEY": "bench",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

        fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True).create_dir(
            "memories"
        )
        stream, sent = Stream(), []
        with Daemon(home / "one", folders=()) as daemon:
            for turn in range(3):
                documents = [
                    {"id": f"d{turn}-{n}", "title": f"Town {n}", "text": f"Town {n} of turn {turn} lies on river {n}."}
                    for n in range(300 >> turn)
                ]
                daemon.add(*documents)
                daemon.wait()
                proxy.direction, proxy.after, proxy.breaks = "up", 2000, CUT_CONNECTIONS
                sent.append(daemon.ctl_json("backup", "s3://memories/bench"))
                stream.sent += len(documents)
            expected = daemon.export()
            daemon.stop()
            for path in list(daemon.store.iterdir()):
                if path.is_dir():
                    path.rename(home / f"aside-{path.name}")
            proxy.direction, proxy.breaks = "down", CUT_CONNECTIONS
            back = daemon.ctl("restore", "s3://memories/bench", "--config", str(daemon.config))
            daemon.start()
            same = back.code == 0 and daemon.export() == expected
        proxy.close()
    if not same:
        violations.append(f"the backup does not come back equal: {back.err}")
    return {
        "documents": stream.sent,
        "files_sent": [each["sent"] for each in sent],
        "megabytes_sent": [round(each["sent_bytes"] / 1e6, 2) for each in sent],
        "megabytes_held": [round(each["bytes"] / 1e6, 2) for each in sent],
        "connections_cut": proxy.broken,
        "comes_back_equal": same,
    }
