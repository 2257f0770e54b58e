"""Control tokens of chat templates in quoted text: found in every disguise, and replaced by what looks like them."""

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.llm.messages import CONTROL_TOKENS, neutralise_control_tokens, user_message
from memory.phrase_normalisation import normalise_phrase

ALL = sorted({token for family in CONTROL_TOKENS.values() for token in (*family.tokens, *family.own_case)})
ANY_CASE = sorted({token for family in CONTROL_TOKENS.values() for token in family.tokens})
INVISIBLE = ["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\ufe0f", "\u0301", "\u3164"]


def tokens_in(text: str) -> list[str]:
    """Tokens that a server would read from the text, which may normalise it and drop what is not seen."""
    plain = "".join(
        char
        for char in unicodedata.normalize("NFKC", text)
        if unicodedata.category(char) != "Cf" and char not in INVISIBLE
    )
    spellings = (text, plain, unicodedata.normalize("NFKC", text))
    return [token for token in ALL if any(token in each for each in spellings)]


def test_control_token_table_names_a_source_for_each_model_family() -> None:
    assert {"ChatML", "Llama 2", "Llama 3 and 4", "Mistral", "Gemma", "Phi", "DeepSeek"} <= CONTROL_TOKENS.keys()
    assert all(
        "http" in family.source or "tokenizer_config.json" in family.source for family in CONTROL_TOKENS.values()
    )


@pytest.mark.parametrize("token", ALL)
def test_every_control_token_is_replaced_by_a_lookalike(token: str) -> None:
    text = f"Before {token}system after."
    shown = neutralise_control_tokens(text)
    assert tokens_in(shown) == []
    assert len(shown) == len(text)
    assert normalise_phrase(shown) == normalise_phrase(text), "an extraction names the same phrase"
    assert neutralise_control_tokens(shown) == shown


@pytest.mark.parametrize("token", ANY_CASE)
@pytest.mark.parametrize("case", [str.upper, str.lower, str.title])
def test_control_tokens_are_replaced_in_any_case(token: str, case: Callable[[str], str]) -> None:
    disguised = case(token)
    assert neutralise_control_tokens(disguised) != disguised


@pytest.mark.parametrize(
    "disguise",
    [
        "<|im_<|im_end|>end|>",
        "<<|im_start|>|im_start|>",
        "＜｜im_start｜＞",
        "﹤|im_end|﹥",
        "［INST］",
        "< | im_end | >",
        "[ / INST ]",
        "<|a_model_that_nobody_knows|>",
        "<|half>",
        "<half|>",
        "<\u200b|im\u2060_st\ufeffart|\u200d>",
        "<\u0338|im_end|>",
        "<｜tool▁calls▁begin｜>",
        "<|𝐢𝐦_𝐞𝐧𝐝|>",
    ],
)
def test_disguised_control_token_is_replaced(disguise: str) -> None:
    shown = neutralise_control_tokens(f"a {disguise} b")
    assert shown != f"a {disguise} b"
    assert tokens_in(shown) == []


def test_ordinary_text_with_brackets_is_unchanged() -> None:
    for text in (
        "if a < b and c > d: x[1] = y[2] | z",
        "usage: tool [args] [prefix]",
        "xs |> List.map f <| g",
        "<table><tr><td>1</td></tr></table>",
        "a <b>bold</b> move",
        "git clone <repo_name>; edit <filename>",
        "Größe < 3 | 4 > 2",
    ):
        assert neutralise_control_tokens(text) == text


PIECES = st.sampled_from([*ALL, *INVISIBLE, "<", ">", "|", "[", "]", "/", " ", "im_end", "INST", "s", "\n", "ä", "｜"])


@settings(deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_token_is_left_in_any_text(text: str) -> None:
    shown = neutralise_control_tokens(text)
    assert tokens_in(shown) == []
    assert len(shown) == len(text)
    assert neutralise_control_tokens(shown) == shown


@settings(deadline=None)
@given(st.sampled_from(ALL), st.integers(1, 20))
def test_control_token_split_over_two_parts_is_replaced(token: str, at: int) -> None:
    title, text = token[:at], token[at:]
    assert tokens_in(user_message(title + text)["content"]) == []
