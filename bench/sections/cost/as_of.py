"""The effect of `as_of` queries on other queries: latency with and without three concurrent readers of earlier commits.

Two real daemons make 150 and `HIPPOD_BENCH_AS_OF` (300) commits. Before, each daemon indexes five passages per later commit.
Each reader queries a random commit, so most commits must be loaded. Short rounds with and without the readers alternate, so
that other work on the machine slows both kinds equally.
"""

import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.support.measuring import repeated
from bench.support.synthetic_documents import World
from bench.support.tables import percentiles, table
from tests.e2e.real_hippod import Daemon, until

COMMITS = (150, int(os.environ.get("HIPPOD_BENCH_AS_OF", "300")))
PASSAGES_A_COMMIT = 5
READERS = 3
ROUNDS = 16
QUERIES = 20
"""Number of queries in each half of a round. No query is repeated, because the encoder caches them."""
RATIO_MOST = 1.5
"""Maximum ratio of the p95 with readers to the p95 without readers."""


def run(results: dict[str, Any]) -> str:
    results["violations"] = []
    return "\n\n".join(_memory(commits, results) for commits in COMMITS)


def _memory(commits: int, results: dict[str, Any]) -> str:
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
            alone, beside, as_of = measure(daemon, first, texts)
    ratio = round(float(np.percentile(beside, 95) / np.percentile(alone, 95)), 2)
    measured = {"alone_ms": percentiles(alone), "beside_ms": percentiles(beside), "as_of_ms": percentiles(as_of)}
    results[f"{passages} passages"] = {**measured, "ratio_p95": ratio}
    if ratio > RATIO_MOST:
        results["violations"].append(f"{passages} passages: p95 is {ratio} times as long, {RATIO_MOST} is the most")
    names = ("queries alone", f"queries beside {READERS} readers of the past", "the readers' questions")
    head = (f"{passages:,} passages, {commits:,} commits", "n", "p50 ms", "p95 ms")
    rows = [
        (name, each["n"], f"{each['p50']:.0f}", f"{each['p95']:.0f}")
        for name, each in zip(names, measured.values(), strict=True)
    ]
    return table(head, rows) + f"\n\np95 beside the readers / p95 alone: {ratio}"


def measure(daemon: Daemon, first: int, texts: list[str]) -> tuple[list[float], list[float], list[float]]:
    """Returns milliseconds in three lists: queries alone, queries with concurrent readers, the readers' queries of commits from
    `first` on."""
    last = daemon.status()["commit"]
    alone: list[float] = []
    beside: list[float] = []
    as_of: list[float] = []
    for text in texts[:20]:
        _ask(daemon, text)
    for turn in range(ROUNDS):
        questions = texts[2 * turn * QUERIES : 2 * (turn + 1) * QUERIES]
        alone += [_ask(daemon, text) for text in questions[:QUERIES]]
        chosen = random.Random(turn)

        def read(chosen: random.Random = chosen) -> None:
            as_of.append(_ask(daemon, chosen.choice(texts), as_of=chosen.randrange(first, last)))

        with repeated(*[read] * READERS):
            time.sleep(1.0)  # until every reader waits for a commit
            beside += [_ask(daemon, text) for text in questions[QUERIES:]]
    return alone, beside, as_of


def _ask(daemon: Daemon, text: str, **more: Any) -> float:
    """Returns the milliseconds of one query in the default mode."""
    began = time.perf_counter()
    daemon.ask("POST", "/v1/query", json={"query": " ".join(text.split()[:12]), **more})
    return (time.perf_counter() - began) * 1000
