"""Vectors are read as they were written: in any order, few and many of a block, from files and from memory."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.index.part import PartFiles, PartWriter
from store.index.vectors import matrix
from store.index.vectors.codes import CODE_MAX
from store.index.vectors.matrix import Vectors
from store.index.vectors.rows_in_blocks import FEW_ROWS
from tests.store.oracle import rounded_vectors

BLOCK_ROWS, DIM = 40, 3
N = 3 * BLOCK_ROWS + 7


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blocks")


@given(
    st.lists(st.integers(0, N - 1), max_size=4 * FEW_ROWS),
    st.sampled_from([0, 1, FEW_ROWS, FEW_ROWS + 1, BLOCK_ROWS]),
    st.booleans(),
    st.booleans(),
)
def test_vector_rows_are_returned_in_the_requested_order(
    files: Path, some: list[int], together: int, in_order: bool, given_out: bool
) -> None:
    written = rounded_vectors(np.random.default_rng(0).standard_normal((N, DIM)))
    rows = np.array([*some, *range(BLOCK_ROWS, BLOCK_ROWS + together)], np.int64)
    if in_order:
        rows.sort()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "BLOCK_VECTORS", BLOCK_ROWS)
        view = _mapped(files, written).view()
        out = np.full((len(rows), DIM), np.nan, np.float32) if given_out else None
        found = view.rows(rows, out)
    assert np.array_equal(found, written[rows])
    assert out is None or found is out


def _mapped(files: Path, written: np.ndarray) -> Vectors:
    """Two blocks in files, then one and a partial one in memory."""
    made, vectors = Vectors(DIM), Vectors(DIM)
    made.extend(written[: 2 * BLOCK_ROWS])
    out = PartWriter(files, None, {}, lambda: None)
    made.save(out, "made")
    vectors.load(PartFiles(out.place, out.files, out.values), "made")
    vectors.extend(written[2 * BLOCK_ROWS :])
    return vectors


@given(st.lists(st.integers(0, N - 1), max_size=30), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-20, 1.0, 1e5]))
def test_cosines_do_not_exceed_the_bounds_of_codes_and_bounds_are_tight(
    some: list[int], seed: int, scale: float
) -> None:
    random = np.random.default_rng(seed)
    written = rounded_vectors(scale * random.standard_normal((N, DIM)))
    queries = random.standard_normal((len(some), DIM)).astype(np.float32)
    rows = np.sort(np.array(some, np.int64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "BLOCK_VECTORS", BLOCK_ROWS)
        vectors = Vectors(DIM)
        vectors.extend(written)
        view = vectors.view()
        assert view.coded_rows == 0
        view.coded_blocks()
        assert view.coded_rows == N
        bounds = view.upper_bounds(rows, queries)
    exact = np.einsum("ij,ij->i", written[rows].astype(np.float64), queries)
    largest = np.abs(written[rows]).max(axis=1, initial=0.0) * np.abs(queries).sum(axis=1)
    assert (exact <= bounds + 1e-6 * largest).all()
    assert (bounds <= exact + largest / CODE_MAX + 1e-6 * largest).all()
