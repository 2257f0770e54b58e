"""The steps of `bench million`, each in its own process: `python -m bench.support.million.steps STEP FOLDER COUNT`.

`load` fills the folder with `COUNT` passages. The other steps use its result, in any order and repeatedly, with `COUNT`
questions or changes.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.support.growth.clocked_encoder import ClockedEncoder
from bench.support.growth.loading import BATCH, load_passages
from bench.support.growth.store import commit, megabytes, spread, timed
from bench.support.measuring import resident_mb, seconds
from bench.support.million.aside import STEPS, warm
from bench.support.million.scanner import scan
from bench.support.million.vectors import BANK, CACHE, make_word_sum_encoder
from bench.support.synthetic_documents import World, document
from daemon.observe.resource_use import anonymous_bytes
from daemon.runtime.process_tuning import (
    configure_malloc,
    frozen_objects,
    scale_mmap_threshold,
    shorten_switch_interval,
    trim_heap,
)
from memory.retrieval.modes import DEFAULT_MODE, MODES
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from store.index.parallel import wait_for_background

QUESTION_PASSAGES = 2_000
"""Number of passages that the questions are about: the first passages of every memory."""
SCANNED_QUESTIONS = 60
UPKEEP_EACH = 50_000
"""Number of passages loaded between two rounds of merging fragments and writing a checkpoint.

A daemon merges fragments every ten minutes and writes a checkpoint every quarter of an hour.
"""


def open_million(folder: str) -> Any:
    """Returns the store in `folder` and the encoder of its vectors."""
    from store.store import Store

    encoder = make_word_sum_encoder()
    with frozen_objects():
        store = Store(Path(folder), encoder.identity)
    now = store.snapshot()
    scale_mmap_threshold(max(now.n_phrases, now.n_triples))  # as the daemon does
    return store, encoder


def vectors(_folder: str, _count: str) -> dict[str, Any]:
    """Measures cosines among real and synthetic phrases: mean, deviation, minimum; mean of the nearest, 5th and 50th
    neighbour."""
    encoder, world = make_word_sum_encoder(), World()
    next(skipped for skipped in world.passages(BANK) if len(world.phrases) >= BANK)
    found = {}
    for name, rows in (("real", np.load(CACHE)), ("synthetic", encoder.encode(list(world.phrases)[:BANK]))):
        cosines = -np.sort(-(rows[:: BANK // 200] @ rows.T), axis=1)[:, 1:]
        figures = [
            cosines.mean(),
            cosines.std(axis=1).mean(),
            cosines[:, -1].mean(),
            *cosines[:, [0, 4, 49]].mean(axis=0),
        ]
        found[f"{name}_mean_deviation_least_1st_5th_50th"] = [round(float(figure), 3) for figure in figures]
    return found


def load(folder: str, size: str) -> dict[str, Any]:
    """Loads `size` passages in bulk with the daemon's maintenance; encoding is not counted."""
    store, encoder = open_million(folder)
    began, snapshots, compactions = time.perf_counter(), [], []

    def write_down(loaded: int, commits_s: float) -> None:
        # A continued load may begin between two full batches.
        if loaded % UPKEEP_EACH >= BATCH and loaded < int(size):
            return
        compactions.append(round(seconds(store.compact_when_due), 1))
        store.fold()
        snapshots.append(round(seconds(store.write_checkpoint), 1))
        print(
            f"{loaded} passages after {time.perf_counter() - began:.0f} s, {commits_s:.0f} s of them commits, "
            f"{megabytes(Path(folder)):.0f} MB on the disk, "
            f"{anonymous_bytes() >> 20} MB that cannot be dropped, compaction {compactions[-1]} s, snapshot {snapshots[-1]} s",
            file=sys.stderr,
            flush=True,
        )

    found = load_passages(store, encoder, int(size), write_down)
    found |= {
        "compacted_s": compactions,
        "snapshots_written_s": snapshots,
        "rss_after_load_mb": resident_mb(),
        "store_mb": megabytes(Path(folder)),
    }
    store.close()
    return found


def questions(count: int) -> list[str]:
    """Returns `count` questions, each a triple whose object is cut after its first word, and a phrase of another triple."""
    random, passages = np.random.default_rng(7), World().passages(QUESTION_PASSAGES)
    stated = [triple for _, _, triples in passages for triple in triples]
    found = []
    for _ in range(count):
        (subject, predicate, object_), (_, _, other) = (stated[int(random.integers(len(stated)))] for _ in range(2))
        found.append(f"{subject} {predicate} {object_.split()[0]} {other}")
    return found


def asked_modes() -> list[str]:
    """Returns all modes, or those in `HIPPOD_BENCH_MODES`."""
    return os.environ.get("HIPPOD_BENCH_MODES", ",".join(MODES)).split(",")


