"""Clauses inside clauses: what is said behind one is said of whom the sentence says it."""

import pytest

from memory.openie.rules.extractor import RulesExtractor
from store.types import MENTION, PassageText, Triple


def _said(text: str, title: str = "Moth Project") -> set[Triple]:
    """What the text says, without the names that are tied to the title."""
    found = RulesExtractor().extract([PassageText("p1", title, text)])[0].triples
    return {t for t in found if t[1] != MENTION}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Redbird, which Ann Lee founded in 1961, moved to Oslo.",
            {("ann lee", "founded", "redbird"), ("ann lee", "founded in", "1961"), ("redbird", "moved to", "oslo")},
        ),
        (
            "Redbird – which Ann Lee founded – moved to Oslo.",
            {("ann lee", "founded", "redbird"), ("redbird", "moved to", "oslo")},
        ),
        (
            "Redbird, which Ann Lee designed, built, and led, burned in 1970.",
            {("ann lee", "designed", "redbird"), ("redbird", "burned in", "1970")},
        ),
        (
            "Redbird, which Ann Lee designed and Bo Ek built, burned in 1970.",
            {("ann lee", "designed", "redbird"), ("redbird", "burned in", "1970")},
        ),
        (
            "Ann Lee, with whom Bo Ek lived, died in Bonn.",
            {("bo ek", "lived with", "ann lee"), ("ann lee", "died in", "bonn")},
        ),
        (
            "Ann Lee, whose brother founded Redbird, lives in Bonn.",
            {("ann lee", "brother founded", "redbird"), ("ann lee", "lives in", "bonn")},
        ),
        (
            "Holm & Sons, whose founder, Peter Holm, drowned in 1901, moved to Bonn.",
            {
                ("holm sons", "founder", "peter holm"),
                ("peter holm", "drowned in", "1901"),
                ("holm sons", "moved to", "bonn"),
            },
        ),
        (
            "Ann Lee, who founded Redbird and led it until 1970, lives in Bonn.",
            {
                ("ann lee", "founded", "redbird"),
                ("ann lee", "led it until", "1970"),
                ("ann lee", "lives in", "bonn"),
            },
        ),
    ],
)
def test_a_relative_clause_ends_before_the_verb_of_its_sentence(text: str, said: set[Triple]) -> None:
    assert _said(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "What comes of it is a map that shows which fields drain to which tap.",
        "What Ann Lee needs is a boat.",
        "What happened next surprised Ann Lee.",
        "Whoever wins the Moth Prize receives a lamp.",
        "Whether Ann Lee leads the trial is unclear.",
        "That Ann Lee won surprised Bo Ek.",
        "When Ann Lee died is unknown.",
        "All that Ann Lee wanted was a quiet office.",
        "Ann Lee knows what Bo Ek wrote.",
        "At the age of 20 Ann Lee moved to Oslo.",
    ],
)
def test_embedded_and_unparsed_clauses_give_no_statement(text: str) -> None:
    assert _said(text) == set()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The reason Ann Lee left Bonn was the flood.", {("ann lee", "left", "bonn")}),
        ("Bonn is the city Ann Lee was born in.", {("bonn", "is", "city")}),
        ("It was Ann Lee who founded Redbird.", {("ann lee", "founded", "redbird")}),
        ("It was not Ann Lee who founded Redbird.", {("ann lee", "not founded", "redbird")}),
        (
            "It was in 1961 that Ann Lee founded Redbird.",
            {("ann lee", "founded in", "1961"), ("ann lee", "founded", "redbird")},
        ),
        ("According to Bo Ek, Ann Lee lives in Bonn.", {("ann lee", "reportedly lives in", "bonn")}),
        ("According to Bo Ek himself, Ann Lee lives in Bonn.", {("ann lee", "reportedly lives in", "bonn")}),
        (
            "Having founded Redbird, Ann Lee moved to Oslo.",
            {("ann lee", "having founded", "redbird"), ("ann lee", "moved to", "oslo")},
        ),
        ("With the help of Bo Ek, Ann Lee built Redbird.", {("ann lee", "built", "redbird")}),
        ("After the fall of Rome, Ann Lee went to Bonn.", {("ann lee", "went to", "bonn")}),
    ],
)
def test_each_verb_gets_its_own_subject(text: str, said: set[Triple]) -> None:
    found = {t for t in _said(text) if not t[1].endswith("according to")}
    assert found == said


def test_a_participle_that_opens_a_sentence_without_a_subject_is_about_the_title() -> None:
    assert ("natal ridge", "named by", "ann lee") in _said("It is a ridge. Named by Ann Lee in 1993.", "Natal Ridge")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Redbird is a double album by English guitarist Fred Frith.",
            {("redbird", "is double album by", "fred frith"), ("fred frith", "is", "english guitarist")},
        ),
        (
            "Bo Ek is the son of the politician Carl Ek.",
            {("bo ek", "is son of", "carl ek"), ("carl ek", "is", "politician")},
        ),
        (
            "Bo Ek met Redbird CEO Ann Lee in Bonn.",
            {("bo ek", "met", "ann lee"), ("bo ek", "met ann lee in", "bonn"), ("ann lee", "is", "redbird ceo")},
        ),
        (
            "Microsoft Chief Executive Officer Ann Lee left Bonn.",
            {("ann lee", "is", "microsoft chief executive officer"), ("ann lee", "left", "bonn")},
        ),
    ],
)
def test_description_with_a_name_gives_one_object_that_it_describes(text: str, said: set[Triple]) -> None:
    assert said <= _said(text)
    assert not [t for t in _said(text) if t[0] in ("redbird", "bo ek") and t not in said]
