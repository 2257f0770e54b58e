"""How cost follows the change: loads, single changes, queries, upkeep, memory and starts at growing sizes.

Synthetic documents with triples (`bench.support.synthetic_documents`) and the `hash` encoder, so that what is
measured is the store and the walk; and single adds with the packaged encoder to the 1,890 passages of MuSiQue
(`bench.support.live_adds`).
`HIPPOD_BENCH_SIZES` (passages, by default 2000,20000,100000) says how far it goes, `HIPPOD_BENCH_COMMITS` (5000) how many
commits of one passage are compared with one build. Every step runs in a process of its own, so that one's memory is not
another's, and is printed as soon as it is measured. Seconds a passage are told by the clock and of the
processor: a machine that does other things as well changes the latter little.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from daemon.runtime.allocator import configure_malloc, scale_mmap_threshold, trim_heap
from daemon.runtime.gc import frozen_objects, shorten_switch_interval

BATCH = 500
SINGLES = 60
QUERIES = 60
RATE = 20
"""Passages a second that are added while queries are timed."""

UPKEEP_S = 1.0
"""Rest between two jobs of the upkeep that runs beside adds and queries."""

CEILING_MB = 4 * 1024


def run(results: dict[str, Any]) -> str:
    sizes = [int(size) for size in os.environ.get("HIPPOD_BENCH_SIZES", "2000,20000,100000").split(",")]
    rows: list[dict[str, Any]] = []
    results["sizes"] = rows
    for size in sizes:
        row: dict[str, Any] = {"passages": size}
        rows.append(row)
        with tempfile.TemporaryDirectory(prefix="hippod-growth-") as folder:
            for step in ("load", "ask", "daemon", "rebuild"):
                row |= _step(step, folder, str(size))
    if count := int(os.environ.get("HIPPOD_BENCH_COMMITS", "5000")):
        results["commits"] = _step("commits", str(count))
    results["crossover"] = _step("crossover", os.environ.get("HIPPOD_BENCH_PHRASES", "131072"))
    results["live"] = _step("live")
    results["must_hold"] = judged = _judged(rows, results)
    results["violations"] = violations(rows, results)
    return "\n\n".join([_sizes(rows), _others(results), _verdicts(judged)])


def _step(name: str, *arguments: str) -> dict[str, Any]:
    """Runs one step in a process of its own; tells of it as soon as it is done. One that fails leaves its error."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "bench.sections.growth", name, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    found = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {f"{name}_failed": done.returncode}
    print(
        f"{name} {' '.join(arguments[1:] or arguments)} ({time.perf_counter() - began:.0f} s): {json.dumps(found)}",
        flush=True,
    )
    return found


def _open(folder: Path) -> Any:
    from memory.encoder import make_encoder
    from store.store import Store

    encoder = make_encoder("hash", "", 64, "cpu")
    encoder.encode(["warm"])
    with frozen_objects():
        return Store(folder, encoder.identity), encoder


def _commit(store: Any, encoder: Any, documents: list[Any], removed: tuple[str, ...] = ()) -> None:
    from memory.batch_encoding import with_vectors
    from store.types import Batch

    batch = Batch(tuple(d for d, _ in documents), removed, tuple(p for _, p in documents))
    store.commit(with_vectors(store, encoder, batch))
    now = store.snapshot()
    scale_mmap_threshold(max(now.n_phrases, now.n_triples))  # as the daemon does


