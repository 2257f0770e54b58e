"""Ordinary sentences of which the rules must not make what they do not say."""

import pytest

from memory.openie.rules.extractor import RulesExtractor
from store.types import MENTION, PassageText, Triple


def _triples(title: str, text: str) -> set[Triple]:
    return set(RulesExtractor().extract([PassageText("p1", title, text)])[0].triples)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Every autumn her team pours dye into Widow Shaft.", ("odile brandt", "team pours dye into", "widow shaft")),
        ("Last year his company bought Redbird.", ("odile brandt", "company bought", "redbird")),
        ("One day Odile Brandt met Bo Ek.", ("odile brandt", "met", "bo ek")),
        ("The following year Odile Brandt met Bo Ek.", ("odile brandt", "met", "bo ek")),
        ("Once a week Odile Brandt sees Bo Ek.", ("odile brandt", "sees", "bo ek")),
        ("Odile Brandt sees Bo Ek three times a year.", ("odile brandt", "sees", "bo ek")),
        ("Odile Brandt bought Redbird last year.", ("odile brandt", "bought", "redbird")),
        ("Odile Brandt met Bo Ek this morning.", ("odile brandt", "met", "bo ek")),
        ("Tomorrow Jane flies to Oslo.", ("jane", "flies to", "oslo")),
        ("Yesterday she met Bo Ek.", ("odile brandt", "met", "bo ek")),
        ("On Tuesday Maria called Bo Ek.", ("maria", "called", "bo ek")),
        ("In January Maria called Bo Ek.", ("maria", "called", "bo ek")),
    ],
)
def test_time_expressions_are_neither_subject_nor_object(text: str, stated: Triple) -> None:
    found = _triples("Odile Brandt", text)
    assert stated in found
    assert {t for t in found if t[1] != MENTION} == {stated}


@pytest.mark.parametrize(
    "text",
    ["Last year was set by Bo Ek.", "Last year's budget was set by Bo Ek.", "Redbird won a one day trip to Rome."],
)
def test_time_expression_that_is_a_subject_or_an_object_is_kept(text: str) -> None:
    assert any("year" in f"{s} {p}" or "day trip" in f"{p} {o}" for s, p, o in _triples("Redbird", text))


def test_opening_prepositional_phrase_does_not_describe_the_subject() -> None:
    found = _triples("Ann Lee", "During the war Bo Ek lived in Oslo. After dinner Ann Lee and Bo Ek met Tom Hart.")
    assert {("bo ek", "lived in", "oslo"), ("ann lee", "met", "tom hart"), ("bo ek", "met", "tom hart")} <= found
    assert not [t for t in found if t[1] == "is" or t[:2] == ("ann lee", "lived in")]


def test_a_description_behind_a_preposition_still_describes() -> None:
    assert ("carl rogers", "is", "psychologist") in _triples(
        "Carl Rogers", "Under psychologist Carl Rogers the club won the Cup."
    )


def test_no_longer_stays_in_the_predicate() -> None:
    assert ("ann lee", "no longer works at", "redbird") in _triples("Ann Lee", "Ann Lee no longer works at Redbird.")


def test_has_yet_to_stays_in_the_predicate() -> None:
    assert ("ann lee", "has yet to visit", "rome") in _triples("Ann Lee", "Ann Lee has yet to visit Rome.")


def test_not_a_but_b_states_only_b() -> None:
    found = _triples(
        "Redbird", "Redbird was not founded by Ann Lee but by Bo Ek. It did not win the Tin Cup but the Gold Cup."
    )
    assert ("redbird", "was founded by", "bo ek") in found
    assert ("redbird", "did win", "gold cup") in found
    assert not {("redbird", "was not founded by", "bo ek"), ("redbird", "was founded by", "ann lee")} & found


def test_but_that_begins_a_clause_does_not_affirm_the_negated_object() -> None:
    found = _triples("Redbird", "Redbird did not leave Rome, but Tom Hart left Rome.")
    assert ("redbird", "did leave", "rome") not in found
    assert ("tom hart", "left", "rome") in found


