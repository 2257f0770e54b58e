"""A phrase has one spelling: what the spelling keeps, what it drops, and that it is settled."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.phrase_normalisation import normalise_phrase, normalise_triple

_SHARED = Path(__file__).parents[3] / "shared" / "data" / "musique" / "openie.json"
_SCRIPTS = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=("Mn", "Mc", "Me", "Cf", "Lm", "Sk")),
        st.sampled_from("aßİıΣςǅﬁ①Ⅳ²ｶﾞ한각e\u0301\u0345\u00ad\u200d\u1e9b\u0323"),
    ),
    max_size=30,
)


@given(_SCRIPTS)
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise_phrase(text)
    assert normalise_phrase(once) == once


@given(_SCRIPTS)
def test_only_letters_digits_marks_and_single_spaces_are_left(text: str) -> None:
    phrase = normalise_phrase(text)
    assert phrase == " ".join(phrase.split())
    assert all(char == " " or unicodedata.category(char)[0] in "LNM" for char in phrase)


@given(st.text(st.characters(codec="ascii"), max_size=40))
def test_ascii_phrases_equal_those_of_hipporag_except_runs_of_spaces(text: str) -> None:
    theirs = "".join(char if char.isalnum() else " " for char in text.lower())
    assert normalise_phrase(text) == " ".join(theirs.split())


@given(_SCRIPTS)
def test_phrases_that_differ_only_in_case_are_equal(text: str) -> None:
    assert normalise_phrase(normalise_phrase(text).upper()) == normalise_phrase(normalise_phrase(text).upper().lower())


@pytest.mark.slow
def test_normalisation_of_every_character_is_idempotent() -> None:
    for code in range(0x30000):
        char = chr(code)
        once = normalise_phrase(f"a{char}b")
        assert normalise_phrase(once) == once, hex(code)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("  Carl  Rogers, ", "carl rogers"),
        ("St. Louis - Missouri", "st louis missouri"),
        ("Zürich", "zürich"),
        ("Zu\u0308rich", "zürich"),
        ("Straße", "strasse"),
        ("Москва!", "москва"),
        ("東京（日本）", "東京 日本"),
        ("हिन्दी", "हिन्दी"),
        ("می\u200cخواهم", "میخواهم"),
        ("ﬁnance", "finance"),
        ("co\u00adoperate", "cooperate"),
        ("$ 4.2 m", "4 2 m"),
        ("$", ""),
        ("", ""),
    ],
)
def test_phrase_is_normalised_to_the_expected_spelling(text: str, phrase: str) -> None:
    assert normalise_phrase(text) == phrase


@pytest.mark.parametrize(
    "raw",
    [
        ["a", "b"],
        ["a", "b", "c", "d"],
        ["a", "b", 3],
        ["a", "b", None],
        ["a", "b", ""],
        ["a", "$", "c"],
        "abc",
        {"a": 1, "b": 2, "c": 3},
        None,
    ],
)
def test_value_that_is_not_three_phrases_is_no_triple(raw: object) -> None:
    assert normalise_triple(raw) is None


def test_a_triple_is_normalised_in_each_part() -> None:
    assert normalise_triple(["Carl Rogers", "is-a", "Psychologist."]) == ("carl rogers", "is a", "psychologist")
    assert normalise_triple(("A", "b", "C")) == ("a", "b", "c")


@pytest.mark.shared
@pytest.mark.skipif(not _SHARED.exists(), reason="needs ../shared/data")
def test_musique_phrases_and_triples_equal_the_authors_with_named_exceptions() -> None:
    # The authors count 16,235 phrases and 17,036 triples. Six phrases and two triples differ from others in runs of
    # spaces alone, and one object, "$", has nothing left.
    docs = json.loads(_SHARED.read_text())["docs"]
    triples = {normalise_triple(raw) for doc in docs for raw in doc["extracted_triples"]} - {None}
    assert len({phrase for triple in triples if triple for phrase in (triple[0], triple[2])}) == 16_235 - 6 - 1
    assert len(triples) == 17_036 - 2 - 1