def load(folder: str, size: str) -> dict[str, Any]:
    """Loads `size` passages in bulk and writes them down."""
    from bench.support.synthetic_documents import World, document

    store, encoder = _open(_store(folder))
    count, stream = int(size), World().passages(int(size))
    walls, works = [0.0], [0.0]
    for start in range(0, count, BATCH):
        batch = [document(start + i, *passage) for i, passage in enumerate(stream_part(stream, BATCH))]
        wall, work = time.perf_counter(), time.process_time()
        _commit(store, encoder, batch)
        walls.append(walls[-1] + time.perf_counter() - wall)
        works.append(works[-1] + time.process_time() - work)
    tenth = max(len(works) // 10, 1)
    first, last = works[tenth], works[-1] - works[-1 - tenth]
    first_wall, last_wall = walls[tenth], walls[-1] - walls[-1 - tenth]
    snapshot = store.snapshot()
    began = time.perf_counter()
    store.write_checkpoint()
    found = {
        "phrases": snapshot.living_phrases,
        "triples": snapshot.living_triples,
        "edges": dict(snapshot.edges),
        "load_passages_a_second": round(count / walls[-1]),
        "load_passages_a_cpu_second": round(count / works[-1]),
        "cpu_ms_a_passage_first_tenth": round(1000 * first / (tenth * BATCH), 2),
        "cpu_ms_a_passage_last_tenth": round(1000 * last / (tenth * BATCH), 2),
        "cpu_last_tenth_to_first": round(last / first, 2),
        "ms_a_passage_first_tenth": round(1000 * first_wall / (tenth * BATCH), 2),
        "ms_a_passage_last_tenth": round(1000 * last_wall / (tenth * BATCH), 2),
        "last_tenth_to_first": round(last_wall / first_wall, 2),
        "snapshot_written_s": round(time.perf_counter() - began, 1),
        "rss_after_load_mb": _rss(),
        "store_mb": _megabytes(_store(folder)),
    }
    store.close()
    return found


def _store(folder: str) -> Path:
    return Path(folder, "store")


def stream_part(stream: Any, count: int) -> list[Any]:
    return [passage for passage, _ in zip(stream, range(count), strict=False)]


def ask(folder: str, _: str) -> dict[str, Any]:
    """Starts on what `load` left; single changes and queries, then queries beside adds, and beside adds and all upkeep."""
    from bench.support.synthetic_documents import World, document
    from memory.retrieval.retrieve import retrieve
    from memory.retrieval.settings import RetrievalSettings
    from store.maintenance.synonym_recall import measure_recall

    # A bulk load leaves gigabytes to be written: who adds a passage in the next minute waits for the disk, not for hippod.
    os.sync()
    began = time.perf_counter()
    store, encoder = _open(_store(folder))
    found: dict[str, Any] = {
        "opened_s": round(time.perf_counter() - began, 1),
        "opened_from": store.opened_from.split(" of")[0],
    }
    fresh = World(seed=1).passages(10**9)
    phrases = [store.snapshot().phrase(int(row)) for row in np.linspace(0, store.snapshot().n_phrases - 1, 2 * QUERIES)]
    questions = [f"{a} {b}" for a, b in pairwise(phrases)][::2]
    first = store.snapshot().commit

    def add(i: int) -> None:
        _commit(store, encoder, [document(10**8 + i, *next(fresh))])

    def add_several(i: int, count: int) -> None:
        _commit(store, encoder, [document(10**8 + i + k, *next(fresh)) for k in range(count)])

    def edit(i: int) -> None:
        _commit(store, encoder, [document(i, *next(fresh))])

    def query(i: int) -> None:
        retrieve(store.snapshot(), encoder, questions[i % len(questions)], "hipporag2", 5, RetrievalSettings())

    query(0)
    found["query_ms_p50_p95"] = _timed(query, QUERIES)
    found["add_ms_p50_p95"] = _timed(add, SINGLES)
    found["edit_ms_p50_p95"] = _timed(edit, SINGLES)
    found["remove_ms_p50_p95"] = _timed(lambda i: _commit(store, encoder, [], (f"added:{10**8 + i}",)), SINGLES)
    with _Adding(lambda i, count: add_several(10**6 + i, count)) as adding:
        found["query_while_adding_ms_p50_p95"] = _timed(query, QUERIES)
    found["added_a_second_meanwhile"] = adding.a_second
    # Every job of the schedule and looks back, one after the other, while passages are added and queries asked.
    jobs: dict[str, Callable[[], object]] = {
        "merge": lambda: store.compact(10**6),
        "fold": store.fold,
        "snapshot": store.write_checkpoint,
        "look back": lambda: store.snapshot_at(first),
        "rewrite": lambda: store.compact(2, timedelta(0)),
        "purge": lambda: store.purge(timedelta(0)),
    }
    took: dict[str, float] = {}
    asked: list[float] = []
    stop = threading.Event()

    def asking() -> None:
        while not stop.is_set():
            began = time.perf_counter()
            query(len(asked))
            asked.append((time.perf_counter() - began) * 1000)
            time.sleep(0.05)

    asker = threading.Thread(target=asking)
    asker.start()
    with _Adding(lambda i, count: add_several(10**7 + i, count)) as adding:
        for name, job in jobs.items():
            time.sleep(UPKEEP_S)
            began = time.perf_counter()
            job()
            took[name] = round(time.perf_counter() - began, 2)
    stop.set()
    asker.join()
    found["upkeep_s"] = took
    found["added_a_second_during_upkeep"] = adding.a_second
    found["add_during_upkeep_ms_p50_p95_max"] = _spread(adding.took, 50, 95, 100)
    found["query_during_upkeep_ms_p50_p95_max"] = _spread(asked, 50, 95, 100)
    found["longest_hold_ms_by_job"] = {
        name: round(1000 * held, 1) for name, held in sorted(store.longest_lock_s.items())
    }
    recall = measure_recall(store.snapshot(), store.rule, 500)
    found["synonym_recall"] = round(recall.share, 4)
    found["synonym_pairs_compared"] = recall.pairs
    trim_heap()
    found["rss_mb"] = _rss()
    store.write_checkpoint()
    store.close()
    return found


class _Adding:
    """Adds `RATE` passages a second in a thread for as long as it lasts, those that are due in one commit, as the daemon's
    micro-batches do."""

    def __init__(self, add: Callable[[int, int], None]) -> None:
        self._add = add
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
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
            time.sleep(max(0.0, began + added / RATE - time.monotonic()))
        self.a_second = round(added / (time.monotonic() - began), 1)

    def __enter__(self) -> "_Adding":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def daemon(folder: str, _: str) -> dict[str, Any]:
    """The real program on the same store: seconds from the start of the process to ready, and its memory after queries."""
    from bench.support.synthetic_documents import World
    from tests.e2e.real_hippod import Daemon

    running = Daemon(Path(folder), folders=(), encoder={"backend": "hash"})
    try:
        began = time.perf_counter()
        running.start()
        ready = time.perf_counter() - began
        for title, _text, _triples in World(seed=2).passages(10):
            running.http.post("/v1/query", json={"query": title, "mode": "hipporag2"}, timeout=60).raise_for_status()
        return {"daemon_ready_s": round(ready, 1), "daemon_rss_mb": int(running.status()["rss_bytes"]) >> 20}
    finally:
        running.close()


def rebuild(folder: str, _: str) -> dict[str, Any]:
    """Opens the store without its snapshot: everything is derived from the tables."""
    from bench.support.synthetic_documents import World
    from memory.retrieval.retrieve import retrieve
    from memory.retrieval.settings import RetrievalSettings

    for place in _store(folder).glob("snapshot-*"):
        place.rename(Path(folder, "unused"))
    began = time.perf_counter()
    store, encoder = _open(_store(folder))
    took = time.perf_counter() - began
    for title, _text, _triples in World(seed=2).passages(5):
        retrieve(store.snapshot(), encoder, title, "hipporag2", 5, RetrievalSettings())
    found = {"rebuilt_s": round(took, 1), "rebuilt_rss_mb": _rss(), "rebuilt_peak_rss_mb": _peak()}
    store.close()
    return found


def commits(count: str) -> dict[str, Any]:
    """One store from `count` commits of one passage, kept up as the daemon does it, beside one that was built at once."""
    from bench.support.synthetic_documents import World, document
    from memory.retrieval.retrieve import retrieve
    from memory.retrieval.settings import RetrievalSettings

    passages = list(World().passages(int(count)))
    with tempfile.TemporaryDirectory(prefix="hippod-growth-") as place:
        stores, sizes, at_once = [], [], []
        for batch in (int(count), 1):
            folder = Path(place, str(batch))
            store, encoder = _open(folder)
            for start in range(0, int(count), batch):
                part = passages[start : start + batch]
                _commit(store, encoder, [document(start + i, *passage) for i, passage in enumerate(part)])
            store.write_checkpoint()
            at_once.append(_megabytes(folder))
            # Ten minutes later, as the schedule has it: `daemon.runtime.scheduler`.
            store.compact(64, timedelta(0))
            sizes.append(_megabytes(folder))
            stores.append(store)
        took: list[list[float]] = [[], []]
        for i in range(3 * QUERIES):  # in turns, so that what else the machine does falls on both
            for store, times in zip(stores, took, strict=True):
                began = time.perf_counter()
                retrieve(
                    store.snapshot(), encoder, passages[17 * i % int(count)][0], "hipporag2", 5, RetrievalSettings()
                )
                times.append((time.perf_counter() - began) * 1000)
        held = stores[1].longest_lock_s
        for store in stores:
            store.close()
    return {
        "commits": int(count),
        "bulk_mb": sizes[0],
        "commits_mb": sizes[1],
        "size_ratio": round(sizes[1] / sizes[0], 2),
        "size_ratio_before_compaction": round(at_once[1] / at_once[0], 2),
        "query_ms_p50": [_spread(times, 50)[0] for times in took],
        "query_ratio": round(float(np.median(took[1]) / np.median(took[0])), 2),
        "longest_hold_ms_by_job": {name: round(1000 * longest, 1) for name, longest in sorted(held.items())},
    }


def crossover(largest: str) -> dict[str, Any]:
    """Processor time for finding one new phrase's synonyms among so many: by comparing with all, and by sketches."""
    from bench.support.synthetic_documents import World
    from memory.encoder import make_encoder
    from store.index.arrays import Vectors
    from store.index.lsh import SketchIndex, sort
    from store.index.synonyms import EXACT_BELOW, similar

    encoder = make_encoder("hash", "", 64, "cpu")
    world = World(seed=3)
    vectors, index = Vectors(encoder.identity.dim), SketchIndex()
    none = np.empty((0, encoder.identity.dim), np.float32)
    found: dict[str, Any] = {"exact_below": EXACT_BELOW}
    stream, taken = world.passages(10**9), 0
    count = 4_096
    while count <= int(largest):
        while len(world.phrases) < count:
            next(stream)
        vectors.extend(np.asarray(encoder.encode(list(world.phrases)[taken:count]), np.float32))
        taken = count
        index.extend(vectors)
        index.adopt(sort(index.view()))
        # As many as a commit of a passage brings, and as a batch of a bulk load does.
        for together in (9, 900):
            asked = np.linspace(0, count - 1, together).astype(np.int64)
            times = []
            for sketches in (None, index):
                began = time.process_time()
                for _ in range(3):
                    deque(similar(vectors.view(), none, np.ones(count, np.bool_), asked, 0.8, sketches), 0)
                times.append(round(1000 * (time.process_time() - began) / 3 / together, 3))
            found[f"ms_a_phrase_of_{together}_among_{count:,}_exact_and_by_sketches"] = times
        count *= 2
    return found


def live() -> dict[str, Any]:
    """Single adds with the packaged encoder, through the socket."""
    from bench.support.live_adds import live_adds

    return live_adds() or {"skipped": "the sets are read from ../shared/data, which is not there"}


def _judged(rows: list[dict[str, Any]], results: dict[str, Any]) -> list[dict[str, Any]]:
    """What must hold, with what was measured; `holds` is None where it was not. `anywhere`: on a slow machine as well."""
    small, large = rows[0], rows[-1]
    judged: list[dict[str, Any]] = []

    def judge(
        what: str,
        measured: float | None,
        most: float | None = None,
        least: float | None = None,
        anywhere: bool = False,
    ) -> None:
        good = None if measured is None else (most is None or measured <= most) and (least is None or measured >= least)
        bound = f"at most {most:g}" if most is not None else f"at least {least:g}"
        judged.append({"what": what, "measured": measured, "bound": bound, "holds": good, "anywhere": anywhere})

    def of(row: dict[str, Any], name: str, place: int = 0) -> float | None:
        value = row.get(name)
        return None if value is None else float(value[place] if isinstance(value, list) else value)

    def ratio(above: float | None, below: float | None) -> float | None:
        return None if above is None or not below else round(above / below, 2)

    at = f"at {large['passages']:,} passages"
    for kind in ("add", "edit", "remove"):
        name = f"{kind}_ms_p50_p95"
        judge(
            f"{kind} one passage {at}: p50, times that at {small['passages']:,}",
            ratio(of(large, name), of(small, name)),
            2,
        )
    judge(f"bulk load, passages a second {at}", of(large, "load_passages_a_second"), least=100)
    judge(f"bulk load, seconds a passage, last tenth to first {at}", of(large, "last_tenth_to_first"), 2)
    for when, name in (("", "query_ms_p50_p95"), (f" while {RATE}/s are added", "query_while_adding_ms_p50_p95")):
        judge(f"query p50 in ms{when} {at}", of(large, name), 400)
        judge(f"query p95, times p50{when} {at}", ratio(of(large, name, 1), of(large, name)), 2)
    judge(f"resident MB, started from the snapshot {at}", of(large, "daemon_rss_mb"), CEILING_MB, anywhere=True)
    judge(f"resident MB, rebuilt from the tables {at}", of(large, "rebuilt_rss_mb"), CEILING_MB, anywhere=True)
    judge(f"seconds from the start of the process to ready {at}", of(large, "daemon_ready_s"), 10)
    judge(f"share of the synonym edges found {at}", of(large, "synonym_recall"), least=0.99, anywhere=True)
    for name, held in large.get("longest_hold_ms_by_job", {}).items():
        if name not in ("commit", "close"):
            judge(f"ms that commits waited for: {name}, {at}", held, 200)
    found = results.get("commits", {})
    judge("store after single commits, times one build", of(found, "size_ratio"), 3, anywhere=True)
    judge("query after single commits, times one build", of(found, "query_ratio"), 1.2)
    adds = results["live"]
    judge("live add to MuSiQue, accepted to visible, p50 in ms", of(adds, "accepted_to_visible_ms_p50_p95"), 120)
    judge("live add to MuSiQue, accepted to visible, p95 in ms", of(adds, "accepted_to_visible_ms_p50_p95", 1), 250)
    return judged


def violations(rows: list[dict[str, Any]], results: dict[str, Any]) -> list[str]:
    """Steps that failed, and what must hold on any machine and did not."""
    parts = [*rows, *(results.get(part, {}) for part in ("commits", "crossover", "live"))]
    failed = [name.removesuffix("_failed") for part in parts for name in part if name.endswith("_failed")]
    return [f"the step {name} failed" for name in failed] + [
        f"{one['what']}: {one['measured']}, which is to be {one['bound']}"
        for one in results["must_hold"]
        if one["anywhere"] and one["holds"] is False
    ]


def _sizes(rows: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row if name != "passages"))
    lines = ["| | " + " | ".join(f"{row['passages']:,}" for row in rows) + " |", "| --- |" + " --- |" * len(rows)]
    lines += [
        f"| {name.replace('_', ' ')} | " + " | ".join(_shown(row.get(name, "")) for row in rows) + " |"
        for name in names
    ]
    return "\n".join(lines)


