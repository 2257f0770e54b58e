"""The effect of `as_of` queries on other queries: latency with and without three concurrent readers of earlier commits.

The real daemon has `HIPPOD_BENCH_AS_OF` commits (300) after a first index of five times as many passages. Each reader queries a
random commit, so most commits must be loaded. Rounds with and without the readers alternate.
"""

import os
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.support.followed_folder import percentiles, table
from bench.support.synthetic_documents import World
from tests.e2e.real_hippod import Daemon, until

PASSAGES_A_COMMIT = 5
READERS = 3
ROUNDS = 4
QUERIES = 60
"""Queries in each round, with and without readers."""
RATIO_MOST = 1.5
"""Maximum ratio of the p95 with readers to the p95 without."""


def run(results: dict[str, Any]) -> str:
    commits = int(os.environ.get("HIPPOD_BENCH_AS_OF", "300"))
    passages = PASSAGES_A_COMMIT * commits
    with tempfile.TemporaryDirectory(prefix="hippod-bench-") as folder:
        daemon = Daemon(Path(folder), encoder={"backend": "sentence-transformers"})
        texts = [text for _title, text, _triples in World().passages(passages + commits)]
        for number, text in enumerate(texts[:passages]):
            daemon.write(f"{number % 40}/{number}.txt", text)
        with daemon:
            until(lambda: daemon.status()["documents"] == passages, "the first index is done", 3600, pause_s=1)
            first = daemon.status()["commit"]
            for number, text in enumerate(texts[passages:]):
                daemon.add({"id": str(number), "text": text})
                daemon.wait()
            _measure(daemon, first, texts, results)
    ratio = results["ratio_p95"]
    results["violations"] = [] if ratio <= RATIO_MOST else [f"p95 is {ratio} times as long, {RATIO_MOST} is the most"]
    measured = {
        "queries alone": results["alone_ms"],
        f"queries beside {READERS} readers of the past": results["beside_ms"],
        "the readers' questions": results["as_of_ms"],
    }
    head = (f"{passages:,} passages, {commits:,} commits", "n", "p50 ms", "p95 ms")
    rows = [(name, str(each["n"]), f"{each['p50']:.0f}", f"{each['p95']:.0f}") for name, each in measured.items()]
    return table(head, rows) + f"\n\np95 beside the readers / p95 alone: {ratio}"


def _measure(daemon: Daemon, first: int, texts: list[str], results: dict[str, Any]) -> None:
    last = daemon.status()["commit"]
    alone: list[float] = []
    beside: list[float] = []
    as_of: list[float] = []
    for text in texts[:20]:
        _ask(daemon, text)
    for turn in range(ROUNDS):
        questions = texts[turn * QUERIES : (turn + 1) * QUERIES]
        alone += [_ask(daemon, text) for text in questions]
        over = threading.Event()
        readers = [
            threading.Thread(target=_read_past, args=(daemon, first, last, texts, over, as_of, turn * READERS + number))
            for number in range(READERS)
        ]
        for each in readers:
            each.start()
        time.sleep(1.0)  # until all readers wait for a commit
        beside += [_ask(daemon, text) for text in questions]
        over.set()
        for each in readers:
            each.join()
    results["alone_ms"], results["beside_ms"] = percentiles(alone), percentiles(beside)
    results["as_of_ms"] = percentiles(as_of)
    results["ratio_p95"] = round(float(np.percentile(beside, 95) / np.percentile(alone, 95)), 2)


def _ask(daemon: Daemon, text: str, **more: Any) -> float:
    """Returns the milliseconds of one query in the default mode."""
    began = time.perf_counter()
    daemon.ask("POST", "/v1/query", json={"query": " ".join(text.split()[:12]), **more})
    return (time.perf_counter() - began) * 1000


def _read_past(
    daemon: Daemon, first: int, last: int, texts: list[str], over: threading.Event, took: list[float], seed: int
) -> None:
    chosen = random.Random(seed)
    while not over.is_set():
        took.append(_ask(daemon, chosen.choice(texts), as_of=chosen.randrange(first, last)))
