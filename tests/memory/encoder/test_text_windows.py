"""The windows of a text that is longer than a model reads."""

import re

from hypothesis import given
from hypothesis import strategies as st

from memory.encoder.text_preparation import text_windows


def spans(text: str) -> list[tuple[int, int]]:
    """Tokens of up to three letters, or one sign."""
    return [match.span() for match in re.finditer(r"\w{1,3}|[^\w\s]", text)]


@given(st.text(st.sampled_from("ab c\n.漢"), max_size=400), st.integers(1, 20))
def test_windows_join_to_the_text_and_respect_the_token_limit(text: str, room: int) -> None:
    windows = text_windows(text, spans(text), room)
    assert "".join(windows) == text
    starts = [len("".join(windows[:n])) for n in range(len(windows))]
    counts = [
        sum(start <= span[0] < start + len(window) for span in spans(text))
        for start, window in zip(starts, windows, strict=True)
    ]
    assert max(counts) <= room


def test_a_window_ends_between_words() -> None:
    text = " ".join(f"word{n}" for n in range(100))
    assert all(window.strip().startswith("word") for window in text_windows(text, spans(text), 30))


def test_text_without_spaces_is_cut_into_windows_of_similar_length() -> None:
    text = "漢" * 100
    assert [len(window) for window in text_windows(text, [(n, n + 1) for n in range(100)], 40)] == [34, 33, 33]