def query(folder: str, count: str) -> dict[str, Any]:
    """Measures `count` queries in each mode, without encoding: wall and processor milliseconds, in total and of each stage."""
    store, encoder = open_million(folder)
    snapshot, asked = store.snapshot(), questions(int(count))
    found: dict[str, Any] = {}
    warm(store, encoder, asked)
    for mode in asked_modes():
        walls, works, stages = [], [], []
        for question in [*asked[:3], *asked]:
            wall, work = time.perf_counter(), time.process_time()
            answer = retrieve(snapshot, encoder, question, mode, 5, RetrievalSettings())
            encoding = answer.stages_ms.get("encode", 0.0)
            walls.append((time.perf_counter() - wall) * 1000 - encoding)
            works.append((time.process_time() - work) * 1000 - encoding)
            stages.append(answer.stages_ms)
        found[f"{mode}_ms_p50_p95"] = spread(walls[3:], 50, 95)
        found[f"{mode}_cpu_ms_p50_p95"] = spread(works[3:], 50, 95)
        names = sorted({name for each in stages for name in each})
        found[f"{mode}_stages_ms_p50"] = {
            name: spread([each.get(name, 0.0) for each in stages[3:]], 50)[0] for name in names if name != "encode"
        }
    store.close()
    return found


def scan_triples(folder: str, rows: str) -> dict[str, Any]:
    """Compares questions with `rows` triples, without a store."""
    encoder = make_word_sum_encoder()
    return scan(Path(folder), encoder, int(rows), encoder.encode(questions(SCANNED_QUESTIONS)))


def agree(folder: str, count: str) -> dict[str, Any]:
    """Compares `count` queries in each mode with the exact computation: how often the first five passages are equal."""
    store, encoder = open_million(folder)
    snapshot, asked = store.snapshot(), questions(int(count))
    found: dict[str, Any] = {}
    warm(store, encoder, asked)
    for mode in asked_modes():
        if "exact" not in MODES[mode].settings:
            continue
        same, ordered, furthest = 0, 0, 0.0
        for question in asked:
            fast, exact = (
                {hit.row: hit.score for hit in retrieve(snapshot, encoder, question, mode, 5, settings).hits}
                for settings in (RetrievalSettings(), RetrievalSettings(exact=True))
            )
            same += set(fast) == set(exact)
            ordered += list(fast) == list(exact)
            furthest = max([furthest, *(abs(score - exact[row]) for row, score in fast.items() if row in exact)])
        found[mode] = {"same_five": same, "same_order": ordered, "of": len(asked), "scores_differ_by": float(furthest)}
    store.close()
    return found


def memory(folder: str, count: str) -> dict[str, Any]:
    """Measures a start and `count` queries in the default mode: seconds, and anonymous memory."""
    began = time.perf_counter()
    store, encoder = open_million(folder)
    opened = time.perf_counter() - began
    snapshot = store.snapshot()
    first = time.perf_counter()
    for at, question in enumerate(questions(int(count))):
        retrieve(snapshot, encoder, question, DEFAULT_MODE, 5, RetrievalSettings())
        if not at:
            first = time.perf_counter() - first
    trim_heap()
    found = {"anonymous_mb": anonymous_bytes() >> 20, "resident_mb": resident_mb()}
    store.close()
    return {"opened_s": round(opened, 1), "first_query_s": round(first, 2), **found}


def mutate(folder: str, count: str) -> dict[str, Any]:
    """Measures `count` single adds, edits and removals, after a warm-up that pages their data in.

    Encoding is not counted.
    """
    store, plain = open_million(folder)
    encoder = ClockedEncoder(plain)
    fresh = World(seed=int(time.time())).passages(10**9)
    first = 10**8 + 1000 * int(time.time() % 10**5)
    found: dict[str, Any] = {}

    def add(at: int) -> None:
        commit(store, encoder, [document(first + at, *next(fresh))])

    warm(store, encoder, questions(3))
    add(int(count))
    wait_for_background()
    found["add_ms_p50_p95"] = timed(add, int(count), lambda: encoder.wall)
    found["edit_ms_p50_p95"] = timed(
        lambda at: commit(store, encoder, [document(first + at, *next(fresh))]), int(count), lambda: encoder.wall
    )
    removed = [f"added:{first + at}" for at in range(int(count))]
    found["remove_ms_p50_p95"] = timed(lambda at: commit(store, encoder, [], (removed[at],)), int(count))
    store.close()
    return found


def aside(name: str, folder: str, count: str) -> dict[str, Any]:
    """Runs one of `STEPS` with `count` questions."""
    store, encoder = open_million(folder)
    asked = questions(int(count))
    if name not in ("verify", "backup"):
        warm(store, encoder, asked)
    found = STEPS[name](store, encoder, asked)
    store.close()
    return found


if __name__ == "__main__":
    # As the daemon does.
    configure_malloc()
    shorten_switch_interval()
    steps: dict[str, Callable[[str, str], dict[str, Any]]] = {
        "vectors": vectors,
        "scan": scan_triples,
        "load": load,
        "query": query,
        "agree": agree,
        "memory": memory,
        "mutate": mutate,
    } | {name: partial(aside, name) for name in STEPS}
    print(json.dumps(steps[sys.argv[1]](*sys.argv[2:])))
