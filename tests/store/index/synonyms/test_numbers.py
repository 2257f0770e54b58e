"""Numbers, dates and versions have no synonyms, nor have phrases of one or two letters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.index.synonyms.numbers import is_number
from store.index.synonyms.search import can_have_synonyms


@pytest.mark.parametrize(
    "phrase",
    ["28 december 2015", "1990s", "march", "version 2 5", "section 4 2", "v2 1", "the 19th century", "10 am", "seven"],
)
def test_number_phrase_is_recognised(phrase: str) -> None:
    assert is_number(phrase)


@pytest.mark.parametrize("phrase", ["", "vi", "the", "version", "debian 7", "x window system", "ext4", "march of time"])
def test_a_phrase_with_a_name_in_it_is_no_number(phrase: str) -> None:
    assert not is_number(phrase)


@given(st.text(alphabet="ab vi0123 march", max_size=20).map(lambda text: " ".join(text.split())), st.integers(0, 9))
def test_is_number_does_not_depend_on_which_digits_a_phrase_has(phrase: str, digit: int) -> None:
    changed = "".join(str(digit) if char.isdigit() else char for char in phrase)
    assert is_number(changed) == is_number(phrase)


CJK = [("北京", True), ("水", True), ("サ", True), ("서울", True), ("2015年3月", False)]


@pytest.mark.parametrize(
    ("phrase", "can"),
    [("", False), ("us", False), ("a b", False), ("usa", True), ("1 2 3", False), ("ß ü", False), *CJK],
)
def test_only_phrases_of_more_than_two_letters_or_with_cjk_may_have_synonyms(phrase: str, can: bool) -> None:
    assert can_have_synonyms(phrase) is can
