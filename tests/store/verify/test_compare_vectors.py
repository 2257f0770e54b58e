"""Vectors are compared while the tables are read, without copying those in memory."""

import numpy as np
import pytest

from store.backup.local import backup
from store.change.load import load_index_for_reading
from store.fixed_point import fixed, floats
from store.index.vectors.row_subset import RowSubset
from store.lance.schema.vectors import vectors_of
from store.lance.tables import open_for_reading
from store.verify import compare_tables
from store.verify.compare_tables import ComparedVectors
from tests.store.small_store import complete, numbered_documents, open_store


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store") as opened:
        opened.commit(complete(opened, numbered_documents(0, 8), []))
        yield opened


def loaded(store, compared=None):
    with store.maintenance_paused(), store.commits_paused(flush=True):
        tables = open_for_reading(store.folder, store.snapshot().dim)
    more = {} if compared is None else {"fill_vectors": compared}
    return load_index_for_reading(tables, tables.dim, **more)


def same_vectors(index, other):
    pairs = [(index.vectors[kind].view(), other.vectors[kind].view()) for kind in index.vectors]
    return all(a.n == b.n and np.array_equal(a.rows(range(a.n)), b.rows(range(b.n))) for a, b in pairs)


def test_vectors_already_in_memory_are_not_copied(store):
    compared = ComparedVectors(store.stored_contents(), 20)
    index = loaded(store, compared)
    assert compared.problems == []
    assert same_vectors(index, loaded(store))
    assert all(isinstance(block, RowSubset) for each in index.vectors.values() for block in each._blocks)


@pytest.mark.slow
def test_vectors_of_later_commits_are_copied(store, tmp_path):
    backup(store, tmp_path / "earlier")
    store.commit(complete(store, numbered_documents(20, 30), []))
    with open_store(tmp_path / "earlier") as earlier:
        compared = ComparedVectors(earlier.stored_contents(), 20)
        assert same_vectors(loaded(store, compared), loaded(store))
        assert compared.problems == []


def test_row_missing_in_memory_is_reported_and_other_rows_are_compared(store, monkeypatch):
    contents = store.stored_contents()
    whole = contents.vectors

    def without_the_second(kind):
        numbers, view = whole(kind)
        numbers = numbers.copy()
        numbers[1:] += 1
        return numbers, view

    monkeypatch.setattr(contents, "vectors", without_the_second)
    compared = ComparedVectors(contents, 20)
    assert same_vectors(loaded(store, compared), loaded(store))
    assert any("differs from the tables" in problem for problem in compared.problems)


def test_vectors_of_wrong_length_are_reported_up_to_the_limit(store, monkeypatch):
    monkeypatch.setattr(compare_tables, "vectors_of", lambda batch: fixed(2 * floats(vectors_of(batch))))
    compared = ComparedVectors(store.stored_contents(), 10**6)
    loaded(store, compared)
    told = [problem for problem in compared.problems if "has a length other than 1 or 0" in problem]
    assert told
    few = ComparedVectors(store.stored_contents(), 3)
    loaded(store, few)
    assert few.problems == compared.problems[:3]
