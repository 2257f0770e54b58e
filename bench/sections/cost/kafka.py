"""The Kafka source with mock brokers on loopback: throughput, latency, thirty kills, slow extraction, a broker outage.

Needs the test tools (confluent-kafka). If HIPPOD_TEST_KAFKA names real brokers, they are used instead, and parts that stop
brokers are omitted.
"""

import contextlib
import os
import random
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import psutil

from bench.support.tables import shown, table
from tests.consumers.kafka.cluster import Cluster, dead
from tests.consumers.kafka.following import article, built_at_once, following, positions, source
from tests.consumers.kafka.message_stream import WORDS, Stream, publish
from tests.e2e.real_hippod import Daemon, until

PARTITIONS = 8
MANY = int(os.environ.get("HIPPOD_BENCH_MESSAGES", "20000"))
KILLS = int(os.environ.get("HIPPOD_BENCH_KILLS", "30"))
LATENCY_MESSAGES = 1000
A_SECOND = 50


def run(results: dict[str, Any]) -> str:
    rows = []
    for name, measure in (
        ("throughput", _throughput),
        ("kills", _kills),
        ("latency", _latency),
        ("membership", _membership),
        ("outage", _outage),
    ):
        with Cluster() as cluster, tempfile.TemporaryDirectory(prefix="hippod-bench-") as home:
            if name == "outage" and cluster.real:
                continue
            results[name] = measure(cluster, Path(home))
            rows.append((name, shown(results[name])))
    return table(("what", "measured"), rows)


def _throughput(cluster: Cluster, home: Path) -> dict[str, Any]:
    """Measures messages with triples and the `hash` encoder, from the daemon's start until everything is committed."""
    topic, letters = cluster.topic(PARTITIONS), cluster.topic(1)
    rng = random.Random(1)
    names = [f"{a}{b}" for a in WORDS for b in WORDS]
    for n in range(MANY):
        words = rng.choices(names, k=60)
        triples = [[rng.choice(words), f"is {rng.choice(WORDS)}", rng.choice(words)] for _ in range(4)]
        value = {"id": f"d{n}", "title": f"Title {n}", "text": " ".join(words), "triples": triples}
        cluster.send(topic, value, key=f"d{n}")
    cluster.flush()
    with following(home, cluster, topic, dead_letter=letters) as daemon:
        began = time.perf_counter()
        status = daemon.wait(1200)
        took = time.perf_counter() - began
        assert status["documents"] == MANY
        return {
            "messages": MANY,
            "seconds": round(took, 1),
            "messages_a_second": round(MANY / took),
            "commits": status["commit"],
            "rss_mb": round(status["rss_bytes"] / 1e6),
        }


