"""Few of the first passages come from one document."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from memory.retrieval.followed_links import LIMITED_PLACES, limit_documents


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.integers(1, 4))
def test_first_places_limit_passages_per_document_if_others_exist(documents: list[str], most: int) -> None:
    rows = list(range(len(documents)))
    found = limit_documents(rows, documents.__getitem__, most)
    assert sorted(found) == rows, "no passage is lost or told twice"
    counts = Counter(documents[row] for row in found[:LIMITED_PLACES])
    possible = sum(min(most, count) for count in Counter(documents).values())
    if possible >= LIMITED_PLACES:
        assert max(counts.values(), default=0) <= most
    for name in set(documents):
        of = [row for row in found if documents[row] == name]
        assert of == sorted(of), "the passages of a document keep their order"


def test_single_document_takes_all_places() -> None:
    assert limit_documents([3, 1, 2, 0, 4, 5], lambda _row: "only", 1) == [3, 1, 2, 0, 4, 5]


def test_passages_that_are_pushed_back_follow_behind_the_first_places() -> None:
    of = dict(zip(range(8), "aaabcdef", strict=True))
    assert limit_documents(list(range(8)), of.__getitem__, 2) == [0, 1, 3, 4, 5, 2, 6, 7]
