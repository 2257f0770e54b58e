"""The steps of `bench growth`, each in its own process: `python -m bench.support.growth.steps STEP [ARGUMENT …]`."""

import json
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.support.growth.loading import load_passages
from bench.support.growth.maintenance import QUERIES, ask
from bench.support.growth.store import (
    commit,
    megabytes,
    open_store,
    spread,
    store_folder,
)
from bench.support.measuring import peak_mib, resident_mb, seconds
from daemon.runtime.process_tuning import configure_malloc, shorten_switch_interval


def load(folder: str, size: str) -> dict[str, Any]:
    """Loads `size` passages in bulk and writes a checkpoint."""
    store, encoder = open_store(store_folder(folder))
    found = load_passages(store, encoder, int(size))
    found |= {
        "snapshot_written_s": round(seconds(store.write_checkpoint), 1),
        "rss_after_load_mb": resident_mb(),
        "store_mb": megabytes(store_folder(folder)),
    }
    store.close()
    return found


def daemon(folder: str, _: str) -> dict[str, Any]:
    """Measures the real program on the same store: seconds from process start to ready, and its memory after queries."""
    from bench.support.synthetic_documents import World
    from tests.e2e.real_hippod import Daemon

    running = Daemon(Path(folder), folders=(), encoder={"backend": "hash"})
    try:
        ready = seconds(running.start)
        for title, _text, _triples in World(seed=2).passages(10):
            running.http.post("/v1/query", json={"query": title, "mode": "hipporag2"}, timeout=60).raise_for_status()
        return {"daemon_ready_s": round(ready, 1), "daemon_rss_mb": int(running.status()["rss_bytes"]) >> 20}
    finally:
        running.close()


def rebuild(folder: str, _: str) -> dict[str, Any]:
    """Opens the store without its checkpoint: everything is derived from the tables."""
    from bench.support.synthetic_documents import World
    from memory.retrieval.retrieve import retrieve
    from memory.retrieval.settings import RetrievalSettings

    for place in store_folder(folder).glob("snapshot-*"):
        place.rename(Path(folder, "unused"))
    began = time.perf_counter()
    store, encoder = open_store(store_folder(folder))
    took = time.perf_counter() - began
    for title, _text, _triples in World(seed=2).passages(5):
        retrieve(store.snapshot(), encoder, title, "hipporag2", 5, RetrievalSettings())
    found = {"rebuilt_s": round(took, 1), "rebuilt_rss_mb": resident_mb(), "rebuilt_peak_rss_mb": peak_mib()}
    store.close()
    return found


def commits(count: str) -> dict[str, Any]:
    """Compares a store with `count` one-passage commits, maintained as in the daemon, with a store built at once."""
    from bench.support.synthetic_documents import World, document
    from memory.retrieval.retrieve import retrieve
    from memory.retrieval.settings import RetrievalSettings

    passages = list(World().passages(int(count)))
    with tempfile.TemporaryDirectory(prefix="hippod-growth-") as place:
        stores, sizes, at_once = [], [], []
        for batch in (int(count), 1):
            folder = Path(place, str(batch))
            store, encoder = open_store(folder)
            for start in range(0, int(count), batch):
                part = passages[start : start + batch]
                commit(store, encoder, [document(start + i, *passage) for i, passage in enumerate(part)])
            store.write_checkpoint()
            at_once.append(megabytes(folder))
            # The maintenance that `daemon.runtime.scheduler` runs every ten minutes.
            store.compact_when_due()
            sizes.append(megabytes(folder))
            stores.append(store)
        took: list[list[float]] = [[], []]
        for i in range(3 * QUERIES):  # alternating, so that other work on the machine affects both
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
        "query_ms_p50": [spread(times, 50)[0] for times in took],
        "query_ratio": round(float(np.median(took[1]) / np.median(took[0])), 2),
        "longest_hold_ms_by_job": {name: round(1000 * longest, 1) for name, longest in sorted(held.items())},
    }


def crossover(largest: str) -> dict[str, Any]:
    """Measures the processor time of finding a new phrase's synonyms among N phrases: by full comparison, and by sketches."""
    from bench.support.synthetic_documents import World
    from memory.encoder import make_encoder
    from store.fixed_point import no_vectors
    from store.index.synonyms.search import EXACT_BELOW, similar
    from store.index.synonyms.sketch_index import SketchIndex
    from store.index.vectors.matrix import Vectors
    from store.types import DEFAULT_SYNONYM_RULE

    encoder = make_encoder("hash", "", 64, "cpu")
    world = World(seed=3)
    vectors = Vectors(encoder.identity.dim)
    index = SketchIndex(DEFAULT_SYNONYM_RULE.threshold, vectors)
    none = no_vectors(encoder.identity.dim)
    found: dict[str, Any] = {"exact_below": EXACT_BELOW}
    stream, taken = world.passages(10**9), 0
    count = 4_096
    while count <= int(largest):
        while len(world.phrases) < count:
            next(stream)
        vectors.extend(np.asarray(encoder.encode(list(world.phrases)[taken:count]), np.float32))
        taken = count
        index.extend()
        index.fold()
        # Number of phrases in a commit of one passage, and in a batch of a bulk load.
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
    """Measures single adds with the packaged encoder, through the socket."""
    from bench.support.live_adds import live_adds

    return live_adds() or {"skipped": "the sets are read from ../shared/data, which is not there"}


if __name__ == "__main__":
    # As the daemon does.
    configure_malloc()
    shorten_switch_interval()
    steps: dict[str, Callable[..., dict[str, Any]]] = {
        step.__name__: step for step in (load, ask, daemon, rebuild, commits, crossover, live)
    }
    print(json.dumps(steps[sys.argv[1]](*sys.argv[2:])))
