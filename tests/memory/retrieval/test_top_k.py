"""The best of many scores, found through the maxima of blocks, are those of sorting all."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.retrieval.top_k import BLOCK, best_first, candidates, kth_best


@given(
    st.integers(1, 40 * BLOCK).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, min(n, 12)))),
    st.integers(1, 1_000),
    st.integers(0, 2**32),
)
def test_the_kth_best_is_that_of_sorting(size: tuple[int, int], distinct: int, seed: int) -> None:
    n, k = size
    values = np.random.default_rng(seed).integers(0, distinct, n).astype(np.float32)
    assert kth_best(values, k) == np.sort(values)[-k]


@given(st.integers(0, 2**32), st.floats(0, 1), st.integers(1, 60))
def test_candidates_are_the_living_rows_within_the_error_of_the_top_k(seed: int, share: float, k: int) -> None:
    random = np.random.default_rng(seed)
    scores, alive = random.integers(0, 500, 9_000).astype(np.float32) / 500, random.random(9_000) < share
    rows = candidates(scores, k, alive, 1e-3)
    assert alive[rows].all()
    living = np.sort(scores[alive])
    least = living[-k] - 2e-3 if k < len(living) else -np.inf
    assert set(rows.tolist()) == set(np.flatnonzero(alive & (scores >= np.float32(least))).tolist())


@given(st.lists(st.integers(-3, 3), max_size=30), st.integers(0, 40), st.integers(0, 2**32))
def test_best_first_equals_a_sort_by_score_and_name(values: list[int], k: int, seed: int) -> None:
    scores, rows = np.array(values, np.float64), np.random.default_rng(seed).permutation(len(values)) + 100
    read: list[int] = []

    def name(row: int) -> str:
        read.append(row)
        return f"{row * 7919 % 13:02d}"

    places = best_first(scores, rows, k, name)
    named = set(read)
    assert places == sorted(range(len(values)), key=lambda at: (-values[at], name(int(rows[at]))))[:k]
    assert all(values.count(values[list(rows).index(row)]) > 1 for row in named), "only ties need a name"
