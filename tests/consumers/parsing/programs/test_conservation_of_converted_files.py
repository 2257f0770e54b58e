"""No conversion by LibreOffice loses a word in silence, whatever combination of places a file uses."""

from shutil import which

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consumers.parsing import Limits
from consumers.parsing.programs.installed import find_programs
from tests.consumers.parsing.conservation.places import lost_words, unique_words
from tests.consumers.parsing.programs.converted_places import FORMATS

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        which("soffice") is None, reason="LibreOffice is not installed (Debian: libreoffice-writer-nogui)"
    ),
]
LIMITS = Limits(programs=find_programs("off"), program_seconds=150)
EACH = pytest.mark.parametrize("ending", FORMATS)


def lost(ending: str, places: set[str]) -> list[str]:
    table = FORMATS[ending]
    words = {place: word for place, word in unique_words(table.places).items() if place in places}
    return lost_words(table.write(LIMITS, words), f"a.{ending}", words, LIMITS)


@EACH
def test_every_word_of_every_place_is_kept(ending: str) -> None:
    assert lost(ending, set(FORMATS[ending].places)) == []


@EACH
@settings(max_examples=1, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
@given(data=st.data())
def test_every_word_of_some_places_is_kept(ending: str, data: st.DataObject) -> None:
    places = data.draw(st.sets(st.sampled_from(sorted(FORMATS[ending].places)), min_size=1))
    assert lost(ending, places) == []
