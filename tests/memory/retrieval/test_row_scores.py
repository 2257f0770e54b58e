"""Comparing by codes: no cosine is further off than it says, and the nearest rows are those of the exact comparison."""

import numpy as np
import pytest

import memory.retrieval.linking.compared_rows
from memory.retrieval.linking.compared_rows import row_scores
from memory.retrieval.top_k import top_k_by_cosine
from store.index.vectors.matrix import Vectors
from tests.store.oracle import rounded_vectors

DIM = 48
SHAPES = ("anywhere", "one component", "zero", "equal", "cone")


@pytest.fixture(autouse=True)
def coded(monkeypatch):
    monkeypatch.setattr(memory.retrieval.linking.compared_rows, "CODED_MIN_ROWS", 0)


def made(shape: str, count: int = 500):
    random = np.random.default_rng(3)
    found = random.standard_normal((count, DIM)).astype(np.float32)
    if shape == "one component":
        found *= np.eye(DIM, dtype=np.float32)[random.integers(DIM, size=count)]
    elif shape == "zero":
        found[::2] = 0.0
    elif shape == "equal":
        found[:] = found[0]
    elif shape == "cone":
        found += 12.0 * found[0]
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return rounded_vectors(np.divide(found, lengths, out=np.zeros_like(found), where=lengths > 0))


def filled(*parts):
    vectors = Vectors(DIM)
    for part in parts:
        vectors.extend(part)
    return vectors


@pytest.mark.parametrize("shape", SHAPES)
def test_nearest_rows_by_codes_equal_those_of_an_exact_search(shape: str) -> None:
    rows, queries = made(shape), [*made("anywhere", 5)[:4], made(shape)[7], np.eye(1, DIM, dtype=np.float32)[0]]
    view, alive = filled(rows).view(), np.arange(len(rows)) % 3 != 0
    for query in queries:
        exact, coded = (row_scores(view, query, len(rows), exact=each) for each in (True, False))
        assert np.abs(coded.values - rows.astype(np.float64) @ query).max() <= coded.error
        found = [top_k_by_cosine(view, query, scores.values, 9, alive, str, scores.error) for scores in (exact, coded)]
        assert found[0][0] == found[1][0]
        assert found[0][1].tolist() == found[1][1].tolist()


def test_row_score_does_not_depend_on_row_position_or_time_of_addition() -> None:
    rows, query = made("anywhere"), made("cone")[0]
    order = np.random.default_rng(4).permutation(len(rows))
    vectors = filled(rows[:100])
    before = row_scores(vectors.view(), query, 100).values
    vectors.extend(rows[100:])
    at_once = row_scores(vectors.view(), query, len(rows)).values
    assert at_once[:100].tolist() == before.tolist()
    assert row_scores(filled(rows[order]).view(), query, len(rows)).values.tolist() == at_once[order].tolist()


def test_small_memories_are_compared_exactly(monkeypatch) -> None:
    monkeypatch.setattr(memory.retrieval.linking.compared_rows, "CODED_MIN_ROWS", 501)
    view, query = filled(made("anywhere")).view(), made("cone")[0]
    assert row_scores(view, query, 500).values.tolist() == view.scores(query).tolist()
