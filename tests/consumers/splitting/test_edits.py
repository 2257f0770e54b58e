"""The cost of an edit: passages are cut by content, so that one changed paragraph changes at most three of them.

Paragraphs here have up to 400 tokens, the maximum of a passage; a longer paragraph becomes several passages by itself.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.splitting import SplitSettings, TextBlock, count_tokens, split, split_text

S = SplitSettings()
_RANDOM = random.Random(11)
_WORDS = ["".join(_RANDOM.choices("abcdefghijklmnoprstuw", k=_RANDOM.randint(2, 9))) for _ in range(2500)]


def paragraph(chance: random.Random, sentences: int) -> str:
    lengths = (chance.randint(5, 24) for _ in range(sentences))
    return " ".join(" ".join(chance.choices(_WORDS, k=length)).capitalize() + "." for length in lengths)


def book(seed: int, pages: int, longest: int = 12) -> list[str]:
    """Returns paragraphs of one to `longest` sentences, about 400 words a page."""
    chance = random.Random(seed)
    made: list[str] = []
    room = pages * 400
    while room > 0:
        made.append(paragraph(chance, chance.randint(1, longest)))
        room -= len(made[-1].split())
    return made


def texts(paragraphs: list[str]) -> list[str]:
    return [passage.text for passage in split_text("\n\n".join(paragraphs), "A book", S)]


def new_ones(before: list[str], after: list[str]) -> list[str]:
    kept = set(before)
    return [text for text in after if text not in kept]


EDITS = st.sampled_from(["change", "insert", "delete", "word"])
PLACES = st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1))


def edited(paragraphs: list[str], edit: str, place: float, seed: int) -> list[str]:
    chance = random.Random(seed)
    result = list(paragraphs)
    at = round(place * (len(result) - 1))
    if edit == "insert":
        result.insert(len(result) if place == 1 else at, paragraph(chance, chance.randint(1, 12)))
    elif edit == "delete":
        del result[at]
    elif edit == "change":
        result[at] = paragraph(chance, chance.randint(1, 12))
    else:
        found = result[at].split()
        found[chance.randrange(len(found))] = "changed"
        result[at] = " ".join(found)
    return result


@pytest.fixture(scope="module")
def long_book() -> tuple[list[str], list[str]]:
    paragraphs = book(1, 200)
    return paragraphs, texts(paragraphs)


def test_a_book_of_200_pages_has_passages_of_a_useful_size(long_book: tuple[list[str], list[str]]) -> None:
    sizes = [count_tokens(text) for text in long_book[1]]
    assert max(sizes) <= S.max_tokens
    assert S.max_tokens / 4 < sum(sizes) / len(sizes)
    assert sum(size < S.min_tokens for size in sizes) <= len(sizes) / 100


@pytest.mark.slow
@given(edit=EDITS, place=PLACES, seed=st.integers(0, 1_000_000))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_one_edit_in_200_pages_makes_at_most_three_passages_anew(
    long_book: tuple[list[str], list[str]], edit: str, place: float, seed: int
) -> None:
    paragraphs, before = long_book
    assert len(new_ones(before, texts(edited(paragraphs, edit, place, seed)))) <= 3


@pytest.mark.slow
@given(
    shape=st.integers(0, 10_000), longest=st.integers(1, 14), edit=EDITS, place=PLACES, seed=st.integers(0, 1_000_000)
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_one_edit_changes_at_most_three_passages_for_any_paragraph_size(
    shape: int, longest: int, edit: str, place: float, seed: int
) -> None:
    paragraphs = book(shape, 12, longest)
    assert len(new_ones(texts(paragraphs), texts(edited(paragraphs, edit, place, seed)))) <= 3


@pytest.mark.slow
def test_a_word_changed_in_one_endless_paragraph_makes_at_most_three_passages_anew() -> None:
    text = " ".join(book(5, 60)).split()
    before = [p.text for p in split_text(" ".join(text), "", S)]
    for at in range(0, len(text), len(text) // 40):
        changed = [*text[:at], "Changed", *text[at + 1 :]]
        assert len(new_ones(before, [p.text for p in split_text(" ".join(changed), "", S)])) <= 3


@pytest.mark.slow
def test_a_row_changed_in_a_long_table_makes_at_most_three_passages_anew() -> None:
    rows = [f"station: S{n}; reading: {n * 37 % 101}; seen by: {_WORDS[n % 700]}" for n in range(5000)]

    def passages(lines: list[str]) -> list[str]:
        return [p.text for p in split([TextBlock(line, joint="\n") for line in lines], "Log", S)]

    before = passages(rows)
    for at in (0, 1, 2500, 4998, 4999):
        assert len(new_ones(before, passages([*rows[:at], "station: new; reading: 7", *rows[at + 1 :]]))) <= 3
        assert len(new_ones(before, passages([*rows[:at], *rows[at + 1 :]]))) <= 3
        assert len(new_ones(before, passages([*rows[:at], "station: extra", *rows[at:]]))) <= 3
