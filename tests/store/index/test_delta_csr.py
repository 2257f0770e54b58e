"""A matrix of a base and a log always equals the sum of what was added, during any folds and sorts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.index import delta_csr
from store.index.delta_csr import LiveMatrix

SIZE = 12
ENTRY = st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1), st.sampled_from([-1.0, 0.25, 1.0, 0.8125]))
STEP = st.one_of(st.lists(ENTRY, min_size=1, max_size=12), st.just("fold"), st.just("fold what was there before"))


@pytest.fixture(autouse=True, params=[0, 3, 1000])
def unsorted_entries(request, monkeypatch):
    monkeypatch.setattr(delta_csr, "UNSORTED_ENTRIES", request.param)


@given(steps=st.lists(STEP, max_size=25), asked=st.sets(st.integers(0, SIZE - 1), max_size=6))
def test_live_matrix_entries_equal_the_sum_of_all_additions(steps, asked):
    matrix, whole, earlier, expected = LiveMatrix(lambda: (SIZE, SIZE)), np.zeros((SIZE, SIZE)), None, []
    rows = np.array(sorted(asked), np.int64)
    for step in steps:
        if step == "fold":
            view = matrix.view()
            matrix.swap_in(view.merged(), view.change_count)
            earlier = None
        elif step == "fold what was there before":
            if earlier is not None:
                matrix.swap_in(earlier.merged(), earlier.change_count)
            earlier = None
        else:
            earlier = earlier or matrix.view()
            added = [np.array(part) for part in zip(*step, strict=True)]
            matrix.add(*added)
            np.add.at(whole, (added[0], added[1]), added[2])
        expected.append((matrix.view(), whole.copy()))
    # Earlier views are unchanged.
    for view, then in expected:
        found = view.entries(rows)
        there = [(row, column) for row in rows for column in np.flatnonzero(then[row])]
        assert list(zip(found[0].tolist(), found[1].tolist(), strict=True)) == there
        assert found[2].tolist() == [then[place] for place in there]
        assert np.array_equal(view.merged().toarray(), then)


def test_all_except_the_last_log_entries_are_sorted(monkeypatch):
    """All except the last entries are sorted. Otherwise results would still be right, but each commit would cost all changes
    since the last fold."""
    monkeypatch.setattr(delta_csr, "UNSORTED_ENTRIES", 10)
    matrix = LiveMatrix(lambda: (7, 2_000))
    for at in range(2_000):
        matrix.add(np.array([at % 7]), np.array([at]), np.array([1.0]))
        view = matrix.view()
        assert view.change_count - len(view._order) <= max(10, len(view._order) / 16)
    assert view.row(3)[0].tolist() == list(range(3, 2_000, 7))
