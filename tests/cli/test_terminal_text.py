"""Cleaning, cutting and emphasising text."""

import html
import json
import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from cli.render.highlights import match_spans, query_words, snippet
from cli.terminal_text import duration, json_safe, location_text, milliseconds, one_line, size, terminal_safe, xml_safe

BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@given(st.text(st.characters(codec=None)))
def test_cleaned_text_contains_no_control_or_bidirectional_characters(text: str) -> None:
    cleaned = terminal_safe(text)
    assert not [char for char in cleaned if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t"]
    assert not BIDI.search(cleaned)
    assert "\n" not in one_line(text) and "\t" not in one_line(text)


JOINERS = "\u200c\u200d"
"""Format characters that scripts and emoji need. The others that stay are visible."""
VISIBLE_FORMAT = re.compile("[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001345f]")


def test_cleaned_text_contains_no_invisible_format_characters_except_joiners() -> None:
    left = {
        char for char in map(chr, range(0x110000)) if unicodedata.category(char) == "Cf" and terminal_safe(char) == char
    }
    assert {char for char in left if not VISIBLE_FORMAT.match(char)} == set(JOINERS)


@given(st.text(st.characters(codec="utf-8")))
def test_escaped_json_and_xml_decode_to_the_original_text(text: str) -> None:
    line = json.dumps({"text": text}, ensure_ascii=False)
    assert json.loads(json_safe(line)) == {"text": text}
    for safe in (json_safe(line), xml_safe(text)):
        assert terminal_safe(safe) == safe
    assert html.unescape(xml_safe("\u202e\u2066\U000e0041")) == "\u202e\u2066\U000e0041"


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S"])))
def test_cleaning_leaves_letters_marks_numbers_and_signs_alone(text: str) -> None:
    assert terminal_safe(text) == text


def test_emoji_and_joined_scripts_stay_whole() -> None:
    for text in ("👩‍🔬 at work", "می‌خواهم"):
        assert terminal_safe(text) == text


@given(st.text(), st.text(), st.integers(20, 300))
def test_a_snippet_is_a_part_of_the_text_and_not_too_long(query: str, text: str, limit: int) -> None:
    piece = snippet(text, query_words(query), limit)
    assert len(piece) <= limit + 4
    assert piece.removeprefix("… ").removesuffix(" …") in one_line(text)


def test_a_snippet_begins_where_the_querys_words_stand() -> None:
    text = "Nothing to see here. " * 40 + "Emil Strand built the rain gauge. " + "More of the same. " * 40
    piece = snippet(text, query_words("Who built the rain gauge?"), 120)
    assert piece.startswith("… ") and "Emil Strand built the rain gauge." in piece


def test_query_words_match_inflections_and_exclude_stop_words() -> None:
    text = "He was gauging the GAUGES of the gauged; gaugeless was the rest."
    found = [text[start:end] for start, end in match_spans(query_words("Who was the gauge of it?"), text)]
    assert found == ["GAUGES", "gauged"]
    assert query_words("who was it?") is None


def test_location_text_lists_places_from_large_to_small() -> None:
    assert location_text({"line": 12, "heading": "Heating", "page": 3}) == "page 3, “Heating”, line 12"
    assert location_text({"line": 12, "heading": "Heating"}, "Board meeting › Heating") == "line 12"
    assert location_text({"row": 4, "sheet": "2020", "heading": None}) == "sheet 2020, row 4"


def test_durations_and_sizes_are_abbreviated() -> None:
    assert [duration(seconds) for seconds in (0.4, 61, 3_725, 90_000)] == ["0 s", "1 min 1 s", "1 h 2 min", "1 d 1 h"]
    assert [milliseconds(value) for value in (1.234, 345.6, 12_345)] == ["1.2 ms", "346 ms", "12.3 s"]
    assert [size(value) for value in (10, 2_048, 5 * 1024**3)] == ["10 B", "2 KiB", "5.0 GiB"]
