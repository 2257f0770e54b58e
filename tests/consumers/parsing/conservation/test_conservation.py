"""No parser loses a word in silence, whatever combination of places a file uses."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.consumers.parsing.conservation.places import FormatTable, lost_words, unique_words

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("*_places.py"))
TABLES: Mapping[str, FormatTable] = {
    name.removesuffix("_places"): import_module(f"tests.consumers.parsing.conservation.{name}").TABLE
    for name in MODULES
}
EACH = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())


def lost(table: FormatTable, places: set[str]) -> list[str]:
    words = {place: word for place, word in unique_words(table.places).items() if place in places}
    return lost_words(table.write(words), table.file_name, words)


@EACH
def test_every_word_of_every_place_is_kept(table: FormatTable) -> None:
    assert lost(table, set(table.places)) == []


@EACH
def test_a_word_is_kept_when_it_is_the_only_one(table: FormatTable) -> None:
    assert [place for place in table.places if lost(table, {place})] == []


@EACH
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
@given(data=st.data())
def test_every_word_of_some_places_is_kept(table: FormatTable, data: st.DataObject) -> None:
    places = data.draw(st.sets(st.sampled_from(sorted(table.places)), min_size=2))
    assert lost(table, places) == []
