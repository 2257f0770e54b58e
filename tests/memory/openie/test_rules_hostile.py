"""Hostile text costs no more than its length, gives bounded output, and never an exception."""

import json
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.openie.rules.extractor import MAX_CHARS, MAX_TRIPLES, RulesExtractor
from memory.phrase_normalisation import normalise_phrase
from store.types import Extraction, PassageText

_UNITS = {
    "one word": "a",
    "one capital word": "A",
    "open brackets": "(",
    "brackets": "()",
    "mixed brackets": "[(",
    "square brackets": "[",
    "curly brackets": "{",
    "paragraphs": "A\n\n",
    "addresses": "http://a.b/c ",
    "control characters": "\x00\x01\x1b",
    "hyphens": "a-",
    "loose hyphens": " - a",
    "dots": "a.",
    "names": "Ann Lee ",
    "listed names": "Ann Lee and ",
    "commas": "Ann, ",
    "possessives": "Ann's ",
    "infinitives": "to go ",
    "adjectives": "big ",
    "relatives": "who ",
    "quotes": '"A ',
    "keys": "a: b; ",
    "names in brackets": "Ann Lee (Bo Ek) ",
    "alike names in brackets": "Abababab (Babababa) ",
    "direct speech": "“We sold it,” said Ann. ",
    "embedded clauses": "Ann, which Bo saw, ",
    "cells": "|a",
    "rows": "|a|b|\n",
    "lines": "a\n",
    "emphasis": "**a** ",
    "links": "[a](",
    "tags": "<a ",
    "quotations": "> ",
    "headings": "#",
    "spaces": " ",
    "numbers": "1,",
    "marks": "\u0301",
    "ideographs": "的中国",
    "surrogates": "\ud800",
    "words without capitals": "слово речь ",
    "instructions": "Select the card, then press it. ",
}
_LONG_LINES = [_UNITS[name] for name in ("one word", "brackets", "names", "emphasis", "cells")]


def _extract(title: str, text: str) -> Extraction:
    return RulesExtractor().extract([PassageText("p", title, text)])[0]


def _calls(text: str) -> int:
    """How many calls, of Python and of C, an extraction makes."""
    count = 0

    def profile(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        _extract("Title", text)
    finally:
        sys.setprofile(None)
    return count


@pytest.fixture(scope="module", autouse=True)
def _warm() -> Iterator[None]:
    _extract("Ann Lee", "Ann Lee built the Heron gauge.")
    yield


# Both sizes must be read in one way: longer lines than 20,000 characters are prose; the language of a short text is unsure.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "size"), [(unit, 6_000) for unit in _UNITS.values()] + [(unit, 20_500) for unit in _LONG_LINES]
)
def test_extraction_work_is_linear_in_the_text_length(unit: str, size: int) -> None:
    text = unit * (MAX_CHARS // len(unit) + 1)
    longer = min(2 * size, MAX_CHARS)
    assert _calls(text[:longer]) < 1.25 * (longer / size) * _calls(text[:size]) + 2_000


def test_text_beyond_the_maximum_length_is_ignored() -> None:
    text = "Ann Lee built the Heron gauge. " * 32_000
    whole, beginning = _extract("Ann Lee", text), _extract("Ann Lee", text[:MAX_CHARS])
    assert (whole.entities, whole.triples) == (beginning.entities, beginning.triples)


@pytest.mark.slow
@pytest.mark.parametrize("unit", _UNITS.values(), ids=_UNITS.keys())
@pytest.mark.parametrize("as_title", [False, True], ids=["text", "title"])
def test_output_is_bounded(unit: str, as_title: bool) -> None:
    hostile = unit * (MAX_CHARS // len(unit))
    found = _extract(hostile, "Ann Lee built the gauge.") if as_title else _extract("Title", hostile)
    assert len(found.triples) <= MAX_TRIPLES
    assert sum(len(part) for triple in found.triples for part in triple) <= MAX_TRIPLES * 700
    assert all(len(name) <= 1_500 for name in found.entities)


@pytest.mark.parametrize(
    "prose", ["中国的软件维护者。", "東京は日本の首都です。", "Die Stadt liegt am Fluss.", "Ann Lee built it."]
)
@pytest.mark.parametrize("as_title", [False, True], ids=["text", "title"])
def test_unpaired_surrogate_is_accepted_in_every_language(prose: str, as_title: bool) -> None:
    found = _extract(prose + "\ud800", prose) if as_title else _extract("Ann Lee", f"{prose}\ud800{prose}")
    json.dumps([found.entities, found.triples], ensure_ascii=False).encode()


@settings(max_examples=100, deadline=None)
@given(
    st.text(max_size=60),
    st.lists(st.one_of(st.sampled_from(sorted(_UNITS.values())), st.text(max_size=8)), max_size=60).map("".join),
)
@pytest.mark.slow
def test_random_text_gives_normalised_phrases_without_an_error(title: str, text: str) -> None:
    found = _extract(title, text)
    parts = [*found.entities, *(part for triple in found.triples for part in triple)]
    assert all(part == normalise_phrase(part) for part in parts)
    assert all(subject and object_ for subject, _, object_ in found.triples) and all(found.entities)
