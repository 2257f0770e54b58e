"""The store that `bench growth` measures, and helpers for measuring."""

import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from daemon.runtime.process_tuning import frozen_objects, scale_mmap_threshold


def open_store(folder: Path) -> Any:
    from memory.encoder import make_encoder
    from store.store import Store

    encoder = make_encoder("hash", "", 64, "cpu")
    encoder.encode(["warm"])
    with frozen_objects():
        return Store(folder, encoder.identity), encoder


def commit(store: Any, encoder: Any, documents: list[Any], removed: tuple[str, ...] = ()) -> None:
    from memory.batch_encoding import with_vectors
    from store.errors import IncompleteBatch
    from store.types import Batch

    batch = Batch(tuple(d for d, _ in documents), removed, tuple(p for _, p in documents))
    try:
        store.commit(with_vectors(store, encoder, batch))
    except IncompleteBatch:  # a concurrent purge has deleted a text that was in the store
        store.commit(with_vectors(store, encoder, batch))
    now = store.snapshot()
    scale_mmap_threshold(max(now.n_phrases, now.n_triples))  # as the daemon does


def store_folder(folder: str) -> Path:
    return Path(folder, "store")


def stream_part(stream: Any, count: int) -> list[Any]:
    return list(islice(stream, count))


def timed(step: Callable[[int], object], count: int, apart: Callable[[], float] = lambda: 0.0) -> list[float]:
    """Returns [p50, p95] of the milliseconds per step. `apart` returns the total number of excluded seconds so far."""
    took = []
    for i in range(count):
        began = time.perf_counter() - apart()
        step(i)
        took.append((time.perf_counter() - apart() - began) * 1000)
    return spread(took, 50, 95)


def spread(took: list[float], *shares: float) -> list[float]:
    return [round(float(value), 1) for value in np.percentile(took, shares)]


def megabytes(folder: Path) -> float:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 1)