def test_coordinated_comparisons_keep_their_own_objects() -> None:
    found = _triples("Kessel Harbour", "Kessel Harbour is larger than Port Ash but smaller than Long Quay.")
    assert ("kessel harbour", "is smaller than", "long quay") in found
    assert ("kessel harbour", "is larger than", "long quay") not in found


def test_coordinated_descriptions_describe_the_name_before_them() -> None:
    found = _triples("Bo Ek", "Bo Ek, son of Carl Ek and brother of Ida Ek, was born in Oslo.")
    assert {
        ("bo ek", "is son of", "carl ek"),
        ("bo ek", "is brother of", "ida ek"),
        ("bo ek", "was born in", "oslo"),
    } == found


def test_subject_list_that_ends_with_a_genitive_excludes_the_genitive_name() -> None:
    found = _triples("Tom Hart", "Bo Ek, Carl Ek and the king of Norway met Tom Hart.")
    assert {("bo ek", "met", "tom hart"), ("carl ek", "met", "tom hart")} <= found
    assert not [t for t in found if t[0] == "norway"]


def test_whose_with_a_named_person_gives_the_relation_and_the_name() -> None:
    found = _triples("Holm Works", "Rome hired Holm Works, whose founder, Peter Holm, had drowned in Riga.")
    assert {("holm works", "founder", "peter holm"), ("peter holm", "had drowned in", "riga")} <= found


def test_a_time_of_day_is_one_number() -> None:
    assert not [t for t in _triples("", "Ghent Market closes at 18:30 in Ghent.") if t[2] in ("18", "30")]


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Ann Lee (Redbird) beat Bo Ek.", ("ann lee", MENTION, "redbird")),
        ("Ann Lee (Bonn, 1961 – Oslo, 1999) was a nurse.", ("ann lee", MENTION, "bonn")),
        ("The United Nations (UN) met in Bonn.", ("united nations", "also known as", "un")),
        ("Redbird (formerly Bluebird) makes lamps in Bonn.", ("redbird", "also known as", "bluebird")),
        ("Der Fluss (English: The River) is a film by Ann Lee.", ("der fluss", "also known as", "river")),
        ("Westerpark (Western Park) lies in Bonn.", ("westerpark", "also known as", "western park")),
    ],
)
def test_bracketed_name_is_an_alias_only_with_evidence(text: str, stated: Triple) -> None:
    found = _triples("Moth Project", text)
    assert stated in found
    assert {t for t in found if t[1] in ("also known as", MENTION) and t[0] == stated[0] and t[2] == stated[2]} == {
        stated
    }


def test_statement_that_only_repeats_a_name_is_dropped() -> None:
    assert ("standard encryption", "is", "encryption") not in _triples(
        "Standard encryption", "Standard encryption is encryption."
    )


def test_a_how_to_is_no_subject() -> None:
    assert not any(p for _, p, _ in _triples("How to use Redbird", "They sync all vaults with Oslo."))


def test_key_value_record_has_its_name_as_subject() -> None:
    found = _triples("", "Version: 2.4\nName: Redbird\nAuthor: Ann Lee")
    assert ("redbird", "author", "ann lee") in found
    assert all(subject == "redbird" for subject, predicate, _ in found if predicate)


def test_key_value_record_without_name_or_title_gives_no_statement() -> None:
    assert not any(p for _, p, _ in _triples("", "Classifier: Mac\nClassifier: Windows ten"))


def test_value_that_consists_of_symbols_is_left_out() -> None:
    found = _triples("Shortcuts", "Action: Delete the word; Shortcut: Ctrl+←; Place: Main menu")
    assert ("delete the word", "place", "main menu") in found
    assert not any(predicate == "shortcut" for _, predicate, _ in found)


def test_first_row_of_a_table_without_header_gives_no_statement() -> None:
    assert not any(p for _, p, _ in _triples("Functions", "ctxt:: style; a transformation context: the current style"))