def _others(results: dict[str, Any]) -> str:
    lines = ["| | |", "| --- | --- |"]
    for part in ("commits", "crossover", "live"):
        lines += [
            f"| {part}: {name.replace('_', ' ')} | {_shown(value)} |" for name, value in results.get(part, {}).items()
        ]
    return "\n".join(lines)


def _verdicts(judged: list[dict[str, Any]]) -> str:
    words = {True: "yes", False: "**no**", None: "not measured"}
    lines = ["| must hold | measured | bound | holds |", "| --- | ---: | --- | --- |"]
    lines += [f"| {one['what']} | {one['measured']} | {one['bound']} | {words[one['holds']]} |" for one in judged]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return " / ".join(map(str, value)) if isinstance(value, list) else str(value)


def _timed(step: Callable[[int], None], count: int) -> list[float]:
    took = []
    for i in range(count):
        began = time.perf_counter()
        step(i)
        took.append((time.perf_counter() - began) * 1000)
    return _spread(took, 50, 95)


def _spread(took: list[float], *shares: float) -> list[float]:
    return [round(float(value), 1) for value in np.percentile(took, shares)]


def _megabytes(folder: Path) -> float:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 1)


def _rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    # As the daemon does.
    configure_malloc()
    shorten_switch_interval()
    steps = {"load": load, "ask": ask, "daemon": daemon, "rebuild": rebuild, "commits": commits}
    steps |= {"crossover": crossover, "live": live}
    print(json.dumps(steps[sys.argv[1]](*sys.argv[2:])))
