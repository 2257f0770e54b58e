"""What a text quotes is not what it says, and what it is stamped with is no part of its sentences."""

import pytest

from memory.openie.rules.extractor import RulesExtractor
from store.types import MENTION, PassageText, Triple


def _found(text: str, title: str = "Moth Project") -> tuple[set[Triple], tuple[str, ...]]:
    """What the text says, without the names that are tied to the title; and its entities."""
    [extraction] = RulesExtractor().extract([PassageText("p1", title, text)])
    return {t for t in extraction.triples if t[1] != MENTION}, extraction.entities


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"I love Oslo," said Ann Lee.', set()),
        ("“Bonn is cold,” Lee added. “We moved the office to Oslo.”", set()),
        ("“Bonn is cold. We moved the office to Oslo,” Lee added.", set()),
        ('Ann Lee said: "Redbird will open an office in Oslo."', set()),
        ('"We will open an office in Oslo," said Ann Lee, CEO of Redbird.', {("ann lee", "is", "ceo of redbird")}),
        ('"Redbird has no debts," Ann Lee told Reuters.', {("ann lee", "told", "reuters")}),
        ("“I was born in Bonn,” she said.", set()),
        (
            'As Ann Lee noted: "Redbird is cold." Bo Ek was born in Bonn.',
            {("bo ek", "was born in", "bonn")},
        ),
    ],
)
def test_direct_speech_gives_no_statement(text: str, said: set[Triple]) -> None:
    assert _found(text)[0] == said


def test_names_in_direct_speech_are_entities() -> None:
    assert {"redbird", "ann lee"} <= set(_found('"We sold Redbird to Bo," said Ann Lee.')[1])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('Ann Lee wrote "The Quiet Sea".', ("ann lee", "wrote", "the quiet sea")),
        ('Ann Lee announced "The Quiet Sea".', ("ann lee", "announced", "the quiet sea")),
        ('Her novel "The Quiet Sea," published in 1961, won.', ("the quiet sea", "published in", "1961")),
        ('"The Quiet Sea" is a novel by Ann Lee.', ("the quiet sea", "is novel by", "ann lee")),
    ],
)
def test_quoted_work_title_is_not_treated_as_direct_speech(text: str, said: Triple) -> None:
    assert said in _found(text)[0]


@pytest.mark.parametrize("stamp", ["Oslo (Reuters) - ", "OSLO, Jan 5 (Reuters) - ", "OSLO, Norway — "])
def test_a_dateline_is_no_subject(stamp: str) -> None:
    assert _found(f"{stamp}Redbird has sold Bluebird.")[0] == {("redbird", "has sold", "bluebird")}


def test_a_title_with_a_dash_is_no_dateline() -> None:
    said = _found("OSS 117 – Double Agent is a film about Bo Ek.", "OSS 117 – Double Agent")[0]
    assert ("oss 117 double agent", "is film about", "bo ek") in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ann Lee and Bo Ek founded Redbird and Bluebird, respectively.", set()),
        ("Redbird, Inc., was founded in 1961.", {("redbird", "was founded in", "1961")}),
        ("Ann Lee, Jr., met Bo Ek.", {("ann lee", "met", "bo ek")}),
        (
            "Bonn (population 200,000) is a city in Norway.",
            {("bonn", "population", "200 000"), ("bonn", "is city in", "norway")},
        ),
    ],
)
def test_ambiguous_lists_and_name_suffixes_give_no_false_statement(text: str, said: set[Triple]) -> None:
    assert _found(text)[0] == said
