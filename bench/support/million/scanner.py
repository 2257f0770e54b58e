"""Compares queries with very many triples, and does nothing else: `bench million`, step "scan".

Array operations make triples like those of `bench.support.synthetic_documents`: nine per passage, most of them about its title;
phrases have two to four words, and some are respelled. A row's vector is the decoded value of its one-byte code, so that ten
million rows take 3.9 GB of disk instead of 19 GB.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.support.growth.store import spread
from bench.support.million.vectors import PREDICATE_WEIGHT, WordSumEncoder
from bench.support.synthetic_documents import ABOUT_TITLE, PREDICATES, RESPELLED, TRIPLES, VOCABULARY
from daemon.observe.resource_use import anonymous_bytes
from memory.retrieval.linking.compared_rows import ComparedRows, row_scores
from memory.retrieval.score_scaling import StandardScore
from memory.retrieval.top_k import top_k_by_cosine
from store.fixed_point import Fixed, fixed
from store.index.file_arrays import ArrayStorage
from store.index.parallel import wait_for_background
from store.index.vectors.codes import CodedBlock, VectorCodes
from store.index.vectors.matrix import BLOCK_VECTORS, Vectors, VectorsView

DEAD = 50
"""One of `DEAD` rows is dead."""
TOP = 5


class _DecodedBlock:
    """A block of vectors that are decoded from their codes on access."""

    def __init__(self, coded: CodedBlock) -> None:
        self.coded = coded

    def __getitem__(self, rows: Any) -> Fixed:
        return fixed(self.coded.codes[rows] * self.coded.units[rows, None])

    def take(self, rows: Any, out: Fixed, **_: Any) -> Fixed:
        out[:] = self[rows]
        return out


def scan(folder: Path, encoder: WordSumEncoder, rows: int, queries: NDArray[np.float32]) -> dict[str, Any]:
    """Compares `queries` with `rows` triples in two ways: like the first step of `fused`, and by one-byte codes alone."""
    view = _filled(folder, encoder, rows)
    found: dict[str, Any] = {}
    alive = np.arange(view.n) % DEAD != 0
    living = int(alive.sum())
    began, work, memory = time.perf_counter(), time.process_time(), anonymous_bytes()
    view.groups()
    wait_for_background()
    found["groups_made_s_cpu_s"] = [round(time.perf_counter() - began, 1), round(time.process_time() - work, 1)]
    found["groups_mb"] = (anonymous_bytes() - memory) >> 20
    found["groups"] = len(view.groups())
    same, by_groups = 0, 0
    figures: dict[str, tuple[list[float], list[float]]] = {"now": ([], []), "one_byte": ([], [])}
    deviations = []
    for query in [queries[0], *queries]:
        wall, work = time.perf_counter(), time.process_time()
        compared = ComparedRows(view, query, alive, living, exact=False)
        scale = compared.standard_score()
        nearest, _ = compared.nearest(TOP, str)
        _note(figures["now"], wall, work)
        by_groups += "scores" not in vars(compared)
        wall, work = time.perf_counter(), time.process_time()
        scores = row_scores(view, query, living)
        whole = StandardScore.of(scores.values, alive)
        expected, _ = top_k_by_cosine(view, query, scores.values, TOP, alive, str, scores.error)
        _note(figures["one_byte"], wall, work)
        same += nearest == expected
        deviations.append(abs(scale.deviation / whole.deviation - 1.0))
    for name, (walls, works) in figures.items():
        found[f"{name}_ms_p50_p95"] = spread(walls[1:], 50, 95)
        found[f"{name}_cpu_ms_p50_p95"] = spread(works[1:], 50, 95)
    found |= {
        "rows": view.n,
        "same_nearest": same,
        "found_by_groups": by_groups,
        "of": 1 + len(queries),
        "deviation_off_by_p50_p95": [float(f"{value:.2g}") for value in np.percentile(deviations, (50, 95))],
    }
    return found


def _note(figures: tuple[list[float], list[float]], wall: float, work: float) -> None:
    figures[0].append((time.perf_counter() - wall) * 1000)
    figures[1].append((time.process_time() - work) * 1000)


def _filled(folder: Path, encoder: WordSumEncoder, rows: int) -> VectorsView:
    """Returns a view of `rows` coded vectors."""
    whole, storage = Vectors(encoder.identity.dim), ArrayStorage(folder)
    blocks = []
    for vectors in _triples(encoder, rows):
        made = VectorCodes(encoder.identity.dim, storage).blocks([fixed(vectors)], len(vectors), BLOCK_VECTORS)
        blocks += made
    rows = sum(len(block.units) for block in blocks)
    # The vectors themselves are not stored, so the matrix is filled through its private attributes.
    whole._blocks = [_DecodedBlock(block) for block in blocks]  # type: ignore[misc]
    whole._codes._blocks, whole._codes._n = blocks, rows
    whole._known.set(np.ones(rows, np.bool_))
    return whole.view()


def _triples(encoder: WordSumEncoder, rows: int) -> Iterator[NDArray[np.float32]]:
    """Yields the vectors of triples in full blocks."""
    random = np.random.default_rng(11)
    weights = np.cumsum(1.0 / (np.arange(VOCABULARY) + 30.0))
    weights /= weights[-1]
    names = [f"w{index * 7919 % 1_000_003:05x}" for index in range(VOCABULARY)]
    words = encoder.word_rows([*names, *(f"{name}s" for name in names)])
    predicates = encoder.word_rows([word for each in PREDICATES for word in each.split()]).reshape(-1, 2)

    def phrases(count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Returns words and weights of shape (count, 4); an absent word of a phrase has weight 0."""
        drawn = np.searchsorted(weights, random.random((count, 4)))
        respelled = (random.random((count, 1)) < RESPELLED) & (np.arange(4) == random.integers(0, 2, (count, 1)))
        lengths = random.integers(2, 5, (count, 1))
        return words[drawn + VOCABULARY * respelled], (np.arange(4) < lengths).astype(np.float32)

    for _ in range(-(-rows // BLOCK_VECTORS)):
        titles, objects, others = phrases(BLOCK_VECTORS // TRIPLES + 1), phrases(BLOCK_VECTORS), phrases(BLOCK_VECTORS)
        about = random.random((BLOCK_VECTORS, 1)) < ABOUT_TITLE
        passage = np.arange(BLOCK_VECTORS) // TRIPLES
        predicate = predicates[random.integers(0, len(predicates), BLOCK_VECTORS)]
        columns = np.hstack([np.where(about, titles[0][passage], others[0]), predicate, objects[0]])
        each = np.hstack(
            [
                np.where(about, titles[1][passage], others[1]),
                np.full(predicate.shape, PREDICATE_WEIGHT, np.float32),
                objects[1],
            ]
        )
        starts = np.arange(0, columns.size + 1, columns.shape[1])
        yield encoder.sums(columns.ravel(), each.ravel().astype(np.float32), starts)
