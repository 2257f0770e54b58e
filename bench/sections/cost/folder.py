"""A followed folder with the real daemon and the packaged encoder: latency of a change, and cost of a bulk load.

Latencies are those that a user sees: from closing (or deleting) a file until a query over the socket gives the expected answer.
The query is repeated without pause in the default mode. Memory is the sampled resident memory of the daemon and all its
children; pages that they share are counted more than once.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from bench.support.data import CORPUS, DRIVE, skipped
from bench.support.followed_folder import person, text_about, write_corpus
from bench.support.measuring import MIB, repeated, resident_bytes, seconds
from bench.support.tables import percentiles, table
from tests.e2e.real_hippod import Daemon

SAVES = 200
BETWEEN_S = 0.1
"""Pause in seconds between two changes."""
PATIENCE_S = 30.0
BULK_PATIENCE_S = 3_600.0
SAMPLE_S = 0.25
QUERY_EVERY_S = 0.5


def run(results: dict[str, Any]) -> str:
    folder = Path(tempfile.mkdtemp(prefix="hippod-bench-"))
    try:
        parts = [_starts(folder / "start", results), _changes(folder / "changes", results)]
        parts.append(_bulk(folder, results) if CORPUS.exists() else skipped("Bulk load", CORPUS))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return "\n\n".join(parts)


def _daemon(home: Path, **sections: Any) -> Daemon:
    return Daemon(home, encoder={"backend": "sentence-transformers"}, **sections)


# Start.


def _starts(home: Path, results: dict[str, Any]) -> str:
    daemon = _daemon(home)
    shutil.copytree(DRIVE, daemon.drive, dirs_exist_ok=True)
    try:
        ready_s = seconds(daemon.start)
        indexed_s = seconds(lambda: daemon.wait(BULK_PATIENCE_S))
        documents = int(daemon.status()["documents"])
        daemon.stop()
        again_s = seconds(daemon.start)
    finally:
        daemon.close()
    results["start"] = {
        "ready_s": ready_s,
        "drive_indexed_s": indexed_s,
        "drive_documents": documents,
        "ready_again_s": again_s,
    }
    return table(
        ("start", "seconds"),
        [
            ("process started → ready, new store", f"{ready_s:.2f}"),
            (f"ready → the example drive is indexed ({documents} documents)", f"{indexed_s:.2f}"),
            ("process started → ready, with that store", f"{again_s:.2f}"),
        ],
    )


# One change at a time.


def _changes(home: Path, results: dict[str, Any]) -> str:
    daemon = _daemon(home)
    shutil.copytree(DRIVE, daemon.drive, dirs_exist_ok=True)
    saved: list[float] = []
    edited: list[float] = []
    deleted: list[float] = []
    try:
        daemon.start().wait(BULK_PATIENCE_S)
        for number in range(SAVES):
            uri = daemon.write(f"bench/{number}.md", text_about(number, "first"))
            saved.append(_until(daemon, number, uri, "first"))
            time.sleep(BETWEEN_S)
        for number in range(SAVES):
            uri = daemon.write(f"bench/{number}.md", text_about(number, "second"))
            edited.append(_until(daemon, number, uri, "second"))
            time.sleep(BETWEEN_S)
        for number in range(SAVES):
            uri = daemon.uri(f"bench/{number}.md")
            (daemon.drive / "bench" / f"{number}.md").unlink()
            deleted.append(_until(daemon, number, uri, None))
            time.sleep(BETWEEN_S)
        stages = _stages(daemon)
    finally:
        daemon.close()
    results["changes"] = {
        "saved_s": percentiles(saved),
        "edited_s": percentiles(edited),
        "deleted_s": percentiles(deleted),
        "stage_mean_ms": stages,
    }
    rows = [
        (name, *(f"{percentiles(values)[key] * 1000:.0f}" for key in ("p50", "p95", "max")))
        for name, values in (
            ("saved → found", saved),
            ("edited → found with the new text only", edited),
            ("deleted → not found", deleted),
        )
    ]
    return table((f"{SAVES} changes, one after the other", "p50 ms", "p95 ms", "max ms"), rows)


def _until(daemon: Daemon, number: int, uri: str, version: str | None) -> float:
    """Returns the seconds until queries find only this `version` of the document, or no version if `version` is None."""
    began = time.perf_counter()
    query = text_about(number, version or "second").split("\n\n")[1].split(".")[0]
    while True:
        found = [passage["text"] for passage in daemon.query(query, mode=None, k=10) if passage["document"] == uri]
        took = time.perf_counter() - began
        if bool(found) == bool(version) and all(version and person(number, version) in text for text in found):
            return took
        if took > PATIENCE_S:
            raise AssertionError(f"after {took:.0f} s a query does not answer with {uri} as it is now")


# Many at once.


@dataclass
class _Load:
    """Observations during a load."""

    rss: list[int] = field(default_factory=list)
    query_s: list[float] = field(default_factory=list)
    query_failures: int = 0


@contextmanager
def _watched(daemon: Daemon, queries: list[str]) -> Iterator[_Load]:
    load, process = _Load(), psutil.Process(daemon.pid)

    def sample() -> None:
        time.sleep(SAMPLE_S)
        load.rss.append(resident_bytes(process)[1])

    def ask() -> None:
        time.sleep(QUERY_EVERY_S)
        began = time.perf_counter()
        body = {"query": queries[len(load.query_s) % len(queries)]}
        try:
            response = daemon.http.post("/v1/query", json=body)
            load.query_failures += not response.is_success
        except OSError:
            load.query_failures += 1
        load.query_s.append(time.perf_counter() - began)

    with repeated(sample, ask):
        yield load


def _bulk(folder: Path, results: dict[str, Any]) -> str:
    corpus = json.loads(CORPUS.read_text("utf-8"))
    rows = []
    for name, write in (("one file each", write_corpus), ("one .jsonl", _as_lines)):
        daemon = _daemon(folder / name.replace(" ", "-").replace(".", ""))
        write(daemon, corpus)
        try:
            figures = _load_once(daemon, [f"Who was {entry['title']}?" for entry in corpus[::17]])
        finally:
            daemon.close()
            shutil.rmtree(daemon.home, ignore_errors=True)
        results.setdefault("bulk", {})[name] = figures
        results.setdefault("violations", []).extend(
            f"bulk load, {name}: {figures[counted]:,} {told} failed"
            for counted, told in (("failed", "documents"), ("query_failures", "queries"))
            if figures[counted]
        )
        rows.append(
            (
                f"{len(corpus):,} passages, {name}",
                f"{figures['took_s']:.0f}",
                f"{figures['passages_per_s']:.0f}",
                figures["failed"],
                f"{figures['rss_max_mib']:,.0f}",
                f"{figures['query_s']['p50'] * 1000:.0f}",
                f"{figures['query_s']['p95'] * 1000:.0f}",
                f"{figures['restart_ready_s']:.1f}",
            )
        )
    head = (
        "bulk load",
        "seconds",
        "passages/s",
        "failed",
        "most memory, MiB",
        "query p50 ms meanwhile",
        "p95 ms",
        "ready again, s",
    )
    return table(head, rows)


def _as_lines(daemon: Daemon, corpus: list[dict[str, Any]]) -> None:
    lines = (
        json.dumps({"id": str(entry["idx"]), "title": entry["title"], "text": entry["text"]}) + "\n" for entry in corpus
    )
    daemon.write("corpus.jsonl", "".join(lines))


def _load_once(daemon: Daemon, queries: list[str]) -> dict[str, Any]:
    daemon.start()
    with _watched(daemon, queries) as load:
        began = time.perf_counter()
        daemon.http.timeout = BULK_PATIENCE_S
        status = daemon.wait(BULK_PATIENCE_S)
        took = time.perf_counter() - began
    figures = {
        "took_s": took,
        "documents": status["documents"],
        "passages": status["passages"],
        "phrases": status["phrases"],
        "triples": status["triples"],
        "edges": status["edges"],
        "passages_per_s": status["passages"] / took,
        "failed": status["failed"],
        "rss_max_mib": max(load.rss) / MIB,
        "rss_end_mib": load.rss[-1] / MIB,
        "queries": len(load.query_s),
        "query_failures": load.query_failures,
        "query_s": percentiles(load.query_s),
        "stage_total_s": _stages(daemon, total=True),
    }
    stop_s = seconds(daemon.stop)
    return figures | {"stop_s": stop_s, "restart_ready_s": seconds(daemon.start)}


# Figures.


def _stages(daemon: Daemon, total: bool = False) -> dict[str, float]:
    """Returns the daemon's time in each stage of the pipeline: the mean in ms, or with `total` the sum in seconds."""
    out = {}
    for stage in ("parse", "extract", "encode", "commit"):
        took = daemon.metric("hippod_stage_seconds_sum", stage=stage)
        count = daemon.metric("hippod_stage_seconds_count", stage=stage)
        out[stage] = round(took if total else 1000 * took / max(count, 1), 2)
    return out
