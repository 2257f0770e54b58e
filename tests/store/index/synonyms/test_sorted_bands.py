"""Sorted bands: what a look finds is what comparing with every row finds, and runs are joined to what sorting all gives."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import store.index.synonyms.sorted_bands as sorted_bands
from store.index.synonyms.lsh import BAND_BITS, band_values, sketch
from store.index.synonyms.sorted_bands import JOINED_SHARE, BandLookup, SortedBands, with_new_rows

BANDS = 100
"""More than there are without a hash in common."""


def sketches_of(n, seed=0):
    """Sketches of vectors about a few centres, so that many share a band."""
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((12, 64))[random.integers(0, 12, n)] + 0.6 * random.standard_normal((n, 64))
    return sketch((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))


@pytest.fixture
def small_steps(monkeypatch):
    """Some thousand rows in several pieces and looks."""
    monkeypatch.setattr(sorted_bands, "SORTED_ROWS", 700)
    monkeypatch.setattr(sorted_bands, "SCANNED_ENTRIES", 64)


def due(sketches, asked, first, end):
    """(question, row, band) of all that a look must find, by comparing each with each."""
    values = band_values(sketches, BANDS).T
    found = values[asked][:, None] == values[None]
    found[:, :first] = found[:, end:] = False
    return found


def assert_looks_find_all(n, together):
    """Compares what looks in so many bands `together` find among `n` rows with what is due."""
    sketches = sketches_of(n + 30)
    [run] = with_new_rows((), sketches[30:], BANDS)
    run, asked = replace(run, first=30), np.arange(0, n, max(1, n // 40))
    values = band_values(sketches[asked], BANDS)
    expected = due(sketches, asked, 30, n + 30)
    for begin in range(0, BANDS, together):
        bands = range(begin, min(begin + together, BANDS))
        found = np.zeros(expected.shape[:2], np.bool_)
        for near in run.near(BandLookup.of(values, bands)):
            assert near is not None
            which, rows = near
            assert rows.min(initial=30) >= 30
            found[which, rows] = True
        assert np.array_equal(expected[:, :, bands].any(axis=2), found)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("n", [1, 40, 900, 2_600])
@pytest.mark.parametrize("together", [1, 5, BANDS])
def test_lookup_finds_every_row_that_shares_a_band(n, together):
    assert_looks_find_all(n, together)


@pytest.mark.usefixtures("small_steps")
def test_lookup_finds_all_rows_if_buckets_use_every_bit_of_a_band(monkeypatch):
    monkeypatch.setattr(sorted_bands, "bucket_bits", lambda _: BAND_BITS)
    assert_looks_find_all(1_500, 7)


@pytest.mark.usefixtures("small_steps")
def test_lookup_stops_if_all_rows_are_equal(monkeypatch):
    monkeypatch.setattr(sorted_bands, "MIN_ENTRIES", 1_000)
    sketches = np.repeat(sketches_of(1), 3_000, axis=0)
    looked_up = BandLookup.of(band_values(sketches[:5], BANDS), range(BANDS))
    [run] = with_new_rows((), sketches, BANDS)
    assert None in list(run.near(looked_up))


@settings(deadline=None, max_examples=10)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=8))
def test_joined_runs_cover_all_rows_and_equal_a_single_sort(lengths):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sorted_bands, "SORTED_ROWS", 300)
        sketches, end = sketches_of(sum(lengths)), 0
        runs: tuple[SortedBands, ...] = ()
        for length in lengths:
            end += length
            before, runs = runs, with_new_rows(runs, sketches[end - length : end], BANDS)
            assert [run.first for run in runs] == [0, *(run.end for run in runs[:-1])]
            assert runs[-1].end == end
            assert all(short.n * JOINED_SHARE < long.n for long, short in pairwise(runs))
            for run in runs:
                if run in before:
                    continue
                [whole] = with_new_rows((), sketches[run.first : run.end], BANDS)
                for name, array in whole.arrays().items():
                    assert np.array_equal(run.arrays()[name], array), name
        assert with_new_rows(runs, sketches[:0], BANDS) == runs
