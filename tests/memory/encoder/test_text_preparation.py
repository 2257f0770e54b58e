"""Groups of texts that are encoded together."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memory.encoder.text_preparation import rows_of_equal_length, rows_of_similar_length

LENGTHS = st.lists(st.integers(0, 9), max_size=40)


@given(LENGTHS, st.integers(1, 5))
def test_length_groups_contain_each_nonempty_text_once(lengths: list[int], most: int) -> None:
    known = [row for row, length in enumerate(lengths) if length]
    for groups in (list(rows_of_equal_length(lengths, lambda _: most)), list(rows_of_similar_length(lengths, most))):
        assert sorted(row for rows in groups for row in rows) == known
        assert all(len(rows) <= most for rows in groups)


@given(LENGTHS, st.integers(1, 5))
def test_length_groups_are_full_except_the_last_and_do_not_overlap(lengths: list[int], most: int) -> None:
    groups = [[lengths[row] for row in rows] for rows in rows_of_similar_length(lengths, most)]
    assert all(len(rows) == most for rows in groups[:-1])
    assert all(max(shorter) <= min(longer) for shorter, longer in pairwise(groups))