def _kills(cluster: Cluster, home: Path) -> dict[str, Any]:
    """Runs `kill -9` at random moments while messages arrive; compares the result with a fresh build."""
    topic, letters = cluster.topic(PARTITIONS), cluster.topic(2)
    stream = Stream()
    rng = random.Random(2)
    with following(home, cluster, topic, dead_letter=letters) as daemon:
        for kill in range(KILLS):
            publish(cluster, topic, MANY // KILLS, PARTITIONS, kill, stream)
            cluster.flush()
            time.sleep(rng.uniform(0.0, 4.0))
            daemon.kill()
            daemon.start()
        daemon.wait(1200)
        same = daemon.export() == built_at_once(list(stream.left.values()))
        buried = dead(cluster.read(letters))
        until(lambda: cluster.committed(f"group-{topic}", topic) == positions(daemon), "group offsets are the store's")
        figures = {
            "messages": stream.sent,
            "kills": KILLS,
            "documents_left": len(stream.left),
            "export_equals_built_at_once": same,
            "poison": stream.poison,
            "dead_letters": len(buried),
            "of_them_different": len(set(buried)),
            "group_offsets_equal_stored": True,
        }
        assert same and len(buried) == len(set(buried)) == stream.poison, figures
        return figures


def _latency(cluster: Cluster, home: Path) -> dict[str, Any]:
    """Measures the time from producing a message (one every 20 ms) until a query finds it, with packaged encoder and
    extractor."""
    topic = cluster.topic(PARTITIONS)
    sent: dict[str, float] = {}
    seen: dict[str, float] = {}
    with following(home, cluster, topic, sections={"encoder": {"backend": "sentence-transformers"}}) as daemon:
        cluster.send(topic, {"id": "warm", "text": "Ada Lovelace lived in London."})
        cluster.flush()
        daemon.wait()

        def watch() -> None:
            # A query reads the last commit, so a query that begins after the commit's event finds its passages.
            transport = httpx2.HTTPTransport(uds=str(daemon.socket))
            with (
                contextlib.suppress(httpx2.TransportError),  # the daemon ends, and the stream with it
                httpx2.Client(transport=transport, base_url="http://h") as http,
                http.stream("GET", "/v1/events", timeout=None) as events,
            ):
                for line in events.iter_lines():
                    if '"indexed"' in line:
                        for uri in (part for part in line.split('"') if part.startswith("kafka://")):
                            seen.setdefault(uri, time.perf_counter())

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        time.sleep(0.5)
        rng = random.Random(3)
        began = time.perf_counter()
        for n in range(LATENCY_MESSAGES):
            names = rng.sample(WORDS, 4)
            founder, city, river, _ = (name.title() for name in names)
            text = f"{founder} {n} founded the city of {city} in {1000 + n}. It lies on the {river}."
            time.sleep(max(0.0, began + n / A_SECOND - time.perf_counter()))
            sent[f"kafka://{topic}/m{n}"] = time.perf_counter()
            cluster.send(topic, {"id": f"m{n}", "title": f"Note {n}", "text": text}, key=str(n))
            cluster.producer.poll(0)
        cluster.flush()
        produced = time.perf_counter() - began
        daemon.wait(300)
        until(lambda: len(seen) >= len(sent), "all events have come")
        cpu = _cpu(daemon)
        stages = {
            stage: round(daemon.metric("hippod_stage_seconds_sum", stage=stage), 1)
            for stage in ("extract", "encode", "commit")
        }
        [found] = daemon.query("who founded a city in 1042?", k=1)
        assert found["document"].startswith(f"kafka://{topic}/m")
    took = sorted(seen[uri] - sent[uri] for uri in sent)
    return {
        "messages": len(took),
        "sent_a_second": round(len(took) / produced, 1),
        "p50_s": round(took[len(took) // 2], 2),
        "p95_s": round(took[int(len(took) * 0.95)], 2),
        "max_s": round(took[-1], 2),
        "cpu_s": cpu,
        "stages_s": stages,
    }


def _membership(cluster: Cluster, home: Path) -> dict[str, Any]:
    """Stops extraction for a minute, three times the allowed interval between polls."""
    topic = cluster.topic(2)
    options = {"max_poll_interval_ms": 20_000, "session_timeout_ms": 20_000}
    with following(home, cluster, topic, options=options) as daemon:
        cluster.send(topic, {"id": "warm", "text": "Ada lives in Rome."})
        cluster.flush()
        daemon.wait()
        workers = _workers(daemon)
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        try:
            for n in range(200):
                cluster.send(topic, {"id": f"m{n}", "text": f"Bob {n} lives in Oslo."}, key=str(n))
            cluster.flush()
            time.sleep(55)  # below the limit after which a hanging extractor is killed
        finally:
            for pid in workers:
                os.kill(pid, signal.SIGCONT)
        status = daemon.wait(300)
        figures = {"stalled_s": 55, "documents": status["documents"], "rebalances": source(daemon)["rebalances"]}
        assert figures["rebalances"] == 1 and figures["documents"] == 201, figures
        return figures


def _outage(cluster: Cluster, home: Path) -> dict[str, Any]:
    """Stops the broker for a minute."""
    topic = cluster.topic(2)
    with following(home, cluster, topic) as daemon:
        cluster.send(topic, article(0))
        cluster.flush()
        daemon.wait()
        for n in range(1, 500):
            cluster.send(topic, article(n), key=str(n))
        cluster.flush()
        cluster.mock(do="down", broker=1)
        process = psutil.Process(daemon.pid)
        used = sum(process.cpu_times()[:2])
        time.sleep(60)
        used = sum(process.cpu_times()[:2]) - used
        cluster.mock(do="up", broker=1)
        began = time.perf_counter()
        until(lambda: daemon.status()["documents"] == 500, "all is there")
        return {
            "away_s": 60,
            "all_indexed_after_s": round(time.perf_counter() - began, 1),
            "cpu_share_meanwhile": round(used / 60, 3),
        }


def _cpu(daemon: Daemon) -> float:
    """Returns the processor seconds of the daemon and its workers so far."""
    process = psutil.Process(daemon.pid)
    return round(sum(sum(each.cpu_times()[:2]) for each in (process, *process.children(recursive=True))), 1)


def _workers(daemon: Daemon) -> list[int]:
    children = psutil.Process(daemon.pid).children(recursive=True)
    return [child.pid for child in children if "daemon.parser_pool.child_main" in child.cmdline()]
