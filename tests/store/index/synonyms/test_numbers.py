"""Phrases that differ in numbers, dates and versions alone are no synonyms."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import store.change.synonym_change
import store.index.live_index
import store.index.synonyms.search
from store.export.json_lines import export_lines
from store.index.synonyms.numbers import is_number, without_numbers
from store.maintenance.synonym_recall import measure_recall
from store.types import SynonymRule
from store.verify.verify import verify
from tests.store import oracle
from tests.store.small_store import NUMBERED, complete, open_store

_DIFFER = [
    ("28 december 2015", "march 31 2015"),
    ("debian 7", "debian 12"),
    ("python 3 11 2", "python 3 12"),
    ("ext3", "ext4"),
    ("utf 8", "utf 16"),
    ("world war i", "world war ii"),
    ("first world war", "second world war"),
    ("theodred ii", "theodred iii"),
    ("1st baron mornington", "2nd baron mornington"),
    ("election of 3 may 2011", "election of 12 june 2014"),
    ("release v2 5 of the kernel", "release v2 6 1 of the kernel"),
    ("2015年12月28日", "2016年1月3日"),
]
_APART = [
    ("debian 7", "debian"),
    ("debian 7", "ubuntu 7"),
    ("march of the penguins", "may of the penguins"),
    ("12 kilograms", "12 pounds"),
    ("kernel", "kernels"),
    ("i robot", "ii robot"),
]


@pytest.mark.parametrize(("one", "other"), _DIFFER)
def test_these_differ_in_numbers_alone(one: str, other: str) -> None:
    assert without_numbers(one) == without_numbers(other) or (is_number(one) and is_number(other))


@pytest.mark.parametrize(("one", "other"), _APART)
def test_these_differ_in_more(one: str, other: str) -> None:
    assert without_numbers(one) != without_numbers(other)
    assert not is_number(one) or not is_number(other)


@pytest.mark.parametrize(
    "phrase",
    ["28 december 2015", "1990s", "march", "version 2 5", "section 4 2", "v2 1", "the 19th century", "10 am", "seven"],
)
def test_a_number_is_nobodys_synonym(phrase: str) -> None:
    assert is_number(phrase)


@pytest.mark.parametrize("phrase", ["", "vi", "the", "version", "debian 7", "x window system", "ext4", "march of time"])
def test_a_phrase_with_a_name_in_it_is_no_number(phrase: str) -> None:
    assert not is_number(phrase)


@given(st.text(alphabet="ab vi0123 march", max_size=20).map(lambda text: " ".join(text.split())), st.integers(0, 9))
def test_another_digit_changes_no_wording(phrase: str, digit: int) -> None:
    changed = "".join(str(digit) if char.isdigit() else char for char in phrase)
    assert without_numbers(changed) == without_numbers(phrase)
    assert is_number(changed) == is_number(phrase)


def edges(lines):
    return {(line["source"], line["target"]): line["weight"] for line in lines if line.get("type") == "synonym"}


def documents():
    ring = [*NUMBERED, "am", "ama", "bo", "boa", "cy q", "cya", "bo y"]
    triples = tuple((phrase, "is", ring[i - 1]) for i, phrase in enumerate(ring))
    return {"d": [("T", "text 1", triples)], "e": [("T", "text 2", triples[::2])]}


@pytest.mark.slow
def test_a_store_of_an_earlier_release_loses_such_edges_as_it_is_opened(tmp_path, monkeypatch):
    long_enough = lambda phrase: sum(map(str.isalnum, phrase)) > 2  # noqa: E731
    with monkeypatch.context() as earlier:
        earlier.setattr(SynonymRule, "VERSION", SynonymRule.VERSION - 1)
        for module in (store.index.live_index, store.change.synonym_change):
            earlier.setattr(module, "linkable", long_enough)
            earlier.setattr(
                module, "wordings", lambda phrases: np.array([hash(phrase) for phrase in phrases], np.int64)
            )
        with open_store(tmp_path) as memory:
            memory.commit(complete(memory, documents(), []))
            before = edges(map(json.loads, export_lines(memory.snapshot())))
    expected = oracle.export(documents(), lambda *_: [])
    assert before.keys() - edges(expected).keys()
    for path in tmp_path.glob("snapshot-*"):
        # As a snapshot of another format is: not used.
        (path / "manifest.json").write_text("{}")
    with open_store(tmp_path) as memory:
        assert oracle.same(export_lines(memory.snapshot()), expected) is None
        assert verify(memory).problems == []
        found = measure_recall(memory.snapshot(), memory.rule, 1_000)
        assert found.share == 1.0
        assert found.missing == 0
        commit = memory.snapshot().commit
    with open_store(tmp_path) as memory:
        assert memory.snapshot().commit == commit


CJK = [("北京", True), ("水", True), ("サ", True), ("서울", True), ("2015年3月", False)]


@pytest.mark.parametrize(
    ("phrase", "linkable"),
    [("", False), ("us", False), ("a b", False), ("usa", True), ("1 2 3", False), ("ß ü", False), *CJK],
)
def test_only_phrases_of_more_than_two_letters_or_with_cjk_may_have_synonyms(phrase: str, linkable: bool) -> None:
    assert store.index.synonyms.search.linkable(phrase) is linkable
