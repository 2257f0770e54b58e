"""A text that ends in a repetition is recognised, and a useful list is not."""

import json

from hypothesis import given
from hypothesis import strategies as st

from memory.llm.repetition import MAX_PERIOD_CHARS, REPETITION_CHARS, ends_in_repetition, without_repetition


@given(st.text(max_size=300), st.text(min_size=1, max_size=MAX_PERIOD_CHARS), st.integers(0, MAX_PERIOD_CHARS))
def test_repetition_is_detected_wherever_the_text_is_cut(start: str, piece: str, cut: int) -> None:
    repeated = piece * (2 * REPETITION_CHARS // len(piece) + 2)
    text = start + repeated[: len(repeated) - min(cut, len(piece))]
    assert ends_in_repetition(text)
    kept = without_repetition(text)
    assert text.startswith(kept) and len(kept) <= len(start) + len(piece)


def test_lists_of_different_facts_are_no_repetition() -> None:
    facts = [[f"station {n}", "feeds", f"valley {n}"] for n in range(200)]
    assert not ends_in_repetition(json.dumps({"triples": facts}))
    assert without_repetition(json.dumps({"triples": facts})) == json.dumps({"triples": facts})
    assert not ends_in_repetition("word " * 10)
