"""Single changes and queries on a large store: alone, during adds, and during all maintenance jobs."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise
from typing import Any

import numpy as np

from bench.support.growth.clocked_encoder import ClockedEncoder
from bench.support.growth.store import commit, open_store, spread, store_folder, timed
from bench.support.growth.thresholds import RATE
from bench.support.measuring import repeated, resident_mb, seconds
from daemon.pipeline.commit.committer import COMMIT_PAUSE_S
from daemon.runtime.process_tuning import trim_heap

SINGLES = 60
QUERIES = 60
UPKEEP_S = 1.0
"""Seconds between two maintenance jobs that run during adds and queries."""


def ask(folder: str, _: str) -> dict[str, Any]:
    """Measures, on the store of `load`: the start; single changes without encoding; queries alone, during adds, and during all
    maintenance."""
    from bench.support.synthetic_documents import World, document
    from memory.retrieval.retrieve import retrieve
    from memory.retrieval.settings import RetrievalSettings
    from store.maintenance.synonym_recall import measure_recall

    # A bulk load leaves gigabytes to be written: an add in the next minute would wait for the disk, not for hippod.
    os.sync()
    began = time.perf_counter()
    store, plain = open_store(store_folder(folder))
    encoder = ClockedEncoder(plain)
    found: dict[str, Any] = {
        "opened_s": round(time.perf_counter() - began, 1),
        "opened_from": store.opened_from.split(" of")[0],
    }
    fresh = World(seed=1).passages(10**9)
    phrases = [store.snapshot().phrase(int(row)) for row in np.linspace(0, store.snapshot().n_phrases - 1, 2 * QUERIES)]
    questions = [f"{a} {b}" for a, b in pairwise(phrases)][::2]
    first = store.snapshot().commit

    def commit_singles(number: int) -> list[float]:
        documents = [document(number + i, *next(fresh)) for i in range(SINGLES)]
        return timed(lambda i: commit(store, encoder, [documents[i]]), SINGLES, lambda: encoder.wall)

    def add_several(i: int, count: int) -> None:
        commit(store, encoder, [document(10**8 + i + k, *next(fresh)) for k in range(count)])

    def query(i: int) -> None:
        retrieve(store.snapshot(), encoder, questions[i % len(questions)], "hipporag2", 5, RetrievalSettings())

    query(0)
    found["query_ms_p50_p95"] = timed(query, QUERIES)
    found["add_ms_p50_p95"] = commit_singles(10**8)
    found["edit_ms_p50_p95"] = commit_singles(0)
    found["remove_ms_p50_p95"] = timed(lambda i: commit(store, encoder, [], (f"added:{10**8 + i}",)), SINGLES)
    with Adding(lambda i, count: add_several(10**6 + i, count)) as adding:
        found["query_while_adding_ms_p50_p95"] = timed(query, QUERIES)
    found["added_a_second_meanwhile"] = adding.a_second
    # All scheduled jobs and `as_of` queries run one after another, during adds and queries.
    jobs: dict[str, Callable[[], object]] = {
        "merge": lambda: store.compact(10**6),
        "fold": store.fold,
        "snapshot": store.write_checkpoint,
        "look back": lambda: store.snapshot_at(first),
        "rewrite": lambda: store.compact(2),
        "purge": lambda: store.purge(timedelta(0)),
    }
    took: dict[str, float] = {}
    queries_ms: list[float] = []

    def ask_again() -> None:
        queries_ms.append(1000 * seconds(lambda: query(len(queries_ms))))
        time.sleep(0.05)

    with repeated(ask_again), Adding(lambda i, count: add_several(10**7 + i, count)) as adding:
        for name, job in jobs.items():
            time.sleep(UPKEEP_S)
            took[name] = round(seconds(job), 2)
    found["upkeep_s"] = took
    found["added_a_second_during_upkeep"] = adding.a_second
    found["add_during_upkeep_ms_p50_p95_max"] = spread(adding.took, 50, 95, 100)
    found["query_during_upkeep_ms_p50_p95_max"] = spread(queries_ms, 50, 95, 100)
    found["longest_hold_ms_by_job"] = {
        name: round(1000 * held, 1) for name, held in sorted(store.longest_lock_s.items())
    }
    recall = measure_recall(store.snapshot(), store.rule, 500)
    found["synonym_recall"] = round(recall.share, 4)
    found["synonym_pairs_compared"] = recall.pairs
    trim_heap()
    found["rss_mb"] = resident_mb()
    store.write_checkpoint()
    store.close()
    return found


class Adding:
    """Adds `RATE` passages a second in a thread during the `with` block.

    As in the daemon, a commit contains all passages that are due, and the next commit follows after a pause. The end of the
    block raises the error that ended the thread, if there was one.
    """

    def __init__(self, add: Callable[[int, int], None]) -> None:
        self._add = add
        self._stop = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self.took: list[float] = []
        self.a_second = 0.0

    def _run(self) -> None:
        began, added = time.monotonic(), 0
        while not self._stop.is_set():
            due = int((time.monotonic() - began) * RATE) + 1 - added
            if due:
                start = time.perf_counter()
                self._add(added, due)
                self.took.append((time.perf_counter() - start) * 1000)
                added += due
            time.sleep(max(COMMIT_PAUSE_S, began + added / RATE - time.monotonic()))
        self.a_second = round(added / (time.monotonic() - began), 1)

    def __enter__(self) -> "Adding":
        self._running = self._thread.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.shutdown()
        self._running.result()
