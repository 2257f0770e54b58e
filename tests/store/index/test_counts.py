"""Counts that change while earlier views exist: each view shows the values of its commit whenever it is read."""

import random

import numpy as np
import pytest

from store.index.append_only_arrays import CHUNK_COUNTS, Counts


@pytest.mark.parametrize("seed", range(5))
def test_view_keeps_which_counts_were_above_zero(seed: int) -> None:
    chance, counts, expected, views = random.Random(seed), Counts(), np.zeros(0, np.int64), []
    for _ in range(12):
        grown = counts.n + chance.choice((0, 1, CHUNK_COUNTS // 2, CHUNK_COUNTS + 3))
        counts.grow(grown)
        expected = np.concatenate([expected, np.zeros(grown - len(expected), np.int64)])
        rows = np.array(sorted(chance.sample(range(counts.n), min(20, counts.n))), np.int64)
        changes = np.array([chance.choice((1, 1, -1)) for _ in rows], np.int64)
        before = expected[rows] > 0
        expected[rows] += changes
        was, now = counts.change(rows, changes)
        assert was.tolist() == before.tolist() and now.tolist() == (expected[rows] > 0).tolist()
        views.append((counts.view(), expected.copy()))
        # Earlier views too, some for the first time now: none may use another's mask.
        for view, then in chance.sample(views, min(3, len(views))):
            assert view.positive().tolist() == (then > 0).tolist()
            assert view.array().tolist() == then.tolist()
    with pytest.raises(ValueError, match="read-only"):
        views[-1][0].positive()[:1] = True
