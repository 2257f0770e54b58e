"""Further steps on a large memory: queries during adds, `as_of`, explanations, neighbourhoods, `verify`, backup."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.support.growth.maintenance import Adding
from bench.support.growth.store import commit, megabytes, spread, timed
from bench.support.measuring import resident_mb
from bench.support.synthetic_documents import World, document
from memory.explain.neighbourhood import query_neighbourhood
from memory.retrieval.modes import DEFAULT_MODE
from memory.retrieval.query_context import QueryContext
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from store.backup.local import backup
from store.index.parallel import wait_for_background
from store.verify.verify import verify

DRAWN_NODES = 60
SETTINGS = RetrievalSettings()
BESIDE_S = 20.0
"""Duration in seconds of the queries during adds."""


def ask(store: Any, encoder: Any, asked: list[str], **more: Any) -> Callable[[int], object]:
    return lambda at: retrieve(store.snapshot(), encoder, asked[at % len(asked)], DEFAULT_MODE, 5, SETTINGS, **more)


def warm(store: Any, encoder: Any, asked: list[str]) -> None:
    """Queries until the caches are warm."""
    for question in asked[:3]:
        retrieve(store.snapshot(), encoder, question, DEFAULT_MODE, 5, SETTINGS)
    for vectors in (store.snapshot().triple_vectors, store.snapshot().passage_vectors):
        vectors.groups()
    wait_for_background()


def while_adding(store: Any, encoder: Any, asked: list[str]) -> dict[str, Any]:
    """Measures queries one after another, alone and while passages are added, including encoding."""
    fresh, first = World(seed=int(time.time())).passages(10**9), 10**9 + 1000 * int(time.time() % 10**5)
    found: dict[str, Any] = {"alone_ms_p50_p95": timed(ask(store, encoder, asked), min(len(asked), 100))}
    step, until = ask(store, encoder, asked), time.monotonic() + BESIDE_S
    took: list[float] = []

    def add(at: int, several: int) -> None:
        commit(store, encoder, [document(first + at + i, *next(fresh)) for i in range(several)])

    with Adding(add) as adding:
        while time.monotonic() < until:
            began = time.perf_counter()
            step(len(took))
            took.append((time.perf_counter() - began) * 1000)
    found |= {"beside_adds_ms_p50_p95": spread(took, 50, 95), "asked": len(took), "added_a_second": adding.a_second}
    return found


def as_of(store: Any, encoder: Any, asked: list[str]) -> dict[str, Any]:
    """Measures the commit before the last: loading it, and queries on it."""
    now = store.snapshot()
    began, work = time.perf_counter(), time.process_time()
    past = store.snapshot_at(now.commit - 1)
    found: dict[str, Any] = {
        "built_s_cpu_s": [round(time.perf_counter() - began, 2), round(time.process_time() - work, 2)],
        "passages_fewer": now.living_passages - past.living_passages,
    }

    def ask(at: int) -> None:
        retrieve(past, encoder, asked[at], DEFAULT_MODE, 5, SETTINGS)

    ask(0)
    past.triple_vectors.groups()
    wait_for_background()
    return found | {"query_ms_p50_p95": timed(ask, min(len(asked), 50)), "resident_mb": resident_mb()}


def explain(store: Any, encoder: Any, asked: list[str]) -> dict[str, Any]:
    """Measures explained queries and neighbourhoods of queries, in milliseconds."""

    def draw(at: int) -> None:
        context = QueryContext(store.snapshot(), encoder, asked[at], SETTINGS, k=5)
        query_neighbourhood(context, DEFAULT_MODE, DRAWN_NODES)

    count = min(len(asked), 30)
    return {
        "explained_ms_p50_p95": timed(ask(store, encoder, asked, explained=True), count),
        "neighbourhood_ms_p50_p95": timed(draw, count),
    }


def check(store: Any, _encoder: Any, _asked: list[str]) -> dict[str, Any]:
    began, work = time.perf_counter(), time.process_time()
    report = verify(store)
    return {
        "s_cpu_s": [round(time.perf_counter() - began, 1), round(time.process_time() - work, 1)],
        "lines": report.lines,
        "problems": len(report.problems),
        "synonym_recall": round(report.synonym_recall, 4),
        "resident_mb": resident_mb(),
    }


def save(store: Any, _encoder: Any, _asked: list[str]) -> dict[str, Any]:
    """Measures a backup to a temporary folder next to the store."""
    os.sync()
    with tempfile.TemporaryDirectory(dir=store.folder.parent, prefix="backup-") as place:
        target = Path(place, "made")
        began, work = time.perf_counter(), time.process_time()
        made = backup(store, target)
        found = {
            "s_cpu_s": [round(time.perf_counter() - began, 1), round(time.process_time() - work, 1)],
            "files": made.files,
            "mb": megabytes(target),
        }
        shutil.rmtree(target)
    return found


STEPS: dict[str, Callable[[Any, Any, list[str]], dict[str, Any]]] = {
    "while_adding": while_adding,
    "as-of": as_of,
    "explain": explain,
    "verify": check,
    "backup": save,
}
"""The steps of `bench million` in this module. Each step gets an open store, its encoder and questions."""
