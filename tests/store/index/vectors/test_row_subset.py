"""Rows taken from another matrix read like appended rows, before and after they are copied."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.index.vectors import codes, matrix
from store.index.vectors.matrix import Vectors
from tests.store.oracle import rounded_vectors

DIM = 5
ROWS = 40


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "BLOCK_VECTORS", 8)
        patch.setattr(codes, "CODED_ROWS", 3)
        yield


def some_vectors(seed, n):
    vectors = np.random.default_rng(seed).standard_normal((n, DIM)).astype(np.float32)
    vectors[::7] = 0
    return rounded_vectors(vectors)


def codes_of(view):
    blocks = [block for _, block in view.coded_blocks()]
    return np.concatenate([block.codes for block in blocks]), np.concatenate([block.units for block in blocks])


@given(
    st.lists(st.integers(0, ROWS - 1), unique=True, min_size=1).map(sorted),
    st.lists(st.tuples(st.sampled_from(("codes", "copy", "extend", "rows")), st.integers(1, 9)), max_size=6),
)
def test_taken_rows_read_like_appended_ones(rows, steps):
    whole, plain, taken = Vectors(DIM), Vectors(DIM), Vectors(DIM)
    values = some_vectors(0, ROWS)
    whole.extend(values)
    plain.extend(values[rows])
    taken.fill_from(whole.view(), np.array(rows))
    first = taken.view()
    for step, n in steps:
        view, expected = taken.view(), plain.view()
        if step == "extend":
            added = some_vectors(n, n)
            taken.extend(added)
            plain.extend(added)
            whole.extend(added)
        elif step == "copy":
            assert [block.tolist() for _, block in view.blocks()] == [block.tolist() for _, block in expected.blocks()]
        elif step == "codes":
            assert all(np.array_equal(*pair) for pair in zip(codes_of(view), codes_of(expected), strict=True))
        else:
            asked = np.random.default_rng(n).integers(0, view.n, n)
            for wanted in (asked, np.sort(asked)):
                assert np.array_equal(view.rows(wanted), expected.rows(wanted))
        assert np.array_equal(view.known, expected.known)
    assert np.array_equal(first.rows(np.arange(first.n)), values[rows])
    query = some_vectors(99, 2)[1]
    np.testing.assert_allclose(taken.view().scores(query), plain.view().scores(query), rtol=1e-6)
    assert all(np.array_equal(*pair) for pair in zip(codes_of(taken.view()), codes_of(plain.view()), strict=True))


def test_row_subset_copies_vectors_only_if_all_blocks_are_requested():
    whole, taken = Vectors(DIM), Vectors(DIM)
    whole.extend(some_vectors(0, ROWS))
    taken.fill_from(whole.view(), np.arange(0, ROWS, 2))
    taken.view().rows([3, 1])
    assert taken.own_bytes == 0
    taken.view().blocks()
    assert taken.own_bytes == ROWS // 2 * (DIM + 1) * 2
