"""A search for near phrases finds every pair that meets, however its queries are shared out."""

from itertools import pairwise

import numpy as np
import pytest

import store.index.synonyms.sketch_index as sketch_index
import store.index.synonyms.sorted_bands as sorted_bands
from store.index.file_arrays import map_file
from store.index.parallel import wait_for_background
from store.index.synonyms.lsh import bands, collides, sketch
from store.index.synonyms.sketch_index import SketchIndex
from store.index.synonyms.sorted_bands import BAND_ARRAYS, SortedBands, with_new_rows
from store.index.vectors.matrix import Vectors
from tests.store.index.resident import resident_share

THRESHOLD = 0.8
BANDS = bands(THRESHOLD)
ROWS, SORTED = 3_000, (2_700, 2_800)


@pytest.fixture(scope="module")
def sketches():
    random = np.random.default_rng(4)
    vectors = random.standard_normal((600, 64))[random.integers(0, 600, ROWS)] + 0.5 * random.standard_normal(
        (ROWS, 64)
    )
    return sketch((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))


@pytest.mark.parametrize("share", [7, 64])
@pytest.mark.parametrize("asked", [1, 9, 60])
def test_every_pair_that_shares_a_band_is_found(sketches, monkeypatch, asked, share):
    monkeypatch.setattr(sketch_index, "MIN_PART_QUERIES", share)
    monkeypatch.setattr(sketch_index, "MAX_PART_QUERIES", share)
    monkeypatch.setattr(sketch_index, "COMPARISONS_A_CANDIDATE", 1)
    monkeypatch.setattr(sorted_bands, "MIN_ENTRIES", 1 << 30)
    index = SketchIndex(THRESHOLD, Vectors(64))
    runs: tuple[SortedBands, ...] = ()
    for begin, end in pairwise((0, *SORTED)):  # what lies behind the last run is in no band yet
        runs = with_new_rows(runs, sketches[begin:end], BANDS)
    assert len(runs) == len(SORTED)
    index.append(sketches)
    index.swap_in(runs)
    queries = np.arange(0, ROWS, ROWS // asked)[:asked]
    found, next_query = set(), 0
    for first, end, pairs in index.candidates(lambda rows: sketches[rows], queries, np.ones(ROWS, np.bool_), THRESHOLD):
        assert first == next_query and pairs is not None
        found |= set(zip((pairs[0] + first).tolist(), pairs[1].tolist(), strict=True))
        next_query = end
    assert next_query == asked
    a, b = np.repeat(np.arange(asked), ROWS), np.tile(np.arange(ROWS), asked)
    met = collides(sketches[queries[a]], sketches[b], THRESHOLD)
    expected = set(zip(a[met].tolist(), b[met].tolist(), strict=True))
    assert len(expected) > asked
    assert expected == found
    assert len(found) < len(a) // 2


def test_queries_with_too_many_near_rows_are_returned_without_candidates(sketches, monkeypatch):
    monkeypatch.setattr(sketch_index, "MIN_PAIRS", 10)
    index, alike = SketchIndex(THRESHOLD, Vectors(64)), np.repeat(sketches[:1], ROWS, axis=0)
    index.append(alike)
    index.swap_in(with_new_rows((), alike, BANDS))
    (found,) = index.candidates(lambda rows: alike[rows], np.arange(9), np.ones(ROWS, np.bool_), THRESHOLD)
    assert found == (0, 9, None)


def test_mapped_bands_are_resident_after_a_search_and_after_each_change(sketches, tmp_path):
    def mapped(name, runs):
        found: list[SortedBands] = []
        for run in runs:
            files = [tmp_path / f"{name}-{len(found)}-{part}.npy" for part in BAND_ARRAYS]
            for file, array in zip(files, run.arrays().values(), strict=True):
                np.save(file, array)
            found.append(SortedBands(run.first, *map(map_file, files)))
        return found

    def share(name):
        return min(resident_share(file) for file in tmp_path.glob(f"{name}-*-entries.npy"))

    def search():
        list(index.candidates(lambda rows: sketches[rows], np.arange(1), np.ones(ROWS, np.bool_), THRESHOLD))
        wait_for_background()

    index = SketchIndex(THRESHOLD, Vectors(64))
    index.append(sketches)
    index.swap_in(mapped("first", with_new_rows((), sketches[: SORTED[0]], BANDS)))
    assert share("first") < 1.0
    search()
    assert share("first") == 1.0
    index.swap_in(mapped("second", with_new_rows((), sketches, BANDS)))
    assert share("second") < 1.0
    search()
    assert share("second") == 1.0
