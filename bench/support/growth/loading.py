"""Loads passages of a `World` in bulk, and measures the cost of each tenth."""

import time
from collections.abc import Callable
from typing import Any

from bench.support.growth.clocked_encoder import ClockedEncoder
from bench.support.growth.store import commit, stream_part
from bench.support.synthetic_documents import World, document

BATCH = 500


def load_passages(
    store: Any, encoder: Any, count: int, after_batch: Callable[[int, float], None] = lambda _loaded, _seconds: None
) -> dict[str, Any]:
    """Commits passages in batches of `BATCH` until the store has `count`; returns figures of the commits, without encoding.

    Continues an interrupted load. `after_batch` is called, untimed, with the number of passages so far and the seconds of all
    commits.
    """
    encoder = ClockedEncoder(encoder)
    stream, there = World().passages(count), store.snapshot().living_passages
    stream_part(stream, there)
    walls, works = [0.0], [0.0]
    for start in range(there, count, BATCH):
        batch = [document(start + i, *passage) for i, passage in enumerate(stream_part(stream, BATCH))]
        wall, work = time.perf_counter() - encoder.wall, time.process_time() - encoder.work
        commit(store, encoder, batch)
        walls.append(walls[-1] + time.perf_counter() - encoder.wall - wall)
        works.append(works[-1] + time.process_time() - encoder.work - work)
        after_batch(start + len(batch), walls[-1])
    tenth = max(len(works) // 10, 1)
    first, last = works[tenth], works[-1] - works[-1 - tenth]
    first_wall, last_wall = walls[tenth], walls[-1] - walls[-1 - tenth]
    snapshot = store.snapshot()
    return {
        "phrases": snapshot.living_phrases,
        "triples": snapshot.living_statements,
        "edges": dict(snapshot.edges),
        "load_passages_a_second": round((count - there) / walls[-1]),
        "load_passages_a_cpu_second": round((count - there) / works[-1]),
        "cpu_ms_a_passage_first_tenth": round(1000 * first / (tenth * BATCH), 2),
        "cpu_ms_a_passage_last_tenth": round(1000 * last / (tenth * BATCH), 2),
        "cpu_last_tenth_to_first": round(last / first, 2),
        "ms_a_passage_first_tenth": round(1000 * first_wall / (tenth * BATCH), 2),
        "ms_a_passage_last_tenth": round(1000 * last_wall / (tenth * BATCH), 2),
        "last_tenth_to_first": round(last_wall / first_wall, 2),
    }
