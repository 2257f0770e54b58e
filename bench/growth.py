"""How cost follows the change: loads, single changes, queries, memory and starts at growing sizes.

Synthetic documents with triples (`bench.synthetic`) and the `hash` encoder, so that what is measured is the store and the
walk. `HIPPOD_BENCH_SIZES` (passages, by default 2000,20000,100000) limits how far it goes: 100,000 take some ten minutes.
Each size is loaded and asked in a process of its own, so that one's memory is not another's.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 500
SINGLES = 60
QUERIES = 60
RATE = 20
"""Passages a second that are added while queries are timed."""


def run(results: dict[str, Any]) -> str:
    sizes = [int(size) for size in os.environ.get("HIPPOD_BENCH_SIZES", "2000,20000,100000").split(",")]
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="hippod-growth-") as folder:
            found: dict[str, Any] = {}
            for step in ("load", "ask"):
                command = [sys.executable, "-m", "bench.growth", step, folder, str(size)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found |= json.loads(done.stdout.splitlines()[-1])
            rows.append({"passages": size} | found)
    results["sizes"] = rows
    results["commits"] = _many_commits()
    names = list(rows[-1])
    lines = ["| | " + " | ".join(f"{row['passages']:,}" for row in rows) + " |", "| --- |" + " --- |" * len(rows)]
    lines += [
        f"| {name.replace('_', ' ')} | " + " | ".join(str(row[name]) for row in rows) + " |" for name in names[1:]
    ]
    commits = results["commits"]
    lines += [
        "",
        f"After {commits['commits']:,} commits of one passage the store has {commits['size_ratio']} x the bytes of one",
    ]
    lines += [f"bulk build of the same passages, and a query takes {commits['query_ratio']} x as long."]
    return "\n".join(lines)


def _open(folder: Path) -> Any:
    from memory.encoder import make_encoder
    from store.store import Store

    encoder = make_encoder("hash", "", 64, "cpu")
    encoder.encode(["warm"])
    return Store(folder, encoder.identity), encoder


def _commit(store: Any, encoder: Any, documents: list[Any], removed: tuple[str, ...] = ()) -> None:
    from memory.indexing import with_vectors
    from store.types import Batch

    batch = Batch(tuple(d for d, _ in documents), removed, tuple(p for _, p in documents))
    store.commit(with_vectors(store, encoder, batch))


def load(folder: Path, size: int) -> dict[str, Any]:
    """Loads `size` passages in bulk and writes them down."""
    from bench.synthetic import World, document

    store, encoder = _open(folder)
    stream = World().passages(size)
    times = [0.0]
    for start in range(0, size, BATCH):
        batch = [document(start + i, *passage) for i, passage in enumerate(stream_part(stream, BATCH))]
        began = time.perf_counter()
        _commit(store, encoder, batch)
        times.append(times[-1] + time.perf_counter() - began)
    tenth = max(len(times) // 10, 1)
    snapshot = store.snapshot()
    began = time.perf_counter()
    store.save()
    found = {
        "phrases": snapshot.living_phrases,
        "triples": snapshot.living_triples,
        "synonym_edges": snapshot.edges["synonym"],
        "load_passages_a_second": round(size / times[-1]),
        "last_tenth_to_first": round((times[-1] - times[-1 - tenth]) / times[tenth], 2),
        "snapshot_written_s": round(time.perf_counter() - began, 1),
        "rss_after_load_mb": _rss(),
    }
    store.close()
    return found


def stream_part(stream: Any, count: int) -> list[Any]:
    return [passage for passage, _ in zip(stream, range(count), strict=False)]


def ask(folder: Path, _: int) -> dict[str, Any]:
    """Starts on what `load` left; single changes and queries."""
    from bench.synthetic import World, document
    from memory.retrieval import RetrievalSettings, retrieve
    from store.recall import synonym_recall

    began = time.perf_counter()
    store, encoder = _open(folder)
    found: dict[str, Any] = {
        "start_s": round(time.perf_counter() - began, 1),
        "started_from": store.started.split(" of")[0],
    }
    fresh = World(seed=1).passages(10**9)
    phrases = [store.snapshot().phrase(int(row)) for row in np.linspace(0, store.snapshot().n_phrases - 1, 2 * QUERIES)]
    questions = [f"{a} {b}" for a, b in pairwise(phrases)][::2]

    def add(i: int) -> None:
        _commit(store, encoder, [document(10**8 + i, *next(fresh))])

    def edit(i: int) -> None:
        _commit(store, encoder, [document(i, *next(fresh))])

    def query(i: int) -> None:
        retrieve(store.snapshot(), encoder, questions[i % len(questions)], "hipporag2", 5, RetrievalSettings())

    query(0)
    found["query_ms_p50_p95"] = _timed(query, QUERIES)
    found["add_ms_p50_p95"] = _timed(add, SINGLES)
    found["edit_ms_p50_p95"] = _timed(edit, SINGLES)
    found["remove_ms_p50_p95"] = _timed(lambda i: _commit(store, encoder, [], (f"added:{10**8 + i}",)), SINGLES)
    stop = threading.Event()
    added = [0]

    def adding() -> None:
        due = time.monotonic()
        while not stop.is_set():
            add(10**6 + added[0])
            added[0] += 1
            due += 1 / RATE
            time.sleep(max(0.0, due - time.monotonic()))

    writer = threading.Thread(target=adding)
    began = time.perf_counter()
    writer.start()
    found["query_while_adding_ms_p50_p95"] = _timed(query, QUERIES)
    stop.set()
    writer.join()
    found["added_a_second_meanwhile"] = round(added[0] / (time.perf_counter() - began), 1)
    recall = synonym_recall(store.snapshot(), store.rule, 500)
    found["synonym_recall"] = f"{recall.share:.4f} of {recall.pairs} pairs"
    found["rss_mb"] = _rss()
    store.close()
    return found


def _many_commits(count: int = int(os.environ.get("HIPPOD_BENCH_COMMITS", "5000"))) -> dict[str, Any]:
    """One store from `count` commits with upkeep now and then, beside one built at once."""
    from bench.synthetic import World, document
    from memory.retrieval import RetrievalSettings, retrieve

    passages = list(World().passages(count))
    sizes, speeds = [], []
    for batch in (count, 1):
        with tempfile.TemporaryDirectory(prefix="hippod-growth-") as place:
            folder = Path(place)
            store, encoder = _open(folder)
            for start in range(0, count, batch):
                part = passages[start : start + batch]
                _commit(store, encoder, [document(start + i, *passage) for i, passage in enumerate(part)])
                if start % 500 == 499:
                    store.compact(64)
            store.compact(safe=timedelta(0))
            store.purge(timedelta(0))
            store.save()

            def query(i: int, store: Any = store, encoder: Any = encoder) -> None:
                retrieve(store.snapshot(), encoder, passages[17 * i % count][0], "hipporag2", 5, RetrievalSettings())

            query(0)
            speeds.append(_timed(query, QUERIES)[0])
            store.close()
            sizes.append(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))
    return {
        "commits": count,
        "bulk_mb": round(sizes[0] / 1e6, 1),
        "commits_mb": round(sizes[1] / 1e6, 1),
        "size_ratio": round(sizes[1] / sizes[0], 2),
        "query_ratio": round(speeds[1] / speeds[0], 2),
    }


def _timed(step: Any, count: int) -> list[float]:
    took = []
    for i in range(count):
        began = time.perf_counter()
        step(i)
        took.append((time.perf_counter() - began) * 1000)
    return [round(float(value), 1) for value in np.percentile(took, [50, 95])]


def _rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20


if __name__ == "__main__":
    print(json.dumps({"load": load, "ask": ask}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))))
