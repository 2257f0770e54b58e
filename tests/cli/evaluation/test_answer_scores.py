"""LV-Eval's F1 is 0 unless the answer has enough of the keywords; pairs of claims have two claims."""

import pytest

from cli.evaluation.scoring import f1, keyword_f1

KNOWN = ("Edda Vance forged the lantern of Corl Tower",)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # 5 of the 7 known words (without "the") are said, and nothing else: F1 = 2 * 5 / (5 + 7). Keywords: 2 of 5.
        ("Edda Vance forged lantern of", 10 / 12),
        # One of 5 keyword words is said: 1/5 reaches 0.2. F1: 2 * 1 / (1 + 7).
        ("Tower", 2 / 8),
        # "of" and "and" are common words, which count for no keyword: 0 of 5.
        ("of and", 0.0),
        ("A smith forged lantern", 0.0),
    ],
)
def test_keyword_f1_is_0_below_the_keyword_threshold(answer: str, expected: float) -> None:
    assert keyword_f1(answer, KNOWN, "Edda Vance of and Tower") == pytest.approx(expected)


def test_keyword_f1_splits_chinese_text_into_words() -> None:
    known = ("北京大学位于北京",)
    # The keyword 北京大学 is one word and is said: 1/1 reaches 0.4. Words said and known: 北京大学, of 1 and of 3.
    assert keyword_f1("北京大学", known, "北京大学") == pytest.approx(2 * 1 / (1 + 3))
    assert keyword_f1("清华大学", known, "北京大学") == 0.0
    assert f1("北京大学", known) == 0.0, "without words, a Chinese sentence is one word"
