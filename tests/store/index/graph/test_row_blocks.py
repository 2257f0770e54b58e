"""Products by blocks of rows."""

import numpy as np
import pytest
from scipy import sparse

import store.index.graph.joined_base
from store.index.graph.joined_base import RowBlocks


@pytest.mark.parametrize("processors", [1, 2, 3, 7])
@pytest.mark.parametrize("shape", [(400, 300), (1, 50), (0, 0), (3, 0)])
def test_blocks_give_the_product_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, processors: int, shape: tuple[int, int]
) -> None:
    monkeypatch.setattr(store.index.graph.joined_base, "BLOCK_MIN_ENTRIES", 10)
    random = np.random.default_rng(processors)
    matrix = sparse.csr_array(sparse.random_array(shape, density=0.2, rng=random, dtype=np.float64))
    x = random.standard_normal(shape[1])
    assert np.array_equal(RowBlocks(matrix, processors) @ x, matrix @ x)


def test_one_row_may_hold_nearly_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """More blocks than rows with entries: some are empty."""
    monkeypatch.setattr(store.index.graph.joined_base, "BLOCK_MIN_ENTRIES", 10)
    rows, cols = np.concatenate([np.full(200, 4), [0, 9]]), np.concatenate([np.arange(200), [1, 2]])
    matrix = sparse.csr_array((np.arange(202.0), (rows, cols)), shape=(10, 200))
    x = np.linspace(-1, 1, 200)
    assert np.array_equal(RowBlocks(matrix, 4) @ x, matrix @ x)


def test_blocks_hold_no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.index.graph.joined_base, "BLOCK_MIN_ENTRIES", 10)
    matrix = sparse.csr_array(sparse.random_array((50, 50), density=0.5, rng=np.random.default_rng(1)))
    blocks = RowBlocks(matrix, 3)._blocks
    assert len(blocks) == 3
    assert all(np.shares_memory(block.data, matrix.data) for block in blocks)
    assert all(np.shares_memory(block.indices, matrix.indices) for block in blocks)
