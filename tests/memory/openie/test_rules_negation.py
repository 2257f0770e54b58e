"""A statement that is denied, doubted, reported, asked or supposed keeps its mark in the predicate, or gives no triple."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.openie.rules.extractor import RulesExtractor
from store.types import MENTION, PassageText, Triple


def _triples(text: str, title: str = "Nordlys Press") -> set[Triple]:
    return set(RulesExtractor().extract([PassageText("p", title, text)])[0].triples)


FOUNDED = ("alice stone", "founded", "nordlys press")


@pytest.mark.parametrize(
    ("text", "triple"),
    [
        (
            "No new functionality is added to the Heron gauge.",
            ("new functionality", "is not added to", "heron gauge"),
        ),
        ("Alice Stone never worked for Nordlys Press.", ("alice stone", "never worked for", "nordlys press")),
        ("Alice Stone didn't found Nordlys Press.", ("alice stone", "did not found", "nordlys press")),
        ("Alice Stone didn’t found Nordlys Press.", ("alice stone", "did not found", "nordlys press")),
        ("Alice Stone won't buy Nordlys Press.", ("alice stone", "will not buy", "nordlys press")),
        ("Alice Stone cannot own Nordlys Press.", ("alice stone", "cannot own", "nordlys press")),
        ("Alice Stone is not a member of Nordlys Press.", ("alice stone", "is not member of", "nordlys press")),
        ("Alice Stone isn't the owner of Nordlys Press.", ("alice stone", "is not owner of", "nordlys press")),
        ("Alice Stone no longer owns Nordlys Press.", ("alice stone", "no longer owns", "nordlys press")),
        ("Alice Stone hardly ever visited Oslo.", ("alice stone", "hardly visited", "oslo")),
        ("Alice Stone denied that he killed Bob Reed.", ("alice stone", "denied that killed", "bob reed")),
        ("Alice Stone denied killing Bob Reed.", ("alice stone", "denied killing", "bob reed")),
        ("It is false that Grace Kim owns Nordlys Press.", ("grace kim", "is false that owns", "nordlys press")),
        ("Bob Reed claims Alice Stone founded Nordlys Press.", ("alice stone", "claims that founded", "nordlys press")),
        ("Bob Reed doubts that Alice Stone founded it.", None),
        ("Alice Stone is said to have founded Nordlys Press.", None),
        ("Alice Stone failed to found Nordlys Press.", ("alice stone", "failed to found", "nordlys press")),
        ("Alice Stone would have founded Nordlys Press.", ("alice stone", "would have founded", "nordlys press")),
        ("Alice Stone reportedly founded Nordlys Press.", ("alice stone", "reportedly founded", "nordlys press")),
        (
            "According to Bob Reed, Alice Stone founded Nordlys Press.",
            ("alice stone", "reportedly founded", "nordlys press"),
        ),
        ("Alice Stone left Oslo without Bob Reed.", ("alice stone", "left oslo without", "bob reed")),
        ("Alice Stone has no children with Bob Reed.", ("alice stone", "has no children with", "bob reed")),
        ("Bob Reed met Ida Moe, who never lived in Oslo.", ("ida moe", "never lived in", "oslo")),
    ],
)
def test_negation_or_doubt_stays_in_the_predicate(text: str, triple: Triple | None) -> None:
    found = _triples(text)
    assert triple is None or triple in found
    assert FOUNDED not in found
    plain = {
        "founded",
        "owns",
        "killed",
        "is member of",
        "is owner of",
        "worked for",
        "lived in",
        "visited",
        "is added to",
    }
    assert not plain & {predicate for _, predicate, _ in found}


@pytest.mark.parametrize(
    "text",
    [
        "If Alice Stone founded Nordlys Press, Bob Reed moved to Oslo.",
        "Bob Reed moved to Oslo if Alice Stone founded Nordlys Press.",
        "Unless Alice Stone founded Nordlys Press, Bob Reed moved to Oslo.",
        "Had Alice Stone founded Nordlys Press, Bob Reed moved to Oslo.",
        "Suppose Alice Stone founded Nordlys Press.",
        "Did Alice Stone found Nordlys Press?",
        "Alice Stone founded Nordlys Press?",
        "Who knows why Alice Stone founded Nordlys Press?",
    ],
)
def test_questions_and_conditions_give_no_statement(text: str) -> None:
    assert {predicate for _, predicate, _ in _triples(text)} <= {MENTION}


@pytest.mark.parametrize(
    "text",
    [
        "Neither Alice Stone nor Bob Reed founded Nordlys Press.",
        "Never did Alice Stone found Nordlys Press.",
        "Not until 1990 was it that Alice Stone founded Nordlys Press.",
        "Under no circumstances has Alice Stone founded Nordlys Press.",
        "It was not Alice Stone who founded Nordlys Press.",
        "Bob Reed asked whether Alice Stone founded Nordlys Press.",
        "Whether Alice Stone founded Nordlys Press is disputed.",
        "It is unlikely that Alice Stone founded Nordlys Press.",
        "It is not true that Alice Stone founded Nordlys Press.",
        "Alice Stone never sang, danced or founded Nordlys Press.",
        "Alice Stone neither bought nor founded Nordlys Press.",
        "Alice Stone does not know who founded Nordlys Press.",
        "Bob Reed said on Monday that Alice Stone founded Nordlys Press.",
        "The rumour that Alice Stone founded Nordlys Press is old.",
        "Not Alice Stone but Bob Reed founded Nordlys Press.",
        "Bob Reed, not Alice Stone, founded Nordlys Press.",
        "Bob Reed rather than Alice Stone founded Nordlys Press.",
        "Alice Stone almost founded Nordlys Press.",
        "Nobody but Alice Stone ever founded Nordlys Press.",
    ],
)
def test_negated_or_embedded_statement_is_not_affirmed(text: str) -> None:
    assert FOUNDED not in _triples(text)


def test_neither_nor_negates_the_statement_for_both_subjects() -> None:
    found = _triples("Neither Alice Stone nor Bob Reed founded Nordlys Press.")
    assert {("alice stone", "not founded", "nordlys press"), ("bob reed", "not founded", "nordlys press")} <= found


@pytest.mark.parametrize(
    "text",
    [
        "Alice Stone not only founded Nordlys Press but also wrote Long Night.",
        "Alice Stone did not move to Oslo but founded Nordlys Press.",
        "Bob Reed never lived in Oslo; Alice Stone founded Nordlys Press.",
        "Alice Stone founded Nordlys Press, not Long Night.",
        "Alice Stone founded Nordlys Press and never visited Oslo.",
        "There is no doubt; Alice Stone founded Nordlys Press.",
        "Bob Reed has no money. Alice Stone founded Nordlys Press.",
        "Ida Moe, who never lived in Oslo, sang. Alice Stone founded Nordlys Press.",
    ],
)
def test_negation_outside_the_statement_does_not_affect_it(text: str) -> None:
    assert FOUNDED in _triples(text)


def test_object_after_comma_not_is_dropped() -> None:
    found = _triples("Alice Stone founded Nordlys Press, not Long Night.")
    assert ("alice stone", "founded", "long night") not in found


def test_abbreviation_no_before_a_number_is_no_negation() -> None:
    assert ("5 squadron", "was formed in", "oslo") in _triples("No. 5 Squadron was formed in Oslo.")


_NAMES = st.sampled_from(["Alice Stone", "Bob Reed", "Grace Kim", "Nordlys Press", "Long Night", "Oslo"])
_VERBS = st.sampled_from(
    [
        ("founded", "found"),
        ("wrote", "write"),
        ("moved to", "move to"),
        ("worked for", "work for"),
        ("killed", "kill"),
        ("bought", "buy"),
        ("lived in", "live in"),
        ("directed", "direct"),
    ]
)
_DENIALS = st.sampled_from(
    [
        "{s} did not {base} {o}.",
        "{s} didn't {base} {o}.",
        "{s} never {past} {o}.",
        "{s} has never {past} {o}.",
        "{s} hardly ever {past} {o}.",
        "{s} could not {base} {o}.",
        "Never did {s} {base} {o}.",
        "Neither {s} nor Ida Moe {past} {o}.",
        "No one says that {s} {past} {o}.",
        "It is not true that {s} {past} {o}.",
        "It is false that {s} {past} {o}.",
        "Ida Moe denied that {s} {past} {o}.",
        "Ida Moe claimed {s} {past} {o}.",
        "{s} refused to {base} {o}.",
        "{s} wanted to {base} {o}.",
        "{s} would {base} {o}.",
        "{s} possibly {past} {o}.",
        "If {s} {past} {o}, Ida Moe sang.",
        "Ida Moe sings unless {s} {past} {o}.",
        "Did {s} {base} {o}?",
        "Ida Moe asked whether {s} {past} {o}.",
    ]
)


@given(_NAMES, _VERBS, _NAMES, _DENIALS, st.sampled_from(["", "Ida Moe", "Some title"]))
def test_negated_statement_never_gives_the_affirmed_triple(
    s: str, verb: tuple[str, str], o: str, denial: str, title: str
) -> None:
    past, base = verb
    if s == o:
        return
    stated = {(s.lower(), form, o.lower()) for form in (past, base)}
    assert stated & _triples(f"{s} {past} {o}.", title)
    assert not stated & _triples(denial.format(s=s, past=past, base=base, o=o), title)


@pytest.mark.parametrize("apostrophe", ["'", "’"])
def test_a_contraction_is_no_part_of_a_name(apostrophe: str) -> None:
    text = f"Why don{apostrophe}t multiple Enter presses create more breaks?"
    [found] = RulesExtractor().extract([PassageText("p", "Breaks", text)])
    assert "multiple enter presses" in found.entities
    assert not any(name.startswith("n t ") for name in found.entities)
