"""Stored vectors: 16-bit integers, close to the encoder's output, and unchanged when read again."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given
from hypothesis.extra.numpy import arrays

from store.fixed_point import fixed, floats, no_vectors, not_zero
from store.lance.schema.vectors import vector_columns, vectors_of
from tests.store.oracle import rounded_vectors

components = st.floats(-1, 1, width=32) | st.floats(-(2.0**-10), 2.0**-10, width=32) | st.sampled_from([0.0, 1.0, -1.0])
vectors = arrays(np.float32, st.tuples(st.integers(0, 5), st.integers(1, 7)), elements=components)


@given(vectors, st.booleans())
def test_rounding_error_is_at_most_2_to_minus_15_of_the_largest_component(vectors, turned):
    rows = fixed(np.asfortranarray(vectors) if turned else vectors)
    assert rows.dtype == np.int16
    found = floats(rows)
    assert found.dtype == np.float32
    assert found.tolist() == rounded_vectors(vectors).tolist()
    assert (np.abs(found - vectors) <= 2.0**-15 * np.abs(vectors).max(axis=1, keepdims=True, initial=2.0**-85)).all()
    assert not_zero(rows).tolist() == found.any(axis=1).tolist()


@given(vectors, st.booleans())
def test_fixed_point_vectors_survive_a_second_conversion_unchanged(vectors, in_place):
    rows = fixed(vectors)
    once = floats(rows)
    out = np.full_like(vectors, np.nan) if in_place else None
    assert fixed(once).tolist() == rows.tolist()
    again = floats(rows, out)
    assert again.tolist() == once.tolist()
    assert not in_place or again is out


@given(vectors)
def test_vectors_survive_conversion_to_table_columns(vectors):
    import pyarrow as pa

    rows = fixed(vectors)
    assert vectors_of(pa.record_batch(dict(vector_columns(rows)))).tolist() == rows.tolist()


def test_an_axis_is_kept_exactly():
    axes = np.concatenate([np.eye(9, dtype=np.float32), -np.eye(9, dtype=np.float32)])
    assert np.array_equal(floats(fixed(axes)), axes)


def test_component_that_rounds_beyond_the_range_uses_the_next_exponent():
    just_below = np.float32(1 - 2**-17)
    rows = fixed(np.array([[just_below, 0.5]]))
    assert rows.tolist() == [[2**14, 2**13, -14]]


def test_conversion_of_no_vectors_gives_no_vectors():
    assert floats(no_vectors(3)).shape == fixed(np.empty((0, 3), np.float32))[:, :-1].shape == (0, 3)


def test_cosine_error_of_fixed_point_is_within_the_documented_range():
    vectors = np.random.default_rng(0).standard_normal((2_000, 384))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    near = vectors[1:] + vectors[:-1]
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    exact = (vectors[1:] * near).sum(axis=1)
    one, other = (floats(fixed(each.astype(np.float32))).astype(float) for each in (vectors[1:], near))
    assert 2e-6 < np.sqrt(np.mean(((one * other).sum(axis=1) - exact) ** 2)) < 4e-6
