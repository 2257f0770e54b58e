"""What is kept of a vector: the same numbers as float16 and as int16, near to what the encoder gave."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given
from hypothesis.extra.numpy import arrays

from store.fixed_point import STEP, fixed, floats
from tests.store.oracle import kept

components = st.floats(-1, 1, width=32)


@given(arrays(np.float32, st.tuples(st.integers(0, 5), st.integers(1, 7)), elements=components), st.booleans())
def test_a_component_is_the_nearest_that_both_kinds_of_number_hold(vectors, turned):
    if turned:
        vectors = np.asfortranarray(vectors)
    multiples = fixed(vectors)
    assert multiples.dtype == np.int16
    found = floats(multiples)
    assert found.dtype == np.float32
    assert found.tolist() == kept(vectors).tolist()
    assert found.astype(np.float16).astype(np.float32).tolist() == found.tolist()
    assert (np.abs(found - vectors) <= np.maximum(2.0**-15, 2.0**-11 * np.abs(vectors))).all()


@given(arrays(np.float32, 6, elements=components), st.booleans())
def test_what_is_kept_is_kept_as_it_is(vector, in_place):
    once = floats(fixed(vector))
    out = np.full(6, np.nan, np.float32) if in_place else None
    again = floats(fixed(once), out)
    assert again.tolist() == once.tolist()
    assert not in_place or again is out


def test_every_multiple_of_a_unit_vector_is_a_number_of_its_own():
    every = np.arange(-(2**14), 2**14 + 1)
    found = fixed(every.astype(np.float32) * STEP)
    assert (np.diff(found.astype(int)) >= 0).all()
    small = np.abs(every) <= 2**11
    assert np.array_equal(found[small], every[small])
    assert found[0] == -(2**14)
    assert found[-1] == 2**14


def test_a_component_that_no_unit_vector_has_stays_on_its_side():
    assert floats(fixed(np.array([3.0, -3.0, np.inf, -np.inf], np.float32))).tolist() == [2 - 2**-10, 2**-10 - 2] * 2


def test_cosines_change_by_as_much_as_is_said():
    vectors = np.random.default_rng(0).standard_normal((2_000, 384))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    near = vectors[1:] + vectors[:-1]
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    exact = (vectors[1:] * near).sum(axis=1)
    found = (floats(fixed(vectors[1:].astype(np.float32))) * floats(fixed(near.astype(np.float32)))).sum(axis=1)
    off = np.sqrt(np.mean((found - exact) ** 2))
    assert 2.5e-5 < off < 3.5e-5
