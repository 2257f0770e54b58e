"""Exact match and token F1 between an answer and the known ones, as MuSiQue's evaluation (and SQuAD's before it) has them."""

import string
from collections import Counter
from collections.abc import Sequence

_PUNCTUATION = frozenset(string.punctuation)
_ARTICLES = frozenset({"a", "an", "the"})


def words(text: str) -> list[str]:
    """Small letters without punctuation and articles, in words."""
    bare = "".join(char for char in text.lower() if char not in _PUNCTUATION)
    return [word for word in bare.split() if word not in _ARTICLES]


def exact(answer: str, known: Sequence[str]) -> float:
    return float(any(words(answer) == words(each) for each in known))


def f1(answer: str, known: Sequence[str]) -> float:
    """The best over the known answers."""
    return max((_f1(words(answer), words(each)) for each in known), default=0.0)


def _f1(predicted: list[str], gold: list[str]) -> float:
    if not predicted or not gold:
        return float(predicted == gold)
    same = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * same / (len(predicted) + len(gold))
